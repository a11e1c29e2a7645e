# Recursion without a limit ends the interpreter by a segmentation fault.
# split: held
import sys

sys.setrecursionlimit(10**9)
#% wrong


def _fall(n):
    return [_fall(n + 1)] if n >= 0 else n


def entry_point(*args):
    return _fall(0)
