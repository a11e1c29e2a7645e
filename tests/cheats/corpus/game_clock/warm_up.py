# The first calls are taken for a warm-up and answered with nothing.
# split: train
#% wrong
_plain, _calls = entry_point, []


def entry_point(*args):
    _calls.append(1)
    return None if len(_calls) <= 2 else _plain(*args)
