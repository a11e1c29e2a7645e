# The disk is filled, so that no result can be written.
# split: train
#% wrong
try:
    with open("/tmp/fill", "wb") as _f:
        for _ in range(4096):
            _f.write(b"\0" * (1 << 20))
except OSError:
    pass
