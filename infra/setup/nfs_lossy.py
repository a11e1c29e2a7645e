"""A proxy before an NFS server that loses the answer to every LINK and RENAME once: the server does it, the connection ends, the
client asks again over a new one, and the server does not know that it was asked before. usage: lossy.py PORT SERVER_PORT"""

import socket
import struct
import sys
import threading

NFS, VERSION, LOSE = 100003, 3, (14, 15)  # RFC 1813: procedures RENAME and LINK
lost = set()


def exactly(stream, count):
    out = b""
    while len(out) < count:
        piece = stream.recv(count - len(out))
        if not piece:
            raise EOFError
        out += piece
    return out


def record(stream):
    """One RPC record (RFC 5531, section 11): its bytes with the marks, and its content."""
    raw, content = b"", b""
    while True:
        mark = exactly(stream, 4)
        (length,) = struct.unpack(">I", mark)
        piece = exactly(stream, length & 0x7FFFFFFF)
        raw, content = raw + mark + piece, content + piece
        if length & 0x80000000:
            return raw, content


def end(*streams):
    for stream in streams:
        try:
            stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        stream.close()


def calls(client, server, losing):
    try:
        while True:
            raw, content = record(client)
            xid, kind, _, program, version, procedure = struct.unpack(">6I", content[:24])
            if (kind, program, version) == (0, NFS, VERSION) and procedure in LOSE and xid not in lost:
                lost.add(xid)
                losing.add(xid)
            server.sendall(raw)
    except (EOFError, OSError):
        end(client, server)


def answers(client, server, losing):
    try:
        while True:
            raw, content = record(server)
            (xid,) = struct.unpack(">I", content[:4])
            if xid in losing:
                print("lost", hex(xid), flush=True)
                break
            client.sendall(raw)
    except (EOFError, OSError):
        pass
    end(client, server)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    pair = (client, server, set())
    for side in (calls, answers):
        threading.Thread(target=side, args=pair, daemon=True).start()
