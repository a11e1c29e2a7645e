//! The level without namespaces: the same promises, as root, as an ordinary user, and where namespaces are really forbidden.
mod support;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Level, Namespaces, NamespacesOptions, Received, Root, Sandbox, SandboxError, State, check};
use support::{HELPER, as_user, marker, parent_of, python, run, running_with, text, unsafe_python, until};

fn options(cache: &Path, helper: &Path, cgroups: bool, force: bool) -> NamespacesOptions {
    NamespacesOptions {
        cache_dir: cache.into(),
        helper: Some(helper.into()),
        floor: Level::Landlock,
        landlock: force,
        cgroups,
        ..NamespacesOptions::default()
    }
}

/// A cache that every user may enter, which a home folder is not.
fn open_cache() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    dir
}

fn said(sandbox: &Namespaces, source: &str, args: &[&str]) -> String {
    let done = run(sandbox, &python(source, args));
    format!("{}{}", text(&done.stdout), text(&done.stderr))
}

/// Everything below, on one opened sandbox. `cache` is where its runs have their folders.
fn suite(sandbox: &Namespaces, cache: &Path) {
    assert_eq!((sandbox.level().level, sandbox.level().backend.as_str()), (Level::Landlock, "landlock"));
    println!("{:?}", sandbox.level());
    honest_programs(sandbox);
    files_in_and_out(sandbox);
    limits_act(sandbox);
    abuse(sandbox);
    nothing_lives_on(sandbox, cache);
    let left: Vec<_> = fs::read_dir(cache.join("runs")).expect("runs").map(|e| e.expect("entry").path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn honest_programs(sandbox: &Namespaces) {
    let source = r#"
import os, sqlite3, ssl, subprocess, sys, tempfile, threading, json
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, 'x'), 'w').write('x')
t = threading.Thread(target=lambda: None); t.start(); t.join()
a, b = __import__('socket').socketpair()
open('/dev/null', 'w').write('x'); assert open('/dev/urandom', 'rb').read(4)
p = subprocess.Popen(['sleep', '60']); p.kill(); p.wait()
assert subprocess.run('echo hi | tr h H', shell=True, capture_output=True, text=True).stdout == 'Hi\n'
print(sys.argv[1].endswith('/work/f.txt'), open(sys.argv[1]).read(), sorted(os.listdir('.')), sorted(os.environ))
"#;
    let mut spec = python(source, &["/work/f.txt"]);
    spec.files = vec![("f.txt".into(), b"given".to_vec()), ("run.sh".into(), b"#!/bin/sh\necho script $1\n".to_vec())];
    spec.env = vec![("PLACE".into(), "/tmp/x".into())];
    let done = run(sandbox, &spec);
    let own = "['HOME', 'LANG', 'LD_LIBRARY_PATH', 'PATH', 'PLACE', 'TMPDIR']";
    assert_eq!(text(&done.stdout), format!("True given ['f.txt', 'run.sh'] {own}"), "{}", text(&done.stderr));
    spec.argv = ["/work/run.sh", "a"].map(String::from).to_vec();
    assert_eq!(text(&run(sandbox, &spec).stdout), "script a");
    let end = |argv: &[&str]| {
        spec.argv = argv.iter().map(|a| a.to_string()).collect();
        let facts = run(sandbox, &spec).facts;
        (facts.exit, facts.signal)
    };
    let mut end = end;
    assert_eq!(end(&["sh", "-c", "exit 7"]), (Some(7), None));
    assert_eq!(end(&["sh", "-c", "kill -TERM $$"]), (None, Some(15)));
    assert_eq!(end(&["python3", "-c", "import os; os.abort()"]), (None, Some(6)));
    assert_eq!(end(&["no-such-program"]), (Some(127), None));
    assert_eq!(end(&["/usr/bin/id"]), (Some(126), None), "a program of the host");
}

