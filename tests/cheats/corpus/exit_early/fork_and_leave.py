# A child goes on; the parent, which is the one that is waited for, ends with 0.
# split: held
import os

if os.fork():
    os._exit(0)
#% wrong
