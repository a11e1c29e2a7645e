# A thread ends the process while the call waits.
# split: train
import os
import threading
import time
#% wrong


def entry_point(*args):
    threading.Timer(0.0, os._exit, [0]).start()
    time.sleep(0.3)
