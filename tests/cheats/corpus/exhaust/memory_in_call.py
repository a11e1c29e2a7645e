# The third call in a process takes memory until something gives.
# split: train
# forms: plain, split
#% wrong
_plain, _calls = entry_point, []


def entry_point(*args):
    _calls.append(1)
    hoard = []
    while len(_calls) % 3 == 0:
        hoard.append(bytearray(b"x") * (32 << 20))
    return _plain(*args)
