# Frames (4-byte big-endian length, JSON) between this trusted script and the side outside. CPython 3.8 or newer, standard
# library only. What must hold: nothing that anything else prints can become a frame, and no other process of the sandbox
# can read this one's memory or descriptors.
import ctypes
import fcntl
import json
import os
import sys


class Channel:
    def __init__(self):
        if ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) != 0:  # PR_SET_DUMPABLE
            raise OSError("this process can be looked into")
        self.inbound = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 200)
        self.outbound = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 201)
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)

    def _exactly(self, count):
        parts = []
        while count:
            part = os.read(self.inbound, min(count, 1 << 20))
            if not part:
                os._exit(0)  # nobody listens any more
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def receive(self):
        return json.loads(self._exactly(int.from_bytes(self._exactly(4), "big")))

    def send(self, message):
        body = json.dumps(message).encode("ascii")
        data = memoryview(len(body).to_bytes(4, "big") + body)
        while data:
            data = data[os.write(self.outbound, data) :]

    def close(self):
        os.close(self.inbound)
        os.close(self.outbound)
