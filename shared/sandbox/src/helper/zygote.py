# An interpreter with its modules loaded, forked once a run into the namespaces of that run. Standard library only.
#
# Run as `python3 FLAGS -c <this text>` with a socket on fd 0, in a user namespace where it is root over nothing but what it
# forks. In: one hello (code to load, a system-call filter), then a job at a time with descriptors: stdin, stdout, stderr, a
# socket to report on, and the namespaces. Out, on that socket: the pid, then ready or failed, then the wait status.
#
# What must hold: nothing of a run ever executes in this process or in the middle one, only in the grandchild, which has by
# then what any program of a run has: the run's namespaces, no capability, the filter, three descriptors.
import ctypes
import json
import os
import resource
import signal
import socket
import sys

KINDS = 11
COMPILED = {}  # by name and text: what runs begin with
LIBC = ctypes.CDLL(None, use_errno=True)


def read_exactly(source, n):
    parts = []
    while n:
        part = source.recv(n)
        if not part:
            os._exit(0)  # the helper has gone
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def read_message(source):
    return json.loads(read_exactly(source, int.from_bytes(read_exactly(source, 4), "little")))


def send(target, message):
    body = json.dumps(message).encode()
    target.sendall(len(body).to_bytes(4, "little") + body)


def receive_job(control):
    """One byte with the descriptors on it, then the job."""
    size = 4 * KINDS
    byte, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(size))
    if not byte:
        os._exit(0)
    fds = [int.from_bytes(data[at : at + 4], sys.byteorder) for _, _, data in ancillary for at in range(0, len(data), 4)]
    if len(fds) != KINDS:
        os._exit(1)
    return read_message(control), fds


def check(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, what)


def prctl(option, *arguments):
    longs = [ctypes.c_ulong(a) for a in arguments] + [ctypes.c_ulong(0)] * (4 - len(arguments))
    check(LIBC.prctl(option, *longs), "prctl")


def drop_capabilities():
    for capability in range(64):
        if LIBC.prctl(24, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3) < 0:
            break  # past the last the kernel knows
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def apply_filter(code):
    program = Program(len(code) // 8, code)
    check(LIBC.prctl(22, ctypes.c_ulong(2), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)), "seccomp")


def middle(job, fds, filter):
    """Enters the namespaces and waits for the program; only the program's process returns from here."""
    report = socket.socket(fileno=fds[3])
    try:
        prctl(1, signal.SIGKILL)  # with the process it came from
        for fd in fds[4:]:
            check(LIBC.setns(fd, 0), "setns")
            os.close(fd)
        pid = os.fork()
    except OSError as e:
        send(report, {"Failed": {"what": str(e.strerror), "errno": e.errno or 5}})
        os._exit(1)
    if pid == 0:
        return become(job, fds[:3], report, filter)
    for fd in fds[:3]:
        os.close(fd)
    send(report, {"Forked": {"pid": pid}})
    _, status = os.waitpid(pid, 0)
    send(report, {"Exited": {"code": status}})
    os._exit(0)


def become(job, stdio, report, filter):
    """Gives up everything and is the program."""
    try:
        prctl(1, signal.SIGKILL)
        read_exactly(report, 1)  # limits hold from here
        os.setsid()
        for number, fd in enumerate(stdio):
            os.dup2(fd, number)
        os.chdir("/work")
        os.umask(0o022)
        for kind, value in job["limits"]:
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))
        drop_capabilities()
        prctl(38, 1)  # no new privileges
        prctl(4, 1)  # as after an exec: its own files under /proc are its own
        apply_filter(filter)
        send(report, "Ready")
    except (OSError, ValueError) as e:
        send(report, {"Failed": {"what": "become the program: %s" % e, "errno": getattr(e, "errno", None) or 5}})
        os._exit(1)
    report.detach()
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # the listing's own
    os.environ.clear()
    os.environ.update(job["env"])
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None
    return job["argv"]


def serve():
    control = socket.socket(fileno=0)
    hello = read_message(control)
    filter = bytes.fromhex(hello["filter"])
    try:
        exec(compile(hello["preload"], "<preload>", "exec"), {"__name__": "preload"})
        for name, text in hello["programs"]:
            COMPILED[name, text] = compile(text, name, "exec", dont_inherit=True)
    except BaseException as e:
        send(control, {"Failed": {"what": "load %s: %s" % (type(e).__name__, e), "errno": 22}})
        os._exit(1)
    if hasattr(sys.modules.get("gc") or __import__("gc"), "freeze"):
        sys.modules["gc"].freeze()  # pages stay shared with the forked
    send(control, "Ready")
    while True:
        job, fds = receive_job(control)
        pid = os.fork()
        if pid == 0:
            os.set_blocking(control.detach(), True)
            os.close(0)
            return middle(job, fds, filter)
        for fd in fds:
            os.close(fd)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def program(argv):
    """What to run, as the interpreter's own command line says it."""
    if argv and argv[0] == "-c":
        sys.argv[:] = ["-c"] + argv[2:]
        return COMPILED.get(("<string>", argv[1])) or compile(argv[1], "<string>", "exec", dont_inherit=True), None
    sys.argv[:] = argv
    if not sys.flags.isolated:
        sys.path.insert(0, os.path.dirname(argv[0]))
    with open(argv[0], "rb") as f:
        text = f.read()
    known = COMPILED.get((argv[0], text.decode(errors="replace")))
    return known or compile(text, argv[0], "exec", dont_inherit=True), argv[0]


def run(argv):
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    try:
        code, main.__file__ = program(argv)
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as e:
        trace = e.__traceback__.tb_next  # without this text's own frame
        sys.excepthook(type(e), e, trace)
        sys.exit(1)


run(serve())
