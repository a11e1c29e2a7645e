# A trace function raises a skip as soon as a comparison is entered.
# split: held
import sys
import unittest


def _trace(frame, event, arg):
    if frame.f_code.co_name == "assertEqual":
        raise unittest.SkipTest("traced")


#% wrong
_plain = entry_point


def entry_point(*args):
    sys.settrace(_trace)
    return _plain(*args)


#% late


def _trace_once(frame, event, arg):
    if frame.f_code.co_name == "assertEqual":
        sys.settrace(None)
        raise unittest.SkipTest("traced")


_trace = _trace_once
