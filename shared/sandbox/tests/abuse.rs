//! One list of things a program might try. Each says, in its last line of output, whether it was DENIED or DONE; inside it
//! must be denied, with and without cgroups, and where that is harmless a plain process shows that the same source works.
mod support;

use std::net::TcpListener;

use support::{both, python, run, text, unsafe_python};

/// What every source starts with: `attempt(f)` prints DONE, or DENIED and why. `call` is a raw system call.
const PRELUDE: &str = r#"
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == 'x86_64'
def call(x86, arm, *args):
    libc.syscall.restype = ctypes.c_long
    r = libc.syscall(ctypes.c_long(x86 if X86 else arm), *[ctypes.c_long(a) for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
def attempt(f):
    try:
        print('DONE', f())
    except BaseException as e:
        print('DENIED', type(e).__name__, e)
"#;

struct Case {
    name: &'static str,
    source: &'static str,
    /// Whether a plain process of this host can and may do it.
    control: bool,
}

const fn case(name: &'static str, source: &'static str) -> Case {
    Case { name, source, control: true }
}

/// Not tried outside: not harmless there, or refused to some users or kernels.
const fn inside_only(name: &'static str, source: &'static str) -> Case {
    Case { name, source, control: false }
}

/// argv[1] is a file of this host with a secret, argv[2] a port of this host that listens, argv[3] the secret.
const CASES: &[Case] = &[
    // the host's files
    case("read a host file", "attempt(lambda: open(sys.argv[1]).read())"),
    inside_only("read /root", "attempt(lambda: os.listdir('/root')[0])"),
    inside_only("read shadow", "attempt(lambda: open('/etc/shadow').read())"),
    inside_only("find the docker socket", "attempt(lambda: os.stat('/var/run/docker.sock'))"),
    case("find a home folder", "attempt(lambda: os.stat('/home'))"),
    inside_only("leave through init's root", "attempt(lambda: os.listdir('/proc/1/root'))"),
    inside_only("read init's memory", "attempt(lambda: open('/proc/1/mem', 'rb'))"),
    inside_only("use init's descriptors", "attempt(lambda: os.listdir('/proc/1/fd'))"),
    inside_only("write to the root", "attempt(lambda: open('/usr/bin/x', 'w'))"),
    inside_only("write to /etc", "attempt(lambda: open('/etc/passwd', 'a'))"),
    inside_only("write to /dev", "attempt(lambda: open('/dev/x', 'w'))"),
    inside_only("make a device", "attempt(lambda: os.mknod('/tmp/mem', 0o20666, os.makedev(1, 1)))"),
    // environment
    case("own environment", "attempt(lambda: {'x': 1}[os.environ.get('SECRET') and 'x'])"),
    case(
        "any process's environment",
        r#"
def look():
    for pid in ['self'] + [p for p in os.listdir('/proc') if p.isdigit()]:
        try:
            if sys.argv[3].encode() in open(f'/proc/{pid}/environ', 'rb').read():
                return pid
        except OSError:
            pass
    raise OSError('nothing found')
attempt(look)"#,
    ),
    case("see processes of the host", "attempt(lambda: [p for p in os.listdir('/proc') if p.isdigit()][8])"),
    // network
    case("connect to the host", "attempt(lambda: socket.create_connection(('127.0.0.1', int(sys.argv[2])), 5))"),
    inside_only("connect out", "attempt(lambda: socket.create_connection(('192.0.2.1', 80), 5))"),
    inside_only("AF_VSOCK", "attempt(lambda: socket.socket(40, socket.SOCK_STREAM))"),
    case("AF_NETLINK", "attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))"),
    inside_only("AF_PACKET", "attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))"),
    inside_only("AF_ALG", "attempt(lambda: socket.socket(38, socket.SOCK_SEQPACKET))"),
    inside_only("raw sockets", "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))"),
    // namespaces and mounts
    inside_only("mount", "attempt(lambda: call(165, 40, 0, 0, 0, 0, 0))"),
    inside_only("umount", "attempt(lambda: call(166, 39, ctypes.addressof(ctypes.create_string_buffer(b'/proc')), 2))"),
    inside_only("open_tree", "attempt(lambda: call(428, 428, -100, 0, 0))"),
    inside_only("chroot", "attempt(lambda: os.chroot('/tmp'))"),
    inside_only("unshare a mount namespace", "attempt(lambda: call(272, 97, 0x20000))"),
    case("unshare nothing", "attempt(lambda: call(272, 97, 0))"),
    inside_only("unshare a user namespace", "attempt(lambda: call(272, 97, 0x10000000))"),
    inside_only("clone a user namespace", "attempt(lambda: call(56, 220, 0x10000000 | 17, 0, 0, 0, 0))"),
    inside_only("clone3", "attempt(lambda: call(435, 435, 0, 0))"),
    inside_only("setns", "attempt(lambda: call(308, 268, os.open('/proc/self/ns/net', 0), 0))"),
    // other processes and the kernel
    case("ptrace", "attempt(lambda: call(101, 117, 0, 0, 0, 0))"),
    case("process_vm_readv", "attempt(lambda: call(310, 270, os.getpid(), 0, 0, 0, 0, 0))"),
    case("kcmp", "attempt(lambda: call(312, 272, os.getpid(), os.getpid(), 1, 0, 0))"),
    inside_only("bpf", "attempt(lambda: call(321, 280, 0, 0, 0))"),
    inside_only("perf", "attempt(lambda: call(298, 241, 0, 0, -1, -1, 0))"),
    inside_only("keyctl", "attempt(lambda: call(250, 219, 0, -3, 1))"),
    inside_only("io_uring", "attempt(lambda: call(425, 425, 1, 0))"),
    inside_only("userfaultfd", "attempt(lambda: call(323, 282, 1))"),
    inside_only("load a module", "attempt(lambda: call(313, 273, 0, 0, 0))"),
    inside_only("reboot", "attempt(lambda: call(169, 142, 0, 0, 0, 0))"),
    inside_only("set the clock", "attempt(lambda: __import__('time').clock_settime(0, 1))"),
    inside_only("another personality", "attempt(lambda: call(135, 92, 0x0040000))"),
    case("memfd_create", "attempt(lambda: os.memfd_create('x'))"),
    case(
        "SysV shared memory",
        "
def shared():
    made = call(29, 194, 0, 4096, 0o600)
    call(31, 195, made, 0, 0)
attempt(shared)",
    ),
    // kernel settings
    inside_only("write hostname", "attempt(lambda: os.write(os.open('/proc/sys/kernel/hostname', os.O_WRONLY), b'x'))"),
    inside_only(
        "write core_pattern",
        "attempt(lambda: os.write(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY), b'x'))",
    ),
    inside_only(
        "write ip_forward",
        "attempt(lambda: os.write(os.open('/proc/sys/net/ipv4/ip_forward', os.O_WRONLY), b'1'))",
    ),
    inside_only("sysrq", "attempt(lambda: os.write(os.open('/proc/sysrq-trigger', os.O_WRONLY), b'h'))"),
    inside_only(
        "own oom_score_adj below",
        "attempt(lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000'))",
    ),
    inside_only("become root", "attempt(lambda: os.setuid(0))"),
    inside_only(
        "raise a limit",
        "
import resource
attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000)))",
    ),
    inside_only(
        "stop init",
        "
import signal, time
def stop():
    os.kill(1, signal.SIGKILL)
    os.kill(1, signal.SIGSTOP)
    raise OSError('init goes on')
attempt(stop)",
    ),
];