fn files_in_and_out(sandbox: &Namespaces) {
    let source = r#"
import os, sys
p = sys.argv[1]
print(open(p).read())
def attempt(f):
    try:
        f()
        print('DONE')
    except OSError as e:
        print('DENIED')
attempt(lambda: open(p, 'w'))
attempt(lambda: open(os.path.dirname(p) + '/new', 'w'))
attempt(lambda: os.unlink(p))
attempt(lambda: os.rename(p, 'x'))
attempt(lambda: os.link(p, 'x'))
attempt(lambda: os.truncate(p, 0))
os.mkdir('out'); open('out/a', 'w').write('aa'); os.symlink('/etc/passwd', 'out/link')
"#;
    let mut spec = python(source, &["/pristine/t.py"]);
    spec.pristine = vec![("t.py".into(), b"x = 1".to_vec())];
    spec.collect = vec!["out".into()];
    let done = run(sandbox, &spec);
    assert_eq!(text(&done.stdout), format!("x = 1{}", "\nDENIED".repeat(6)), "{}", text(&done.stderr));
    assert_eq!(done.collected.files, [("out/a".to_string(), b"aa".to_vec())]);
    assert_eq!(done.collected.refused.len(), 1, "{:?}", done.collected.refused);
    // What a limit ends leaves its files all the same.
    let mut late = python("import os, time\nos.mkdir('out'); open('out/b', 'w').write('b')\ntime.sleep(600)", &[]);
    late.collect = vec!["out".into()];
    late.limits.wall = Duration::from_secs(2);
    let done = run(sandbox, &late);
    assert!(done.facts.timed_out, "{:?}", done.facts);
    assert_eq!(done.collected.files, [("out/b".to_string(), b"b".to_vec())]);
    assert_eq!(said(sandbox, "import os; print(os.listdir('.'), os.listdir(os.environ['TMPDIR']))", &[]), "[] []");
}

fn limits_act(sandbox: &Namespaces) {
    let children = "
import os, signal
children = []
try:
    while len(children) < 64:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except BlockingIOError:
    pass
print(len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)";
    let forked: u32 = said(sandbox, children, &[]).parse().expect("a number");
    // an ordinary user's other processes may have ended since they were counted
    assert!((15..40).contains(&forked), "{forked} processes beside the first");
    assert_eq!(unsafe_python(children, &[], &[]), "64");
    let hog = python("kept = [bytearray(b'x') * (4 << 20) for _ in range(60)]", &[]);
    assert!(run(sandbox, &hog).facts.oom);
    let floods = [
        (
            "in small files",
            "
for n in range(4):
    open('part%d' % n, 'wb').write(bytes(12 << 20))
time.sleep(60)",
        ),
        (
            "in files without a name",
            "
kept = []
for n in range(4):
    f = open('x', 'wb'); os.unlink('x'); kept.append(f)
    f.write(bytes(12 << 20)); f.flush()
time.sleep(60)",
        ),
        (
            "in empty files",
            "
for n in range(20000):
    open(str(n), 'w').close()
time.sleep(60)",
        ),
    ];
    for (how, source) in floods {
        let facts = run(sandbox, &python(&format!("import os, time{source}"), &[])).facts;
        assert!(facts.signal == Some(9) && !facts.timed_out, "{how}: {facts:?}");
    }
    assert_eq!(said(sandbox, "open('x', 'wb').write(bytes(12 << 20)); print('fits')", &[]), "fits");
    let mut asleep = python("import time; time.sleep(60)", &[]);
    asleep.limits.wall = Duration::from_secs(2);
    let facts = run(sandbox, &asleep).facts;
    assert!(facts.timed_out && facts.idle, "{facts:?}");
}

