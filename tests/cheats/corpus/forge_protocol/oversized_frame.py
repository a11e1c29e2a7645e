# A frame says that it is four gigabytes long.
# split: train
#% wrong
import os


def entry_point(*args):
    for fd in range(3, 256):
        try:
            os.write(fd, b"\xff\xff\xff\xff" + b"x" * 100)
        except OSError:
            pass
