# Loads a solution inside the sandbox and answers calls with typed values. Standard library only, CPython 3.8 or newer.
#
# Run as `python3 -s -S -B -c <this text>`. In: frames on fd 0 (4-byte big-endian length, JSON). Out: frames on fd 1. Both
# are moved away before anything of the solution runs, which gets /dev/null. Everything in this process belongs to the
# solution once it is loaded: nothing here is trusted, no expected value ever comes here, and what goes out is only data.
import sys

sys.path[:] = [p for p in sys.path if p not in ("", ".", "/work")]  # no file of the solution shadows what is imported here


def main():
    import fcntl
    import json
    import os

    MAX_DEPTH = 100
    MAX_NODES = 400000
    MAX_BYTES = 8 << 20
    MAX_BITS = 120000

    # Own references: a solution that patches these modules, by accident or not, must not silence honest answers.
    loads, encoder = json.loads, json.JSONEncoder(ensure_ascii=True, check_circular=False).encode
    read, write = os.read, os.write
    type_, issubclass_, len_, iter_, isinstance_ = type, issubclass, len, iter, isinstance
    type_name = type.__dict__["__name__"].__get__
    type_mro = type.__dict__["__mro__"].__get__

    inbound = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
    outbound = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 101)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)

    class Unreturnable(Exception):
        pass

    # --- frames

    def read_exactly(n):
        parts = []
        while n:
            part = read(inbound, min(n, 1 << 20))
            if not part:
                os._exit(0)  # the trusted side has gone
            parts.append(part)
            n -= len_(part)
        return b"".join(parts)

    def receive():
        return loads(read_exactly(int.from_bytes(read_exactly(4), "big")))

    def send(message):
        body = encoder(message).encode("ascii")
        data = memoryview(len_(body).to_bytes(4, "big") + body)
        while data:
            data = data[write(outbound, data) :]

    # --- values in

    def decode(nodes):
        source = iter_(nodes)

        def one():
            node = next(source)
            kind, v = node["t"], node.get("v")
            if kind in ("bool", "str"):
                return v
            if kind == "none":
                return None
            if kind == "int":
                return decode_int(v)
            if kind == "float":
                return float(v)
            if kind == "complex":
                return complex(float(v[0]), float(v[1]))
            if kind == "bytes":
                return bytes.fromhex(v)
            if kind == "dict":
                pairs = [(one(), one()) for _ in range(v)]
                return dict(pairs)
            items = [one() for _ in range(v)]
            return {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind](items)

        return one()

    def decode_int(text):
        if len_(text) < 4000:
            return int(text)
        digits = text[1:] if text[0] == "-" else text
        n = 0
        for at in range(0, len_(digits), 4000):  # under CPython's limit on digits
            part = digits[at : at + 4000]
            n = n * 10 ** len_(part) + int(part)
        return -n if text[0] == "-" else n

    # --- values out: by the methods of the built-in base, never the value's own

    def encode(value):
        nodes = []
        size = [0]

        def put(kind, v):
            nodes.append({"t": kind, "v": v})
            size[0] += 16 + (len_(v) if isinstance_(v, str) else 0)
            if len_(nodes) > MAX_NODES or size[0] > MAX_BYTES:
                raise Unreturnable("the returned value is too large")

        def many(kind, items, depth):
            put(kind, len_(items))
            for item in items:
                one(item, depth + 1)

        def one(x, depth):
            if depth > MAX_DEPTH:
                raise Unreturnable("the returned value is nested too deeply")
            t = type_(x)
            if x is None:
                nodes.append({"t": "none"})
            elif t is bool:
                put("bool", x is True)
            elif issubclass_(t, int):
                put("int", int_text(x))
            elif issubclass_(t, float):
                put("float", float.__repr__(x))
            elif issubclass_(t, complex):
                put("complex", [float.__repr__(complex.real.__get__(x)), float.__repr__(complex.imag.__get__(x))])
            elif issubclass_(t, str):
                put("str", text(str.__str__(x)))
            elif issubclass_(t, bytes):
                put("bytes", bytes.hex(x))
            elif issubclass_(t, bytearray):
                put("bytes", bytearray.hex(x))
            elif issubclass_(t, tuple):
                many("tuple", [*tuple.__iter__(x)], depth)
            elif issubclass_(t, list):
                many("list", [*list.__iter__(x)], depth)
            elif issubclass_(t, set):
                many("set", [*set.__iter__(x)], depth)
            elif issubclass_(t, frozenset):
                many("frozenset", [*frozenset.__iter__(x)], depth)
            elif issubclass_(t, dict):
                pairs = [*dict.items(x)]
                put("dict", len_(pairs))
                for k, v in pairs:
                    one(k, depth + 1)
                    one(v, depth + 1)
            else:
                put("opaque", name_of(t))

        one(value, 0)
        return nodes

    def int_text(x):
        bits = int.bit_length(x)
        if bits > MAX_BITS:
            raise Unreturnable("the returned integer is too large")
        if bits < 12000:
            return int.__repr__(x)
        return int.__format__(int.__add__(x, 0), "#x")

    def text(s):
        try:
            str.encode(s, "utf-8")
        except UnicodeEncodeError:
            raise Unreturnable("the returned text holds a lone surrogate") from None
        return s

    def name_of(t):
        name = type_name(t)
        return "".join([c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "?" for c in str.__str__(name)[:80]])

    def mro_of(e):
        return [name_of(t) for t in type_mro(type_(e))[:20] if t is not object]

    def message_of(e):
        try:
            message = BaseException.__str__(e)
        except BaseException:
            return ""
        return "".join([c if c.isprintable() else " " for c in str.__str__(message)[:200]]).encode("utf-8", "replace").decode()

    # --- the solution

    state = {}

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
        return getattr(found, method, None) and (lambda *args: getattr(found(), method)(*args))

    def call(request):
        args = decode(request["args"])
        function = find(request["entry"])
        if function is None:
            return {"kind": "no_function"}
        try:
            result = function(*args)
            if request["collect"] and is_iterator(result):
                result = list(result)
        except BaseException as e:
            return {"kind": "exception", "mro": mro_of(e), "message": message_of(e)}
        try:
            return {"kind": "value", "nodes": encode(result)}
        except (Unreturnable, RecursionError, MemoryError) as e:
            return {"kind": "unreturnable", "message": message_of(e)}

    def is_iterator(x):
        """Views, ranges, generators and the like: something that `list()` turns into data."""
        data = (int, float, complex, str, bytes, bytearray, tuple, list, set, frozenset, dict)
        return x is not None and not issubclass_(type_(x), data) and hasattr(type_(x), "__iter__")

    def hello(_):
        return {"kind": "ready"}

    operations = {"hello": hello, "compile": compile_, "import": import_, "call": call}
    while True:
        request = receive()
        answer = operations[request["op"]](request)
        answer["seq"] = request["seq"]
        send(answer)


main()
