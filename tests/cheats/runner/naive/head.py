import sys
import time
import unittest

sys.path.insert(0, "/work")
try:
    import conftest  # as a test runner would
except ImportError:
    pass

started = time.time()
