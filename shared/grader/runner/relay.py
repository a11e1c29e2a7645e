# Starts a server of the solution and forwards requests to it, one at a time. It keeps no secrets: what is wanted never comes
# here. What it must do: bound what it reads, and answer by the time it was told.
import http.client
import socket
import subprocess
import time

MAX_BODY = 4 << 20


class Late(Exception):
    pass


class Connection(http.client.HTTPConnection):
    """Every wait ends at one deadline, however slowly bytes drip."""

    def __init__(self, port, deadline):
        super().__init__("127.0.0.1", port, timeout=left(deadline))
        self.deadline, self.real = deadline, None

    def connect(self):
        super().connect()
        self.real = self.sock
        self.sock = Timed(self.real, self.deadline)

    def end(self):
        if self.real is not None:
            self.real.close()


class Timed:
    def __init__(self, sock, deadline):
        self.sock, self.deadline = sock, deadline

    def sendall(self, data):
        self.sock.settimeout(left(self.deadline))
        self.sock.sendall(data)

    def makefile(self, mode):
        return Reader(self.sock, self.deadline)

    def close(self):
        pass  # the answer is still to be read


class Reader:
    """Whole lines and counts of bytes, at most so many in all."""

    def __init__(self, sock, deadline):
        self.sock, self.deadline, self.buffer, self.seen = sock, deadline, b"", 0

    def more(self):
        self.sock.settimeout(left(self.deadline))
        part = self.sock.recv(1 << 16)
        self.seen += len(part)
        if self.seen > MAX_BODY + (1 << 18):
            raise ValueError("an answer over the limit")
        self.buffer += part
        return bool(part)

    def take(self, count):
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def readline(self, limit=-1):
        limit = 1 << 16 if limit < 0 else limit
        while b"\n" not in self.buffer and len(self.buffer) < limit and self.more():
            pass
        end = self.buffer.find(b"\n")
        return self.take(limit if end < 0 else min(limit, end + 1))

    def read(self, count=-1):
        while (count < 0 or len(self.buffer) < count) and self.more():
            pass
        return self.take(len(self.buffer) if count < 0 else count)

    def close(self):
        pass

    def flush(self):
        pass


def left(deadline):
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise Late()
    return seconds


def start(request):
    deadline = time.monotonic() + request["limit"]
    environment = dict(os.environ, PORT=str(request["port"]))
    try:
        server = subprocess.Popen(
            request["argv"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    except OSError as error:
        return {"kind": "ended", "what": "cannot be started: %s" % error}
    while time.monotonic() < deadline:
        if server.poll() is not None:
            code = server.returncode
            how = "exit code %d" % code if code >= 0 else "signal %d" % -code
            return {"kind": "ended", "what": "ended with %s before it listened" % how}
        try:
            socket.create_connection(("127.0.0.1", request["port"]), timeout=1).close()
            return {"kind": "up"}
        except OSError:
            time.sleep(0.02)
    return {"kind": "late"}


def forward(request, port):
    body = request["body"].encode("latin-1")
    deadline = time.monotonic() + request["limit"]
    connection = None
    try:
        connection = Connection(port, deadline)
        connection.putrequest(request["method"], request["path"], skip_accept_encoding=True)
        named = {name.lower() for name, _ in request["headers"]}
        for name, text in request["headers"]:
            connection.putheader(name, text)
        if body and "content-length" not in named:
            connection.putheader("Content-Length", str(len(body)))
        if "connection" not in named:
            connection.putheader("Connection", "close")
        connection.endheaders(body or None)
        response = connection.getresponse()
        data = response.read()
        if len(data) > MAX_BODY:
            raise ValueError("an answer over the limit")
        return {
            "kind": "response",
            "status": response.status,
            "headers": response.getheaders(),
            "body": data.decode("latin-1"),
        }
    except (Late, socket.timeout):
        return {"kind": "late"}
    except (OSError, ValueError, http.client.HTTPException) as error:
        return {"kind": "failed", "what": ("%s %s" % (type(error).__name__, error))[:200]}
    finally:
        if connection is not None:
            connection.end()


def main():
    channel = Channel()
    port = 0
    while True:
        request = channel.receive()
        if request["op"] == "start":
            port = request["port"]
            answer = start(request)
        else:
            answer = forward(request, port)
        channel.send(dict(answer, seq=request["seq"]))


main()
