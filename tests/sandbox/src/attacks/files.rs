//! Reading and changing what is not the program's: files, environments, other processes, the network.
use crate::Attack;
use crate::How::Asks;

const fn tries(group: &'static str, name: &'static str, source: &'static str) -> Attack {
    Attack { group, name, control: true, how: Asks(source) }
}

const fn inside_only(group: &'static str, name: &'static str, source: &'static str) -> Attack {
    Attack { group, name, control: false, how: Asks(source) }
}

const FILES: &str = "files of the host";
const OTHERS: &str = "environments and other processes";
const NETWORK: &str = "network";

pub const LIST: &[Attack] = &[
    tries(FILES, "read a host file", "attempt(lambda: open(FILE).read())"),
    inside_only(FILES, "read /root", "attempt(lambda: os.listdir('/root')[0])"),
    inside_only(FILES, "read shadow", "attempt(lambda: open('/etc/shadow').read())"),
    inside_only(FILES, "find the docker socket", "attempt(lambda: os.stat('/var/run/docker.sock'))"),
    tries(FILES, "find a home folder", "attempt(lambda: os.stat('/home'))"),
    inside_only(FILES, "leave through init's root", "attempt(lambda: os.listdir('/proc/1/root'))"),
    inside_only(FILES, "leave through init's folder", "attempt(lambda: os.listdir('/proc/1/cwd'))"),
    inside_only(FILES, "write to the root", "attempt(lambda: open('/usr/bin/x', 'w'))"),
    inside_only(FILES, "write to /etc", "attempt(lambda: open('/etc/passwd', 'a'))"),
    inside_only(FILES, "write to /dev", "attempt(lambda: open('/dev/x', 'w'))"),
    inside_only(FILES, "make a device", "attempt(lambda: os.mknod('/tmp/mem', 0o20666, os.makedev(1, 1)))"),
    inside_only(FILES, "read a disk", "attempt(lambda: [open('/dev/' + d, 'rb') for d in ('sda', 'vda', 'nvme0n1')])"),
    inside_only(FILES, "open by handle", "attempt(lambda: call(304, 265, -100, 0, 0))"),
    tries(
        FILES,
        "change what is given as pristine",
        "
import glob
at = os.environ.get('PRISTINE', '/pristine')
attempt(lambda: open(at + '/planted', 'w').write('x'))",
    ),
    tries(
        OTHERS,
        "inherit the worker's environment",
        "attempt(lambda: [n for n in os.environ if n not in ('PATH', 'HOME', 'LANG', 'LC_CTYPE', 'PRISTINE', 'FOLDERS')][0])",
    ),
    tries(
        OTHERS,
        "read an environment in /proc",
        r#"
def look():
    for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
        try:
            if ('PATH=' + PATH).encode() in open(f'/proc/{pid}/environ', 'rb').read():
                return pid
        except OSError:
            pass
    raise OSError('nothing found')
attempt(look)"#,
    ),
    tries(OTHERS, "see processes of the host", "attempt(lambda: [p for p in os.listdir('/proc') if p.isdigit()][8])"),
    tries(
        OTHERS,
        "find the worker by its command line",
        "
def look():
    for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
        if int(pid) == int(PID) and os.path.exists(f'/proc/{pid}/exe') and os.getpid() != int(pid):
            return pid
    raise OSError('not there')
attempt(look)",
    ),
    inside_only(OTHERS, "read init's memory", "attempt(lambda: open('/proc/1/mem', 'rb'))"),
    inside_only(OTHERS, "read init's environment", "attempt(lambda: open('/proc/1/environ', 'rb').read()[0])"),
    inside_only(OTHERS, "use init's descriptors", "attempt(lambda: os.listdir('/proc/1/fd'))"),
    inside_only(
        OTHERS,
        "stop init",
        "
import signal
def stop():
    os.kill(1, signal.SIGKILL)
    os.kill(1, signal.SIGSTOP)
    raise OSError('init goes on')
attempt(stop)",
    ),
    inside_only(
        OTHERS,
        "kill whoever else is there",
        "
import signal
def stop():
    others = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    return others[0]
attempt(stop)",
    ),
    inside_only(
        OTHERS,
        "let init fall by a signal it did not expect",
        "
import signal
def hit():
    sent = 0
    for number in range(1, 65):
        try:
            os.kill(1, number)
            sent += 1
        except (OSError, ValueError):
            pass
    raise OSError(f'init took {sent} signals and goes on')
attempt(hit)",
    ),
    tries(NETWORK, "connect to the host", "attempt(lambda: socket.create_connection(('127.0.0.1', PORT), 5))"),
    inside_only(NETWORK, "connect out", "attempt(lambda: socket.create_connection(('192.0.2.1', 80), 5))"),
    inside_only(
        NETWORK,
        "send a datagram out",
        "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53)))",
    ),
    tries(
        NETWORK,
        "connect to an abstract socket of the host",
        r"attempt(lambda: socket.socket(socket.AF_UNIX).connect('\0' + SOCKET))",
    ),
    inside_only(NETWORK, "AF_VSOCK", "attempt(lambda: socket.socket(40, socket.SOCK_STREAM))"),
    tries(NETWORK, "AF_NETLINK", "attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))"),
    inside_only(NETWORK, "AF_PACKET", "attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))"),
    inside_only(NETWORK, "AF_ALG", "attempt(lambda: socket.socket(38, socket.SOCK_SEQPACKET))"),
    inside_only(NETWORK, "AF_BLUETOOTH", "attempt(lambda: socket.socket(31, socket.SOCK_RAW))"),
    inside_only(
        NETWORK,
        "every other family",
        "
def any_family():
    for family in [f for f in range(3, 46) if f != socket.AF_INET6]:
        for kind in (1, 2, 3, 5):
            try:
                socket.socket(family, kind)
                return family
            except OSError:
                pass
    raise OSError('none')
attempt(any_family)",
    ),
    inside_only(NETWORK, "raw sockets", "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))"),
];
