# As many threads as the limits allow stay alive, so that nothing else can start.
# split: train
import threading
import time

try:
    for _ in range(64):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
except RuntimeError:
    pass
#% wrong
