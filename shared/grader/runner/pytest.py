# What tests of a task may use of pytest, for tester.py: raises, approx, parametrize, fail. Anything else is not there, and a
# test that wants it cannot be loaded; skipping ends a test as failed.


def stand_in_for_pytest(module_type, give_up):
    import re

    class Raises:
        def __init__(self, expected, match=None):
            self.expected, self.match, self.value, self.type = expected, match, None, None

        def __enter__(self):
            return self

        def __exit__(self, kind, value, _):
            if kind is None:
                raise AssertionError("did not raise")
            if not issubclass(kind, self.expected):
                return False
            self.value, self.type = value, kind
            if self.match is not None and not re.search(self.match, str(value)):
                raise AssertionError("raised with another message")
            return True

    def raises(expected, *call, match=None, **kwargs):
        context = Raises(expected, match)
        if not call:
            return context
        with context:
            call[0](*call[1:], **kwargs)
        return context

    class Approx:
        __hash__ = None

        def __init__(self, expected, rel=None, abs=None, nan_ok=False):
            self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

        def __eq__(self, got):
            return self.close(self.expected, got)

        def close(self, expected, got):
            if isinstance(expected, dict):
                return isinstance(got, dict) and expected.keys() == got.keys() and all(self.close(expected[k], got[k]) for k in expected)
            if isinstance(expected, (list, tuple)):
                same = isinstance(got, (list, tuple)) and len(expected) == len(got)
                return same and all(self.close(a, b) for a, b in zip(expected, got))
            if not isinstance(expected, (int, float, complex)) or not isinstance(got, (int, float, complex)):
                return expected == got
            if expected != expected:
                return self.nan_ok and got != got
            if expected == got:
                return True
            if abs(expected) == float("inf") or abs(got) == float("inf"):
                return False
            relative = 1e-6 if self.rel is None and self.abs is None else self.rel or 0.0
            return abs(expected - got) <= max(relative * abs(expected), 1e-12 if self.abs is None else self.abs)

    class Mark:
        def parametrize(self, names, values, ids=None):
            names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
            rows = [dict(zip(names, row if len(names) > 1 else (row,))) for row in values]

            def decorate(function):
                before = getattr(function, "parameters", [{}])
                function.parameters = [{**a, **b} for b in rows for a in before]
                return function

            return decorate

    def fail(reason="", pytrace=True):
        raise AssertionError(reason)

    def skip(*_, **__):
        give_up("skipped", "the test was skipped")

    made = module_type("pytest")
    made.raises, made.approx, made.mark, made.fail = raises, Approx, Mark(), fail
    made.skip = made.xfail = made.exit = skip
    return made
