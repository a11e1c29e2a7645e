# Loads a solution inside the sandbox and answers calls with typed values.
#
# Run as `python3 -s -S -B -c <wire.py and this text>`. Everything in this process belongs to the solution once it is loaded:
# nothing here is trusted, no expected value ever comes here, and what goes out is only data.


def main():
    import os

    receive, send, decode, encode, name_of, mro_of, message_of, Unreturnable = wire()
    type_, issubclass_, getattr_, dict_ = type, issubclass, getattr, dict
    builtins = __builtins__ if type(__builtins__) is dict else vars(__builtins__)
    types = {t.__name__: t for t in list(builtins.values()) if type(t) is type and not issubclass(t, BaseException)}
    names_of_types = {id(t): name for name, t in types.items()}

    state = {}
    objects = []  # what stays here and is known outside by its number

    # --- what is no built-in data

    def handle(x, t):
        """A node for an object that stays here; built-in types go by name."""
        if t is type_ and id(x) in names_of_types:
            return {"t": "builtin", "v": names_of_types[id(x)]}
        objects.append(x)
        return {"t": "handle", "v": [len(objects) - 1, name_of(t)]}

    def build(kind, v, parts):
        if kind == "handle":
            return objects[v[0]]
        if kind == "builtin":
            return types[v]
        if kind == "enum":
            return state["module"][v[0]][v[1]]
        return state["module"][v](**parts)

    # --- the solution

    def compile_(request):
        path = "/work/" + request["main"]
        with open(path, "rb") as f:
            source = f.read()
        try:
            state["code"] = compile(source, path, "exec", dont_inherit=True)
        except SyntaxError as e:
            # Nothing of the solution has run yet: the fields are the compiler's own.
            return {"kind": "syntax_error", "mro": mro_of(e), "message": f"{e.msg} (line {e.lineno})"[:200]}
        except (ValueError, RecursionError, MemoryError, OverflowError) as e:
            return {"kind": "syntax_error", "mro": mro_of(e), "message": message_of(e)}
        state["path"] = path
        return {"kind": "compiled"}

    def import_(request):
        path = state["path"]
        folder, file = os.path.split(path)
        name = file[:-3] if file.endswith(".py") else file
        sys.path[:0] = list(dict.fromkeys([folder, "/work"]))
        os.chdir("/work")
        sys.argv[:] = [path]
        module = type(sys)(name)
        module.__file__ = path
        module.__cached__ = None
        sys.modules[name] = module
        try:
            exec(state["code"], module.__dict__)
        except BaseException as e:
            return {"kind": "import_error", "mro": mro_of(e), "message": message_of(e)}
        state["module"] = module.__dict__
        if find(request["entry"]) is None:
            return {"kind": "no_function"}
        return {"kind": "loaded"}

    def find(entry):
        owner, _, method = entry.partition(".")
        found = state["module"].get(owner)
        if not method or found is None:
            return found if callable(found) else None
        return getattr_(found, method, None) and (lambda *args, **kwargs: getattr_(found(), method)(*args, **kwargs))

    # --- calls

    def call(request):
        function = find(request["entry"])
        if function is None:
            return {"kind": "no_function"}
        return answer(request, lambda args, kwargs: function(*args, **kwargs))

    def use(request):
        """Something done with an object that stays here."""
        name = request["name"]
        way = {
            "name": lambda x: state["module"][name],
            "get": lambda x: getattr_(x, name),
            "method": lambda x, *args, **kwargs: getattr_(x, name)(*args, **kwargs),
            "call": lambda x, *args, **kwargs: x(*args, **kwargs),
            "set": lambda x, value: setattr(x, name, value),
            "item": lambda x, key: x[key],
            "set_item": lambda x, key, value: x.__setitem__(key, value),
            "iter": iter,
            "next": next,
            "str": str,
        }[request["how"]]
        on = request["on"]
        return answer(request, lambda args, kwargs: way(None if on is None else objects[on], *args, **kwargs))

    def answer(request, made):
        told = handle if request["handles"] else no_handle
        try:
            args = decode(request["args"], build)
            kwargs = decode(request["kwargs"], build) if request["kwargs"] else {}
            result = made(args, kwargs)
            if request["collect"] and is_iterator(result):
                result = list(result)
        except BaseException as e:
            return {"kind": "exception", "mro": mro_of(e), "message": message_of(e)}
        try:
            return {"kind": "value", "nodes": encode((result, args) if request["back"] else result, told)}
        except (Unreturnable, RecursionError, MemoryError) as e:
            return {"kind": "unreturnable", "message": message_of(e)}

    def no_handle(x, t):
        return None

    def is_iterator(x):
        """Views, ranges, generators and the like: something that `list()` turns into data."""
        data = (int, float, complex, str, bytes, bytearray, tuple, list, set, frozenset, dict_)
        return x is not None and not issubclass_(type_(x), data) and hasattr(type_(x), "__iter__")

    def hello(_):
        return {"kind": "ready"}

    operations = {"hello": hello, "compile": compile_, "import": import_, "call": call, "use": use}
    while True:
        request = receive()
        reply = operations[request["op"]](request)
        reply["seq"] = request["seq"]
        send(reply)


main()