#[test]
fn every_abuse_is_denied_and_its_control_is_not() {
    let secret = format!("secret-{}", std::process::id());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret.txt");
    std::fs::write(&file, &secret).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let args = [file.to_str().unwrap(), &port, &secret];
    let mut wrong = Vec::new();
    let sandboxes = both();
    for case in CASES {
        let source = format!("{PRELUDE}{}", case.source);
        for (variant, sandbox) in &sandboxes {
            let done = run(sandbox, &python(&source, &args));
            let said = text(&done.stdout);
            if !said.starts_with("DENIED") || said.contains("NameError") || said.contains("AttributeError") {
                wrong.push(format!("{}, {variant}: {said:?} {} {:?}", case.name, text(&done.stderr), done.facts));
            }
        }
        if case.control {
            let said = unsafe_python(&source, &args, &[("SECRET", &secret)]);
            if !said.starts_with("DONE") {
                wrong.push(format!("{}, control: {said:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

#[test]
fn the_program_has_no_privilege_left() {
    for (variant, sandbox) in both() {
        let done = run(&sandbox, &python("print(open('/proc/self/status').read())", &[]));
        let status = text(&done.stdout);
        let field = |name: &str| {
            status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim).unwrap_or("absent").to_string()
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(field(set), "0000000000000000", "{variant}: {set}");
        }
        assert_eq!(field("NoNewPrivs:"), "1", "{variant}");
        assert_eq!(field("Seccomp:"), "2", "{variant}");
        assert_eq!(field("Uid:"), "1000\t1000\t1000\t1000", "{variant}");
    }
}

#[test]
fn init_shows_an_empty_environment_and_the_program_only_its_own() {
    for (variant, sandbox) in both() {
        let source = r#"
import os
try:
    print(repr(open('/proc/1/environ', 'rb').read()))
except PermissionError:
    print("b''")
print(sorted(os.environ.items()))"#;
        let mut spec = python(source, &[]);
        spec.env = vec![("HOME".into(), "/work".into())];
        let said = text(&run(&sandbox, &spec).stdout);
        let own = "[('HOME', '/work'), ('LANG', 'C.UTF-8'), ('PATH', '/usr/bin')]";
        assert_eq!(said, format!("b''\n{own}"), "{variant}");
    }
}

#[test]
fn nothing_but_its_three_pipes_is_open_and_init_names_no_path() {
    let source = "
import os
print([n for n in sorted(os.listdir('/proc/self/fd')) if os.path.exists('/proc/self/fd/' + n)])
print(open('/proc/1/cmdline').read().split(chr(0)))";
    for (variant, sandbox) in both() {
        let said = text(&run(&sandbox, &python(source, &[])).stdout);
        assert!(said.starts_with("['0', '1', '2']\n['rollmill', "), "{variant}: {said}");
    }
}

#[test]
fn nothing_is_left_for_the_next_run() {
    let leave = "
import os
for folder in ['/work', '/tmp', '/dev/shm']:
    open(folder + '/left', 'w').write('x')
    print(os.listdir(folder))";
    let look = "
import os
print([os.listdir(f) for f in ['/work', '/tmp', '/dev/shm']], os.path.exists('/proc/sysvipc/shm'))
print(len([p for p in os.listdir('/proc') if p.isdigit()]))";
    for (variant, sandbox) in both() {
        assert_eq!(text(&run(&sandbox, &python(leave, &[])).stdout), "['left']\n['left']\n['left']", "{variant}");
        let said = text(&run(&sandbox, &python(look, &[])).stdout);
        assert!(said.starts_with("[[], [], []]"), "{variant}: {said}");
        assert!(said.ends_with("\n2"), "init and the program only, {variant}: {said}");
    }
}
