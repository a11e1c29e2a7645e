//! Asking the kernel for what a program in a sandbox must not have.
use crate::Attack;
use crate::How::Asks;

const fn tries(group: &'static str, name: &'static str, source: &'static str) -> Attack {
    Attack { group, name, control: true, how: Asks(source) }
}

const fn inside_only(group: &'static str, name: &'static str, source: &'static str) -> Attack {
    Attack { group, name, control: false, how: Asks(source) }
}

const SPACES: &str = "mounts and namespaces";
const CALLS: &str = "system calls";
const SETTINGS: &str = "kernel settings and rights";

pub const LIST: &[Attack] = &[
    inside_only(SPACES, "mount", "attempt(lambda: call(165, 40, 0, 0, 0, 0, 0))"),
    inside_only(
        SPACES,
        "umount",
        "attempt(lambda: call(166, 39, ctypes.addressof(ctypes.create_string_buffer(b'/proc')), 2))",
    ),
    inside_only(SPACES, "open_tree", "attempt(lambda: call(428, 428, -100, 0, 0))"),
    inside_only(SPACES, "fsopen", "attempt(lambda: call(430, 430, 0, 0))"),
    inside_only(SPACES, "chroot", "attempt(lambda: os.chroot('/tmp'))"),
    inside_only(SPACES, "pivot_root", "attempt(lambda: call(155, 41, 0, 0))"),
    inside_only(SPACES, "unshare a mount namespace", "attempt(lambda: call(272, 97, 0x20000))"),
    tries(SPACES, "unshare nothing", "attempt(lambda: call(272, 97, 0))"),
    inside_only(SPACES, "unshare a user namespace", "attempt(lambda: call(272, 97, 0x10000000))"),
    inside_only(SPACES, "clone a user namespace", "attempt(lambda: call(56, 220, 0x10000000 | 17, 0, 0, 0, 0))"),
    inside_only(SPACES, "clone3", "attempt(lambda: call(435, 435, 0, 0))"),
    inside_only(SPACES, "setns", "attempt(lambda: call(308, 268, os.open('/proc/self/ns/net', 0), 0))"),
    tries(CALLS, "ptrace", "attempt(lambda: call(101, 117, 0, 0, 0, 0))"),
    tries(CALLS, "process_vm_readv", "attempt(lambda: call(310, 270, os.getpid(), 0, 0, 0, 0, 0))"),
    tries(CALLS, "kcmp", "attempt(lambda: call(312, 272, os.getpid(), os.getpid(), 1, 0, 0))"),
    inside_only(CALLS, "pidfd_getfd", "attempt(lambda: call(438, 438, os.pidfd_open(os.getpid()), 1, 0))"),
    inside_only(CALLS, "bpf", "attempt(lambda: call(321, 280, 0, 0, 0))"),
    inside_only(CALLS, "perf_event_open", "attempt(lambda: call(298, 241, 0, 0, -1, -1, 0))"),
    inside_only(CALLS, "keyctl", "attempt(lambda: call(250, 219, 0, -3, 1))"),
    inside_only(CALLS, "add_key", "attempt(lambda: call(248, 217, 0, 0, 0, 0, -3))"),
    inside_only(CALLS, "io_uring_setup", "attempt(lambda: call(425, 425, 1, 0))"),
    inside_only(CALLS, "userfaultfd", "attempt(lambda: call(323, 282, 1))"),
    inside_only(CALLS, "fanotify_init", "attempt(lambda: call(300, 262, 0, 0))"),
    inside_only(CALLS, "load a module", "attempt(lambda: call(313, 273, 0, 0, 0))"),
    inside_only(CALLS, "kexec", "attempt(lambda: call(246, 104, 0, 0, 0, 0))"),
    inside_only(CALLS, "reboot", "attempt(lambda: call(169, 142, 0, 0, 0, 0))"),
    inside_only(CALLS, "swapon", "attempt(lambda: call(167, 224, 0, 0))"),
    inside_only(CALLS, "set the clock", "attempt(lambda: __import__('time').clock_settime(0, 1))"),
    inside_only(CALLS, "another personality", "attempt(lambda: call(135, 92, 0x0040000))"),
    tries(CALLS, "memfd_create", "attempt(lambda: os.memfd_create('x'))"),
    tries(
        CALLS,
        "SysV shared memory",
        "
def shared():
    made = call(29, 194, 0, 4096, 0o600)
    call(31, 195, made, 0, 0)
attempt(shared)",
    ),
    inside_only(
        CALLS,
        "POSIX message queue",
        "attempt(lambda: call(240, 180, ctypes.addressof(ctypes.create_string_buffer(b'q')), 0o102, 0o600, 0))",
    ),
    inside_only(
        SETTINGS,
        "write the host name",
        "attempt(lambda: os.write(os.open('/proc/sys/kernel/hostname', os.O_WRONLY), b'x'))",
    ),
    inside_only(
        SETTINGS,
        "write core_pattern",
        "attempt(lambda: os.write(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY), b'x'))",
    ),
    inside_only(
        SETTINGS,
        "write ip_forward",
        "attempt(lambda: os.write(os.open('/proc/sys/net/ipv4/ip_forward', os.O_WRONLY), b'1'))",
    ),
    inside_only(
        SETTINGS,
        "write anything in /proc/sys",
        "
def walk():
    for folder, _, files in os.walk('/proc/sys'):
        for name in files:
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
                return os.path.join(folder, name)
            except OSError:
                pass
    raise OSError('nothing')
attempt(walk)",
    ),
    inside_only(
        SETTINGS,
        "write to a cgroup",
        "
def walk():
    for folder, _, files in os.walk('/sys/fs/cgroup'):
        for name in files:
            if name in ('cgroup.procs', 'pids.max', 'memory.max', 'memory.limit_in_bytes', 'notify_on_release'):
                try:
                    os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
                    return os.path.join(folder, name)
                except OSError:
                    pass
    raise OSError('nothing')
attempt(walk)",
    ),
    inside_only(SETTINGS, "sysrq", "attempt(lambda: os.write(os.open('/proc/sysrq-trigger', os.O_WRONLY), b'h'))"),
    inside_only(
        SETTINGS,
        "lower the own oom_score_adj",
        "attempt(lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000'))",
    ),
    inside_only(SETTINGS, "become root", "attempt(lambda: os.setuid(0))"),
    inside_only(
        SETTINGS,
        "raise a limit",
        "
import resource
attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000)))",
    ),
    inside_only(
        SETTINGS,
        "keep a capability",
        "
def caps():
    lines = [l.split() for l in open('/proc/self/status') if l.startswith('Cap')]
    held = [l for l in lines if int(l[1], 16)]
    return held[0]
attempt(caps)",
    ),
];
