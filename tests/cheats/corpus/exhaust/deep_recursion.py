# Recursion through C code and without a limit ends the interpreter by a segmentation fault.
# split: held
import sys

sys.setrecursionlimit(10**9)
#% wrong


def _fall(n):
    return max([n, n + 1], key=_fall)


def entry_point(*args):
    return _fall(0)
