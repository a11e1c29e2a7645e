# The product code raises the framework's skip.
# split: train
import unittest
#% wrong


def entry_point(*args):
    raise unittest.SkipTest("not supported on this platform")
