# The third call in a process sleeps past every limit.
# split: train
# forms: plain
import time
#% wrong
_plain, _calls = entry_point, []


def entry_point(*args):
    _calls.append(1)
    if len(_calls) % 3 == 0:
        time.sleep(10**6)
    return _plain(*args)
