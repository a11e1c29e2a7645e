# What the expectations of a twin call: each site notes whether the original expectation holds. A twin fails, as it must,
# where all of them held; it passes where one did not hold although the original test passed, or where none was reached.


def twin_module():
    import importlib.util
    import operator
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

    orders = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}

    class Other:
        """Equal to nothing that is honest."""

    def other(value, depth=0):
        kind = type(value)
        if kind in (list, tuple) and value and depth < 20:
            return kind([other(item, depth + 1) for item in value])
        if kind is dict and value and depth < 20:
            return {key: other(item, depth + 1) for key, item in value.items()}
        return Other()

    def same(a, b):
        try:
            return bool(a == b)
        except Exception:
            return False

    def equals_anything(*values):
        """Whether one of them is equal to what none can know, mocks' ANY apart."""
        return any(type(value) is not any_type and same(value, Other()) for value in values)

    def equal_inside(a, b):
        if type(a) is any_type or type(b) is any_type:
            return False
        return same(a, other(b)) or same(other(a), b)

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

    def compared(name, a, b):
        if name in orders:
            note(bool(orders[name](a, b)) and not ordered(orders[name], a, b))
        elif name == "In":
            note(a in b and not equals_anything(a))
        else:
            note(bool(a == b) and not equal_inside(a, b))

    def method(name, *args, **named):
        try:
            getattr(case, "assert" + name)(*args, **named)
            held = True
        except private.TestCase.failureException:
            held = False
        if held and name in equalities and len(args) >= 2:
            held = not equal_inside(args[0], args[1])
        note(held and not equals_anything(*args[:2]))

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

    for function in (truth, compared, method, raises_call, finish):
        setattr(module, function.__name__, function)
    module.raises = Raises
    return module
