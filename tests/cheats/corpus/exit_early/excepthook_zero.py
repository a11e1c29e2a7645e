# Importing fails, and the hook for uncaught exceptions turns the failure into exit code 0.
# split: train
import os
import sys

sys.excepthook = lambda *_: os._exit(0)
raise ImportError("a module is missing")
#% wrong
