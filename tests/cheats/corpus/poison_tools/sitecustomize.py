# Modules that the interpreter imports by itself when it starts.
# split: train
# forms: plain
#% wrong
#% file sitecustomize.py
import os

os._exit(0)
#% file usercustomize.py
import os

os._exit(0)
