//! Leaving something behind for the next program.
use rollmill_sandbox::Sandbox;

use crate::How::Does;
use crate::{Attack, Bait, Verdict, python, run, text};

const fn does(name: &'static str, control: bool, act: fn(&dyn Sandbox, &Bait) -> Verdict) -> Attack {
    Attack { group: "left for the next run", name, control, how: Does(act) }
}

pub const LIST: &[Attack] = &[
    does("files in every folder", true, files),
    does("a changed interpreter", false, interpreter),
    does("a process", false, process),
    does("an abstract socket", true, abstract_socket),
];

/// Runs one program, then another, which must print nothing but `clean`.
fn one_after_another(sandbox: &dyn Sandbox, leave: &str, look: &str, word: &str) -> Verdict {
    let first = run(sandbox, &python(leave, &[word]));
    if !text(&first.stdout).contains("left") {
        return Verdict::Broken(format!("{:?} {}", first.facts, text(&first.stderr)));
    }
    let second = run(sandbox, &python(look, &[word]));
    let said = text(&second.stdout);
    if said.is_empty() {
        return Verdict::Broken(format!("{:?} {}", second.facts, text(&second.stderr)));
    }
    Verdict::stopped_if(said == "clean", || said)
}

fn files(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let leave = "
import os, sys
for folder in os.environ.get('FOLDERS', '/work,/tmp,/dev/shm').split(','):
    open(os.path.join(folder, sys.argv[1]), 'w').write('x')
print('left')";
    let look = "
import os, sys
folders = os.environ.get('FOLDERS', '/work,/tmp,/dev/shm').split(',')
found = [f for f in folders if os.path.exists(os.path.join(f, sys.argv[1]))]
print(found or 'clean')";
    one_after_another(sandbox, leave, look, &bait.marker())
}

fn interpreter(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let leave = "
import os, sys
for folder in [os.path.dirname(os.__file__), '/usr/bin', '/etc', '/root', '/var', '/usr/lib']:
    try:
        open(os.path.join(folder, sys.argv[1]), 'w').write('x')
    except OSError:
        pass
print('left')";
    let look = "
import os, sys
print([f for f, _, names in os.walk('/usr') if sys.argv[1] in names] or 'clean')";
    one_after_another(sandbox, leave, look, &bait.marker())
}

fn process(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let leave = "
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print('left')";
    let look = "
import os, sys
mine = [p for p in os.listdir('/proc') if p.isdigit()]
def line(p):
    try:
        return open(f'/proc/{p}/cmdline').read()
    except OSError:
        return ''
print([p for p in mine if sys.argv[1] in line(p) and int(p) != os.getpid()] or 'clean')";
    one_after_another(sandbox, leave, look, &bait.marker())
}

fn abstract_socket(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    // the control's server ends by itself
    let leave = r"
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind('\0' + sys.argv[1])
s.listen()
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2):
        os.close(fd)
    s.settimeout(20)
    try:
        s.accept()
    except OSError:
        pass
    os._exit(0)
print('left')";
    let look = r"
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect('\0' + sys.argv[1])
    print('found')
except OSError:
    print('clean')";
    one_after_another(sandbox, leave, look, &bait.marker())
}