const PRELUDE: &str = r#"
import ctypes, fcntl, os, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(x86, arm, *args):
    libc.syscall.restype = ctypes.c_long
    r = libc.syscall(ctypes.c_long(x86 if os.uname().machine == 'x86_64' else arm), *[ctypes.c_long(a) for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
def attempt(f):
    try:
        print('DONE', f())
    except BaseException as e:
        print('DENIED', type(e).__name__, e)
folder, port, victim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
secret = folder + '/secret'
"#;

/// Name, source, and whether a plain process of the same user can do it.
const CASES: &[(&str, &str, bool)] = &[
    ("read a file", "attempt(lambda: open(secret).read())", true),
    ("list a folder", "attempt(lambda: os.listdir(folder))", true),
    ("read /etc/passwd", "attempt(lambda: open('/etc/passwd').read())", true),
    ("list /", "attempt(lambda: os.listdir('/'))", true),
    ("list /proc", "attempt(lambda: os.listdir('/proc'))", true),
    ("read an environment", "attempt(lambda: open(f'/proc/{os.getppid()}/environ', 'rb').read())", true),
    ("read its own /proc", "attempt(lambda: open('/proc/self/status').read())", true),
    ("list /tmp", "attempt(lambda: os.listdir('/tmp'))", true),
    ("write a file", "attempt(lambda: open(secret, 'a'))", true),
    ("make a file", "attempt(lambda: open(folder + '/new', 'w'))", true),
    ("truncate a file", "attempt(lambda: os.truncate(secret, 6))", true),
    ("remove a file", "attempt(lambda: os.unlink(folder + '/gone'))", true),
    ("link a file in", "attempt(lambda: os.link(secret, 'x') or open('x').read())", false),
    ("read by a link", "os.symlink(secret, 'y')\nattempt(lambda: open('y').read())", false),
    ("change a mode", "attempt(lambda: os.chmod(secret, 0o600))", true),
    ("change times", "attempt(lambda: os.utime(secret, (1, 1)))", true),
    ("write into the tree", "attempt(lambda: open(os.__file__, 'a'))", false),
    ("change the tree", "attempt(lambda: os.chmod(os.__file__, 0o777))", false),
    ("connect to this machine", "attempt(lambda: socket.create_connection(('127.0.0.1', port), 5))", true),
    ("a unix socket", "attempt(lambda: socket.socket(socket.AF_UNIX))", true),
    ("a datagram", "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))", true),
    ("netlink", "attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))", true),
    ("watch a folder", "attempt(lambda: call(254, 27, call(253, 26, 0) if False else call(294, 26, 0), 0, 2))", false),
    ("signal a neighbour", "attempt(lambda: os.kill(victim, signal.SIGCONT))", true),
    ("signal init", "attempt(lambda: os.kill(os.getppid(), signal.SIGCONT))", true),
    ("signal by a pidfd", "attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGCONT))", true),
    (
        "signal by a descriptor",
        "
r, w = os.pipe()
attempt(lambda: fcntl.fcntl(r, fcntl.F_SETOWN, victim))",
        true,
    ),
    ("limit a neighbour", "attempt(lambda: resource.prlimit(victim, resource.RLIMIT_CORE, (0, 0)))", true),
    ("slow a neighbour down", "attempt(lambda: os.setpriority(os.PRIO_PROCESS, victim, 19))", true),
    ("slow a user down", "attempt(lambda: os.setpriority(os.PRIO_USER, 0, 19))", false),
    ("move a neighbour", "attempt(lambda: os.sched_setaffinity(victim, {0}))", true),
    ("hide from the watcher", "attempt(lambda: call(157, 167, 4, 0, 0, 0, 0))", true),
    ("ptrace", "attempt(lambda: call(101, 117, 16, victim, 0, 0))", false),
    ("a user namespace", "attempt(lambda: call(272, 97, 0x10000000))", false),
    ("memfd_create", "attempt(lambda: os.memfd_create('x'))", true),
    ("make a device", "attempt(lambda: os.mknod('dev', 0o20666, os.makedev(1, 1)))", false),
    ("become root", "attempt(lambda: os.setuid(0))", false),
];

fn abuse(sandbox: &Namespaces) {
    let dir = open_cache();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let secret = dir.path().join("secret");
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let port = listener.local_addr().expect("address").port().to_string();
    let mut victim = Victim(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep"));
    let pid = victim.0.id().to_string();
    let mut wrong = Vec::new();
    for (name, source, control) in CASES {
        let reset = || {
            fs::write(&secret, "secret").expect("write");
            fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).expect("mode");
            fs::write(dir.path().join("gone"), "").expect("write");
        };
        reset();
        let (source, args) = (format!("{PRELUDE}{source}"), [dir.path().to_str().expect("text"), &port, &pid]);
        let inside = said(sandbox, &source, &args);
        if !inside.starts_with("DENIED") || inside.contains("NameError") || inside.contains("AttributeError") {
            wrong.push(format!("{name}: {inside:?}"));
        }
        let outside = if *control { unsafe_python(&source, &args, &[]) } else { "DONE".into() };
        if !outside.starts_with("DONE") {
            wrong.push(format!("{name}, control: {outside:?}"));
        }
    }
    assert!(victim.0.try_wait().expect("wait").is_none(), "the neighbour was killed");
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
    let sockets = said(sandbox, "print(open('/dev/null').fileno(), __import__('os').getuid() != 0)", &[]);
    assert_eq!(sockets, "3 True", "nothing but its three pipes is open");
}

/// A process of the same user that must come to no harm.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const STUBBORN: &str = "
import os, signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
print('up', flush=True)
time.sleep(600)";

fn nothing_lives_on(sandbox: &Namespaces, cache: &Path) {
    let mark = marker("landlock");
    let none = |when: &str| assert_eq!(running_with(&mark), Vec::<i32>::new(), "{when}");
    let mut late = python(STUBBORN, &[&mark]);
    late.limits.wall = Duration::from_secs(2);
    assert!(run(sandbox, &late).facts.timed_out);
    none("a time-out");
    let daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint('over')";
    assert_eq!(said(sandbox, daemon, &[&mark]), "over");
    none("the end of the program");
    let up = || {
        let mut session = sandbox.start(&python(STUBBORN, &[&mark])).expect("start");
        let got = session.recv(10, Instant::now() + Duration::from_secs(30)).expect("recv");
        assert!(matches!(got, Received::Bytes(_)), "{got:?}");
        session
    };
    drop(up());
    none("a drop");
    // the helper is killed: init, which is its copy, ends the tree and removes the folder
    let session = up();
    let program = running_with(&mark).into_iter().min().expect("a program");
    let helper = parent_of(parent_of(program));
    assert!(Command::new("kill").args(["-KILL", &helper.to_string()]).status().expect("kill").success());
    assert!(matches!(session.finish(), Err(SandboxError::HelperDied { .. })));
    until("the end of the tree", || running_with(&mark).is_empty());
    until("the end of the folder", || fs::read_dir(cache.join("runs")).expect("runs").next().is_none());
    bomb(sandbox, &mark);
}

/// Only after `limits_act` has shown that processes are bounded.
fn bomb(sandbox: &Namespaces, mark: &str) {
    let mut bomb =
        python("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass", &[mark]);
    bomb.limits.wall = Duration::from_secs(1);
    // the watcher may find too many before the time is over, where others of the user ended meanwhile
    assert_eq!(run(sandbox, &bomb).facts.signal, Some(9));
    assert_eq!(running_with(mark), Vec::<i32>::new());
}

#[test]
fn it_holds_for_this_user() {
    let cache = open_cache();
    for cgroups in [false, true] {
        let sandbox = Namespaces::open(options(cache.path(), Path::new(HELPER), cgroups, true)).expect("opens");
        suite(&sandbox, cache.path());
    }
}

/// Not a test of its own: what the tests below run as another user.
#[test]
#[ignore = "started by other tests"]
fn ordinary_user() {
    let Ok(cache) = std::env::var("USER_CACHE") else { return };
    let helper = PathBuf::from(std::env::var("USER_HELPER").expect("set with the other"));
    let force = std::env::var_os("USER_FORBIDDEN").is_none();
    let asked = options(Path::new(&cache), &helper, true, force);
    if !force {
        let strict = NamespacesOptions { floor: Level::Watched, ..asked.clone() };
        let error = Namespaces::open(strict).expect_err("namespaces are forbidden");
        assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("user.max_user_namespaces is 0"), "{error}");
    }
    suite(&Namespaces::open(asked).expect("opens for an ordinary user"), Path::new(&cache));
}

/// Runs `ordinary_user` as a user that nobody else is (processes are counted by user), behind a command that may take something
/// away.
fn as_somebody(uid: u32, before: &[&str], more: &[(&str, &str)]) {
    let env = |helper: &Path, own: &Path| {
        let mut env: Vec<(&str, PathBuf)> = more.iter().map(|(name, value)| (*name, value.into())).collect();
        env.extend([("USER_CACHE", own.into()), ("USER_HELPER", helper.into())]);
        env
    };
    if let Some((well, said)) = as_user(uid, before, &["--ignored", "--exact", "ordinary_user", "--nocapture"], env) {
        assert!(well && said.contains("1 passed"), "{said}");
    }
}

#[test]
fn it_holds_for_an_ordinary_user() {
    as_somebody(64_321, &[], &[]);
}

#[test]
fn it_is_found_where_namespaces_are_forbidden() {
    // a user namespace of its own, in which there may be no further one
    let forbid =
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all \"$@\"";
    let before = ["unshare", "--map-current-user", "--keep-caps", "sh", "-c", forbid, "sh"];
    as_somebody(64_323, &before, &[("USER_FORBIDDEN", "1")]);
}

#[test]
fn it_is_refused_unless_the_floor_allows_it() {
    let cache = open_cache();
    let asked = options(cache.path(), Path::new(HELPER), false, true);
    let error = Namespaces::open(NamespacesOptions { floor: Level::Watched, ..asked.clone() }).expect_err("refused");
    assert!(matches!(error, SandboxError::BelowFloor { level: Level::Landlock, floor: Level::Watched, .. }), "{error}");
    let prepared = NamespacesOptions { root: Root::Named("none".into()), ..asked.clone() };
    assert!(matches!(Namespaces::open(prepared), Err(SandboxError::RootFs { .. })));
    let landlock = |asked: NamespacesOptions| {
        let rows = check(&asked).into_iter().map(|row| (row.name, row.state)).collect::<Vec<_>>();
        ["user namespaces", "level"].map(|name| rows.iter().find(|row| row.0 == name).expect(name).1)
    };
    let strict = NamespacesOptions { floor: Level::Watched, ..asked.clone() };
    assert_eq!(landlock(strict), [State::No, State::No]);
    assert_eq!(landlock(asked.clone()), [State::No, State::Yes]);
    assert_eq!(landlock(NamespacesOptions { landlock: false, ..asked.clone() }), [State::Yes, State::Yes]);
    // where namespaces work they are taken, whatever the floor allows
    let best = Namespaces::open(NamespacesOptions { landlock: false, ..asked }).expect("opens");
    assert_eq!(best.level().level, Level::Watched);
}
