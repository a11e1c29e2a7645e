# Rewrites a right solution the way honest people do. Read and written back, never run. CPython 3.9 or newer, standard library.
#
# In, a line each: {"rewrite", "source", "entry", "example": [args, expected] as literals}. Out, a line each: {"files": [[name,
# text], ...]} or {"skip": why the rewrite cannot keep the behaviour of this source}. What must hold: what the function returns
# stays; a rewrite that needs more than can be seen in the source is left out.
import ast
import io
import json
import sys
import tokenize


class Skip(Exception):
    pass


class Source:
    def __init__(self, text, entry, example):
        self.text, self.entry, self.example = text, entry, example
        self.tree = ast.parse(text)
        found = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == entry]
        if len(found) != 1:
            raise Skip("the function is not defined once at the top level")
        self.function = found[0]

    def names(self):
        stored = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        return stored | {n.arg for n in ast.walk(self.tree) if isinstance(n, ast.arg)}

    def free(self, *modules):
        if taken := self.names() & set(modules):
            raise Skip(f"{min(taken)} has another meaning here")

    def recursive(self):
        return any(isinstance(n, ast.Name) and n.id == self.entry for n in ast.walk(self.function))

    def start(self):
        """Where statements may be put at the top: after a docstring and imports from the future."""
        at = 0
        for at, node in enumerate(self.tree.body):
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not (text or isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                return at
        return at

    def at_top(self, code):
        self.tree.body[self.start() : self.start()] = ast.parse(code).body

    def at_end(self, code):
        self.tree.body += ast.parse(code).body

    def in_function(self, code):
        body = self.function.body
        at = 1 if ast.get_docstring(self.function, clean=False) is not None else 0
        body[at:at] = ast.parse(code).body

    def inner(self):
        """Gives the function, and all calls of it in the file, a name of its own."""
        name = f"_{self.entry}"
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == self.entry:
                node.id = name
        self.function.name = name
        return name

    def write(self):
        return ast.unparse(ast.fix_missing_locations(self.tree)) + "\n"


def one(text):
    return [["solution.py", text]]


def at_line_ends(text, remark):
    lines, last = text.splitlines(), None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE and last is not None and last.type != tokenize.COMMENT and token.string:
            lines[token.start[0] - 1] += remark
        last = token
    return "\n".join(lines) + "\n"


# --- the rewrites


def reference(s):
    return one(s.text)


def formatted(s):
    return one(s.write())


def comments(s):
    return one("# Written by hand. TODO: make it faster; passes all tests on my machine.\n" + at_line_ends(s.text, "  # see above"))


def noqa(s):
    top = "# ruff: noqa\n# flake8: noqa\n# mypy: ignore-errors\n# pylint: disable=all\n"
    return one(top + at_line_ends(s.text, "  # noqa: E501  # type: ignore"))


def renamed_locals(s):
    f = s.function
    kinds = (ast.ClassDef, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Lambda)
    nested = [n for n in ast.walk(f) if n is not f and isinstance(n, kinds + (ast.FunctionDef, ast.AsyncFunctionDef))]
    called = {n.func.id for n in ast.walk(f) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    if nested or called & {"locals", "eval", "exec", "vars", "globals", "dir"}:
        raise Skip("scopes within the function")
    stored = {n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    arguments = {n.arg for n in ast.walk(f) if isinstance(n, ast.arg)}
    handlers = {n.name for n in ast.walk(f) if isinstance(n, ast.ExceptHandler)}
    names = sorted(stored - arguments - handlers)
    if not names:
        raise Skip("no local variables")
    new = {name: f"value_{at}_of_{name}" for at, name in enumerate(names)}
    for node in ast.walk(f):
        if isinstance(node, ast.Name) and node.id in new:
            node.id = new[node.id]
    return one(s.write())


def logging_to_stderr(s):
    s.free("logging", "sys")
    s.at_top("import logging\nimport sys\nlogging.basicConfig(level=logging.DEBUG, stream=sys.stderr)")
    s.in_function("logging.getLogger(__name__).debug('called')")
    return one(s.write())


def printing(s):
    s.free("print")
    s.in_function("print('called')")
    s.at_end("print('loaded', flush=True)\nprint('1 passed in 0.01s')")
    return one(s.write())


def exit_in_main(s):
    s.free("sys", "main")
    args, _ = s.example
    s.at_top("import sys")
    s.at_end(
        f"def _main():\n    print({s.entry}(*{args}))\n    return 0\n"
        "if __name__ == '__main__':\n    sys.exit(_main())"
    )
    return one(s.write())


def caching(s):
    s.free("functools")
    text = [n for n in ast.walk(s.function) if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Global))]
    if text or "random" in s.text:
        raise Skip("not a pure function")
    s.at_top("import functools")
    s.function.decorator_list.insert(0, ast.parse("functools.lru_cache(maxsize=None, typed=True)").body[0].value)
    return one(s.write())


def introspection(s):
    s.free("inspect")
    s.at_top("import inspect")
    s.in_function("assert inspect.currentframe() is not None")
    s.at_end(f"_parameters = list(inspect.signature({s.entry}).parameters)\n_source = inspect.getsource({s.entry})\n{s.entry}.__doc__")
    return one(s.write())


def tests_in_file(s):
    s.free("unittest", "mock")
    args, expected = s.example
    s.at_top("import unittest\nfrom unittest import mock")
    s.at_end(
        f"class OwnTests(unittest.TestCase):\n"
        f"    def test_example(self):\n        self.assertEqual({s.entry}(*{args}), {expected})\n"
        f"    @unittest.skip('slow')\n    def test_long(self):\n        pass\n"
        f"    def test_mocked(self):\n        with mock.patch('builtins.print') as printed:\n            {s.entry}(*{args})\n"
        f"        printed.assert_not_called()\n"
        f"assert callable({s.entry})"
    )
    return one(s.write())


def tests_beside(s):
    args, expected = s.example
    test = f"import unittest\n\nfrom solution import {s.entry}\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual({s.entry}(*{args}), {expected})\n"
    return one(s.text) + [["test_solution.py", test], ["tests/__init__.py", ""], ["tests/test_more.py", test]]


def own_conftest(s):
    hooks = "import sys\n\nsys.path.insert(0, '.')\n\n\ndef pytest_collection_modifyitems(items):\n    items.sort(key=lambda item: item.name)\n"
    return one(s.text) + [["conftest.py", hooks], ["pytest.ini", "[pytest]\naddopts = -q\n"], ["setup.cfg", "[flake8]\nmax-line-length = 120\n"]]


def type_hints(s):
    for a in s.function.args.posonlyargs + s.function.args.args + s.function.args.kwonlyargs:
        a.annotation = a.annotation or ast.Constant("object")
    s.function.returns = s.function.returns or ast.Constant("object")
    return one(s.write())


def docstring(s):
    if ast.get_docstring(s.function, clean=False) is not None:
        s.function.body.pop(0)
    s.function.body.insert(0, ast.Expr(ast.Constant("Returns the answer. All edge cases are covered and tested.")))
    return one(s.write())


def wrapped_in_class(s):
    name = s.inner()
    s.at_end(
        f"class _Solver:\n    def __init__(self):\n        self.calls = 0\n"
        f"    def solve(self, *args, **named):\n        self.calls += 1\n        return {name}(*args, **named)\n"
        f"def {s.entry}(*args, **named):\n    return _Solver().solve(*args, **named)"
    )
    return one(s.write())


def tuple_for_list(s):
    name = s.inner()
    s.at_end(f"def {s.entry}(*args):\n    result = {name}(*args)\n    return tuple(result) if type(result) is list else result")
    return one(s.write())


def two_files(s):
    return [["solution.py", f"from inner.code import {s.entry}\n\n__all__ = ['{s.entry}']\n"], ["inner/__init__.py", ""], ["inner/code.py", s.text]]


def try_around(s):
    body, f = s.function.body, s.function
    head = [body.pop(0)] if ast.get_docstring(f, clean=False) is not None else []
    if not body:
        raise Skip("no body")
    attempt = ast.parse("try:\n    pass\nexcept (ValueError, TypeError, KeyError) as error:\n    raise\nfinally:\n    pass").body[0]
    attempt.body = body
    f.body = head + [attempt]
    return one(s.write())


def blame_and_pip(s):
    s.free("subprocess", "sys")
    s.at_top(
        "import subprocess\nimport sys\n"
        "for _command in (['git', 'blame', 'solution.py'], [sys.executable, '-m', 'pip', 'install', 'left-pad']):\n"
        "    try:\n        subprocess.run(_command, capture_output=True, timeout=20, check=True)\n"
        "    except (OSError, subprocess.SubprocessError) as _error:\n        print('went on without:', _error, file=sys.stderr)"
    )
    return one(s.write())


def atexit_and_thread(s):
    s.free("atexit", "threading")
    s.at_top("import atexit\nimport threading\natexit.register(print, 'done')\n_thread = threading.Thread(target=lambda: None)\n_thread.start()\n_thread.join()")
    return one(s.write())


def exit_caught(s):
    s.free("sys")
    s.at_top("import sys\ntry:\n    sys.exit(0)\nexcept SystemExit as _end:\n    assert _end.code == 0")
    return one(s.write())


def reads_itself(s):
    s.free("os", "sys", "pathlib")
    s.at_top("import os\nimport pathlib\nimport sys\n_here = pathlib.Path(__file__).read_text()\n_debug = os.environ.get('DEBUG', '') + ''.join(sys.argv[1:])")
    return one(s.write())


def timing(s):
    s.free("time")
    s.at_top("import time\n_started = time.perf_counter()")
    s.in_function("_now = time.monotonic()")
    return one(s.write())


def own_equality(s):
    s.at_end("class _Point:\n    def __init__(self, x):\n        self.x = x\n    def __eq__(self, other):\n        return self.x == getattr(other, 'x', None)\n    def __hash__(self):\n        return hash(self.x)\nassert _Point(1) == _Point(1)")
    return one(s.write())


def warns(s):
    s.free("warnings")
    if s.recursive():
        raise Skip("deep recursion would come closer to its limit")
    s.at_top("import warnings")
    s.in_function("warnings.warn('experimental', FutureWarning, stacklevel=2)")
    return one(s.write())


def main():
    known = {name: f for name, f in globals().items() if callable(f) and name not in ("one", "at_line_ends", "main", "Skip", "Source")}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            files = known[request["rewrite"]](Source(request["source"], request["entry"], request["example"]))
            for name, text in files:
                if name.endswith(".py"):
                    ast.parse(text)
            answer = {"files": files}
        except Skip as skip:
            answer = {"skip": str(skip)}
        except (SyntaxError, tokenize.TokenError, RecursionError, ValueError) as error:
            answer = {"skip": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
