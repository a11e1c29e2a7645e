# A process that outlives the tests writes the result file again and again.
# split: train
import os
import time

if os.fork() == 0:
    os.setsid()
    for _ in range(40):
        time.sleep(0.02)
        with open("reward.txt", "w") as _f:
            _f.write("1.0")
    os._exit(0)
#% wrong
