# Every call returns the same object, which later calls change after it was kept.
# split: train
#% wrong
_plain, _shared = entry_point, []


def entry_point(*args):
    got = _plain(*args)
    if type(got) is list:
        _shared[:] = got
        return _shared
    return got
