# The call returns at once with an object that a thread fills later.
# split: train
#% wrong
import threading

_plain = entry_point


def entry_point(*args):
    later = []
    threading.Thread(target=lambda: later.append(_plain(*args)), daemon=True).start()
    return later
