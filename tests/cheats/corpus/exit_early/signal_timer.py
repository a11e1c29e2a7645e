# An interval timer's signal handler ends the process while the call sleeps.
# split: train
import os
import signal
import time

signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
#% wrong


def entry_point(*args):
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    time.sleep(0.3)
