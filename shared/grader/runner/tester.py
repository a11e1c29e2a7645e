# Runs the tests and predicates of a task in a sandbox of their own, against a solution in another one.
#
# Run as `python3 -s -S -B -c <wire.py, pytest.py as the text PYTEST, and this text>`. In: tests and the order to run one. Out: calls of the
# solution, which the trusted side passes on, and how the test ended. Nothing of the solution runs here: what comes from it
# is data, or a Handle, a number that stands for an object there. A handle never tells comparison, truth, hash or length.


def main():
    import builtins

    receive, send, decode, encode, name_of, mro_of, message_of, Unreturnable = wire()
    state = {"seq": 0, "poison": None, "testing": False}
    named = {}  # the solution's names that were used in this process, by name

    class NotData(BaseException):
        """Ends a test that asks a handle what only data can tell, or that got an answer that is no data."""

    def give_up(outcome, message):
        state["poison"] = state["poison"] or (outcome, message)
        raise NotData(message)

    # --- calls of the solution

    def use(how, on, name, args, kwargs):
        if not state["testing"]:
            raise RuntimeError("the solution is used while the tests are loaded: use it in a test")
        try:
            nodes = encode(tuple(args), told)
            more = encode(kwargs, told) if kwargs else None
        except (Unreturnable, RecursionError, MemoryError):
            give_up("unsendable", "an argument is too large or too deep")
        message = {"kind": "use", "seq": state["seq"], "how": how, "on": on, "name": name, "args": nodes, "kwargs": more}
        send(message)
        reply = receive()
        if "raise" in reply:
            raise getattr(builtins, reply["raise"])(*([reply["message"]] if reply["message"] else []))
        if "end" in reply:
            give_up("ended", reply["end"])
        try:
            value = decode(reply["nodes"], build)
        except (Exception, RecursionError):
            give_up("unreadable", "the returned value cannot be read")
        if state["back"] and how in ("entry", "call", "method"):
            value, after = value
            for before, now in zip(args, after):
                refill(before, now)
        return value

    def refill(before, now):
        """Makes a mutable argument what the solution made of it."""
        if type(before) is not type(now):
            return
        if type(before) is list:
            before[:] = now
        elif type(before) in (dict, set):
            before.clear()
            before.update(now)

    def told(x, t):
        if t is Handle or t is Entry:
            return {"t": "handle", "v": [number(x), "object"]}
        if t is type and getattr(builtins, x.__name__, None) is x:
            return {"t": "builtin", "v": x.__name__}
        give_up("unsendable", "an argument is a " + name_of(t) + ", which is not data")

    def build(kind, v, parts):
        if kind == "handle":
            return Handle(v[0], v[1], None)
        if kind == "builtin":
            return getattr(builtins, v)
        if kind == "record":
            return Parts.from_parts(v, parts)
        if kind == "enum":
            return Parts.from_parts(v[0], {"name": v[1]})
        raise ValueError(kind)

    class Parts:
        """An object told by its parts: a class of its name with its fields, equal to another one with the same."""

        @staticmethod
        def from_parts(name, parts):
            made = object.__new__(Parts)
            made.__dict__.update(parts)
            made.__dict__["class_name"] = name
            return made

        def __eq__(self, other):
            return type(other) is Parts and self.__dict__ == other.__dict__

        def __hash__(self):
            return hash(self.class_name)

    # --- handles

    get = object.__getattribute__

    def number(handle):
        if get(handle, "_handle_number") is None:
            name = get(handle, "_handle_name")
            found = use("name", None, name, (), None)
            if type(found) is not Handle:
                give_up("not_data", name + " of the solution is no object")
            object.__setattr__(handle, "_handle_number", get(found, "_handle_number"))
        return get(handle, "_handle_number")

    def refuse(what):
        def method(self, *_):
            give_up("not_data", "a " + get(self, "_handle_type") + " was asked for its " + what + ", which only data tells")

        return method

    class Handle:
        __slots__ = ("_handle_number", "_handle_type", "_handle_name")

        def __init__(self, number, type_name, name):
            object.__setattr__(self, "_handle_number", number)
            object.__setattr__(self, "_handle_type", type_name)
            object.__setattr__(self, "_handle_name", name)

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return use("get", number(self), name, (), None)

        def __setattr__(self, name, value):
            use("set", number(self), name, (value,), None)

        def __call__(self, *args, **kwargs):
            return use("call", number(self), "", args, kwargs)

        def __getitem__(self, key):
            return use("item", number(self), "", (key,), None)

        def __setitem__(self, key, value):
            use("set_item", number(self), "", (key, value), None)

        def __iter__(self):
            return use("iter", number(self), "", (), None)

        def __next__(self):
            return use("next", number(self), "", (), None)

        def __str__(self):
            return use("str", number(self), "", (), None)

        def __repr__(self):
            return "<" + get(self, "_handle_type") + ">"

        __bool__ = refuse("truth")
        __hash__ = refuse("hash")
        __len__ = None
        __contains__ = refuse("contents")
        __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = refuse("comparison")

    class Entry(Handle):
        """The function that is tested, called by its name."""

        __slots__ = ()

        def __call__(self, *args, **kwargs):
            return use("entry", None, "", args, kwargs)

    # --- names of the tests

    def solution_name(name):
        if name == state["entry"]:
            return state["candidate"]
        if name not in state["names"]:
            raise KeyError(name)
        if not state["testing"]:
            return Handle(None, "object", name)
        if name not in named:
            named[name] = use("name", None, name, (), None)
        return named[name]

    class Names(dict):
        def __missing__(self, name):
            if hasattr(builtins, name):
                raise KeyError(name)
            try:
                return solution_name(name)
            except KeyError:
                # Written tests use modules that the reference had imported, such as sys or math.
                if name in getattr(sys, "stdlib_module_names", ("sys", "math", "re", "collections", "itertools")):
                    return __import__(name)
                raise

    class Module(type(sys)):
        def __getattr__(self, name):
            try:
                return solution_name(name)
            except KeyError:
                raise AttributeError(name) from None

    # --- tests

    ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing all of ast

    def load(request):
        entry = request["entry"]
        state.update(entry=entry, names=request["names"], back=request["back"], seed=request["seed"])
        state["candidate"] = Entry(None, entry, entry)
        state["tests"] = tests = []
        names = Names(__name__="tests", __builtins__=builtins)
        sys.modules["tests"] = module_of("tests", names)
        sys.modules[request["module"]] = Module(request["module"])
        texts = [request["setup"], *request["tests"]]
        if any("random" in text for text in texts):
            import random  # seeded before each test
        if any("pytest" in text for text in texts):
            stand_in = {}
            exec(PYTEST, stand_in)
            sys.modules["pytest"] = stand_in["stand_in_for_pytest"](type(sys), give_up)
        try:
            exec(compile(request["setup"], "<setup>", "exec"), names)
            if "." not in entry:
                names[entry] = state["candidate"]
            for index, text in enumerate(request["tests"]):
                tests.extend(collect(index, text, names))
        except BaseException as e:
            return {"kind": "bad_tests", "message": (type(e).__name__ + ": " + message_of(e))[:200]}
        return {"kind": "tests", "ids": [name[:200] for name, _ in tests]}

    def module_of(name, names):
        module = type(sys)(name)
        object.__setattr__(module, "names", names)
        return module

    def collect(index, text, names):
        tree = compile(text, "<test>", "exec", ONLY_AST)
        defined = [n for n in tree.body if type(n).__name__ in ("FunctionDef", "ClassDef")]
        check = [n for n in defined if n.name == "check" and hasattr(n, "args") and len(n.args.args) == 1]
        is_test = [n for n in defined if n.name.lower().startswith("test") or is_case(n)]
        code = compile(text, "<test %d>" % index, "exec")
        if not check and not is_test:
            return [(str(index), lambda: exec(code, names))]
        exec(code, names)
        if check:
            function = names["check"]
            return [(str(index) + ".check", lambda: function(state["candidate"]))]
        found = []
        for node in is_test:
            found.extend((str(index) + "." + name, run) for name, run in members(node.name, names[node.name]))
        return found

    def is_case(node):
        bases = getattr(node, "bases", ())
        return any("TestCase" in (getattr(base, "id", ""), getattr(base, "attr", "")) for base in bases)

    def members(name, x):
        """The tests of a function or a class, by name."""
        if not isinstance(x, type):
            return parametrized(name, x)
        unittest = sys.modules.get("unittest")
        if unittest and issubclass(x, unittest.TestCase):
            return [(name + "." + m, lambda m=m: run_case(unittest, x(m))) for m in unittest.TestLoader().getTestCaseNames(x)]
        found = []
        for m in [m for m in vars(x) if m.startswith("test")]:
            found.extend(parametrized(name + "." + m, lambda *args, m=m, **kw: run_method(x, m, args, kw), vars(x)[m]))
        return found

    def parametrized(name, run, marked=None):
        given = getattr(marked or run, "parameters", None)
        if given is None:
            return [(name, run)]
        return [("%s[%d]" % (name, i), lambda kw=kw: run(**kw)) for i, kw in enumerate(given)]

    def run_method(class_, name, args, kwargs):
        made = class_()
        for step in ("setup_method", name, "teardown_method"):
            if hasattr(made, step):
                getattr(made, step)(*args, **(kwargs if step == name else {}))

    def run_case(unittest, case):
        result = unittest.TestResult()
        unittest.TestSuite([case]).run(result)
        broken = [*result.failures, *result.errors]
        if broken:
            lines = [line for line in broken[0][1].splitlines() if line and not line.startswith(" ")]
            raise AssertionError(lines[-1] if lines else "")
        if result.testsRun != 1 or not result.wasSuccessful() or result.skipped or result.expectedFailures:
            raise AssertionError("the test was skipped or expected to fail")

    def test(request):
        if "random" in sys.modules:
            sys.modules["random"].seed(state["seed"])
        state.update(poison=None, testing=True, seq=request["seq"])
        outcome = ("passed", "")
        try:
            state["tests"][request["index"]][1]()
        except AssertionError as e:
            outcome = ("failed", "AssertionError: " + message_of(e))
        except BaseException as e:
            outcome = ("raised", type(e).__name__ + ": " + message_of(e))
        state["testing"] = False
        outcome, message = state["poison"] or outcome
        return {"kind": "done", "outcome": outcome, "message": message[:200]}

    # --- predicates

    predicates = {}

    def accept(request):
        source = request["source"]
        try:
            if source not in predicates:
                names = {"__name__": "predicate"}
                exec(compile(source, "<predicate>", "exec"), names)
                predicates[source] = names["accept"]
        except BaseException as e:
            return {"kind": "bad_tests", "message": (type(e).__name__ + ": " + message_of(e))[:200]}
        try:
            args, got = decode(request["args"], build), decode(request["got"], build)
            accepted = bool(predicates[source](args, got))
        except BaseException as e:
            return {"kind": "refused", "message": (type(e).__name__ + ": " + message_of(e))[:200]}
        return {"kind": "accepted" if accepted else "refused", "message": ""}

    operations = {"hello": lambda _: {"kind": "ready"}, "load": load, "test": test, "accept": accept}
    while True:
        request = receive()
        reply = operations[request["op"]](request)
        reply["seq"] = request["seq"]
        send(reply)


main()
