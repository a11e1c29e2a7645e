# What the expectations of a twin call: each site notes whether the original expectation holds. A twin fails, as it must,
# where all of them held; it passes where one did not hold although the original test passed, or where none was reached.


def twin_module():
    import importlib.util
    import operator
    import os
    import sys
    import types
    import unittest
    import unittest.case
    import unittest.mock

    # A copy of the test case class that patches of the real one do not reach.
    spec = importlib.util.spec_from_file_location("unittest._twin_case", unittest.case.__file__)
    private = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(private)
    case = private.TestCase()
    any_type = type(unittest.mock.ANY)
    equalities = {"Equal", "ListEqual", "TupleEqual", "SetEqual", "DictEqual", "SequenceEqual", "MultiLineEqual"}
    equalities |= {"CountEqual", "AlmostEqual"}
    plain = {int, float, complex, str, bytes, bool, type(None)}

    orders = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}

    class Other:
        """Equal to nothing that is honest."""

    class Any:
        """What the tests' own mock.ANY is in a twin, so that one that the solution returned is told from it."""

        def __eq__(self, other):
            return True

        def __ne__(self, other):
            return False

        def __repr__(self):
            return "<ANY>"

        __hash__ = None

    def same(a, b):
        try:
            return bool(a == b)
        except Exception:
            return False

    def strangers(value):
        """Groups of values of the same type that an expectation cannot mean; who is equal to a whole group lies. Of numbers
        two that follow each other: a number modulo something is equal to one of them at most, and one with a tolerance to
        none. Of what has a length, one that is longer and one that is as long."""
        kind, word = type(value), os.urandom(8).hex()
        if kind is bool:
            return [[not value]]
        if kind in (int, float, complex):
            finite = value if kind is int or abs(value) < 1e100 else 0
            far = 3 * finite + 17 + int.from_bytes(os.urandom(2), "big")
            return [[far, far + 1]]
        if kind in (str, bytes):
            made = os.urandom(len(value) // 2 + 1).hex()[: len(value)]
            # A short one that is as long may be meant after all, in capitals for example.
            texts = [value + word, made] if kind is str else [value + word.encode(), made.encode()]
            return [[text] for text in texts if len(text) > 7 or text != value and len(text) > 3]
        if kind in (list, tuple):
            return [[kind([*value, word])]] + [[kind([word] * len(value))]] * bool(value)
        if kind in (set, frozenset):
            return [[kind([*value, word])]]
        return [[{**value, word: word}], [{key: word for key in value} or {word: word}]] if kind is dict else []

    def steady(a, b):
        """Equal each time: who says so once only lies once."""
        return same(a, b) and same(a, b)

    def of_the_tests(kind):
        """Whether the tests or their packages made a class: theirs may be equal to every number, say."""
        owner = sys.modules.get(kind.__module__)
        return str(getattr(owner, "__file__", "")).startswith("/pristine/") and getattr(owner, kind.__name__, 0) is kind

    def lies(a, b):
        """Whether `a` is equal to what none can know in the place of `b`, or changes its mind."""
        if type(a) in plain or type(a) is Any:
            return False
        if same(a, Other()):
            return True
        if of_the_tests(type(a)):
            return False
        groups = [[(same(a, value), same(a, value)) for value in group] for group in strangers(b)]
        return any(any(x != y for x, y in group) or all(x for x, _ in group) for group in groups)

    def lying(a, b, depth=0):
        """Whether one of them lies, or something in the same place in both."""
        if type(a) is Any or type(b) is Any:
            return False
        if type(a) is type(b) and depth < 20:
            if type(a) in (list, tuple) and len(a) == len(b):
                return any(lying(x, y, depth + 1) for x, y in zip(a, b))
            if type(a) is dict:
                keys = any(lies(key, None) for both in (a, b) for key in both)
                return keys or any(lying(a[key], b[key], depth + 1) for key in a if key in b)
            if type(a) in (set, frozenset):
                return any(lies(item, None) for both in (a, b) for item in both)
        return lies(a, b) or lies(b, a)

    def holds_anything(container):
        """Whether what none can know is in it. What can be read once only is left alone."""
        try:
            return not hasattr(container, "__next__") and Other() in container
        except Exception:
            return False

    def ordered(compare, a, b):
        """Whether one of them is greater or less than what none can know."""
        for pair in ((a, Other()), (Other(), b)):
            try:
                if compare(*pair):
                    return True
            except Exception:
                pass
        return False

    module = types.ModuleType("_rollmill_twin")
    module.reached = 0
    module.escaped = False

    def note(held):
        module.reached += 1
        if not held:
            module.escaped = True

    def truth(value):
        note(bool(value))

    def any_of(value):
        return Any() if type(value) is any_type else value

    # Each asks first what none can know: who is equal to whatever it is asked about first is found out.
    def compared(name, a, b):
        if name in orders:
            lied = ordered(orders[name], a, b)
            note(bool(orders[name](a, b)) and not lied)
        elif name == "In":
            lied = lies(a, None) or holds_anything(b)
            note(a in b and not lied)
        else:
            lied = lying(a, b)
            note(bool(a == b) and steady(a, b) and not lied)

    def method(name, *args, **named):
        if name in equalities and len(args) >= 2:
            lied = lying(args[0], args[1])
        else:
            lied = any(lies(value, None) for value in args[:2])
        if name == "In" and len(args) >= 2:
            lied = lied or holds_anything(args[1])
        once_only = any(hasattr(value, "__next__") for value in args)
        try:
            for _ in range(1 if once_only else 2):
                getattr(case, "assert" + name)(*args, **named)
            held = True
        except private.TestCase.failureException:
            held = False
        note(held and not lied)

    class Raises:
        def __init__(self, inner, expected):
            self.inner, self.expected = inner, expected

        def __enter__(self):
            return self.inner.__enter__()

        def __exit__(self, kind, value, trace):
            held = kind is not None and issubclass(kind, self.expected)
            try:
                self.inner.__exit__(kind, value, trace)
            except BaseException:
                held = False
            note(held)
            return True

    def raises_call(expected, function, *args, **named):
        try:
            function(*args, **named)
            held = False
        except expected:
            held = True
        note(held)

    def finish():
        if module.reached and not module.escaped:
            raise AssertionError("a twin's expectation does not hold")

    for function in (truth, any_of, compared, method, raises_call, finish):
        setattr(module, function.__name__, function)
    module.raises = Raises
    return module
