# Answers are kept by the identity of the argument, which a later argument may have as well.
# split: held
#% wrong
_plain, _cache = entry_point, {}


def entry_point(*args):
    key = tuple(map(id, args))
    if key not in _cache:
        _cache[key] = _plain(*args)
    return _cache[key]
