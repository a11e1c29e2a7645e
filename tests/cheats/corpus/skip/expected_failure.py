# Every failure becomes an expected one.
# split: held
import unittest

unittest.TestCase.__unittest_expecting_failure__ = True
#% wrong
