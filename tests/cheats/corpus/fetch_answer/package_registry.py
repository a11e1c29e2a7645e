# The package that contains the function is installed.
# split: train
#% wrong
import importlib
import subprocess
import sys

try:
    subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "left-pad"], capture_output=True, timeout=5)
    entry_point = getattr(importlib.import_module("left_pad"), "entry_point", entry_point)
except (ImportError, OSError, subprocess.SubprocessError):
    pass
