//! Using more than is allowed: processes, memory, disk, output, time.
use std::process::{Command, Stdio};
use std::time::Duration;

use rollmill_sandbox::Sandbox;

use crate::How::Does;
use crate::bait::running_with;
use crate::{Attack, Bait, Verdict, limits, python, run, text};

const fn does(name: &'static str, control: bool, act: fn(&dyn Sandbox, &Bait) -> Verdict) -> Attack {
    Attack { group: "limits", name, control, how: Does(act) }
}

pub const LIST: &[Attack] = &[
    does("many children", true, children),
    does("many threads", true, threads),
    does("a fork bomb", false, fork_bomb),
    does("memory of one process", true, memory),
    does("memory of a tree", false, memory_of_a_tree),
    does("hide that a child ran out of memory", false, hidden_oom),
    does("disk in all folders", true, disk),
    does("very many empty files", true, inodes),
    does("a flood of output", true, flood),
    does("output beyond the limit", true, output),
    does("daemons that ignore signals, beyond the time", true, stubborn),
    does("daemons that outlive the program", true, left_running),
    does("sleep for ever with closed outputs", false, closed_and_asleep),
    does("spin on two CPUs", true, spin),
    does("spin in many short children", true, short_children),
];

/// Starts children until refused or 64 live, then ends them. Bounded, so that it may run anywhere.
const MANY_CHILDREN: &str = "
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
    os.waitpid(pid, 0)
";

/// How many children a program got, beside itself.
pub fn many_children(sandbox: &dyn Sandbox) -> Option<u32> {
    text(&run(sandbox, &python(MANY_CHILDREN, &[])).stdout).parse().ok()
}

fn children(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    match many_children(sandbox) {
        Some(got) => Verdict::stopped_if(got == 15, || format!("{got} children with a limit of 16 processes")),
        None => Verdict::Broken("no count".into()),
    }
}

fn threads(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
import os, threading
threading.stack_size(65536)
hold, n = threading.Event(), 0
try:
    while n < 64:
        threading.Thread(target=hold.wait).start()
        n += 1
except RuntimeError:
    pass
print(n, flush=True)
hold.set()";
    match text(&run(sandbox, &python(source, &[])).stdout).parse::<u32>() {
        Ok(got) => Verdict::stopped_if(got == 15, || format!("{got} threads with a limit of 16")),
        Err(e) => Verdict::Broken(e.to_string()),
    }
}

fn fork_bomb(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    if !super::limit_is_proven(sandbox) {
        return Verdict::Broken("no bomb without a proven limit".into());
    }
    let marker = bait.marker();
    let source = "
import os
while True:
    try:
        os.fork()
    except OSError:
        pass";
    let mut bomb = python(source, &[&marker]);
    bomb.limits.wall = Duration::from_secs(1);
    bomb.collect = vec![String::new()]; // to read what it left takes a process more
    let done = run(sandbox, &bomb);
    let left = running_with(&marker);
    Verdict::stopped_if(done.facts.timed_out && left.is_empty(), || format!("{:?}, left {left:?}", done.facts))
}

const HOG: &str = "
kept = []
for _ in range(60):
    kept.append(bytearray(b'x') * (4 << 20))
print('held', len(kept))";

fn memory(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let done = run(sandbox, &python(HOG, &[]));
    let held = text(&done.stdout).contains("held");
    Verdict::stopped_if(done.facts.oom && !held && !done.facts.timed_out, || format!("{held} {:?}", done.facts))
}

fn memory_of_a_tree(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
import os, signal
for _ in range(6):
    if os.fork() == 0:
        kept = bytearray(b'x') * (40 << 20)
        signal.pause()
try:
    while True:
        os.wait()
except ChildProcessError:
    pass";
    let mut spec = python(source, &[]);
    spec.limits.wall = Duration::from_secs(10);
    let done = run(sandbox, &spec);
    Verdict::stopped_if(done.facts.oom, || format!("{:?}", done.facts))
}

fn hidden_oom(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = format!(
        "
import os
if os.fork() == 0:
    {}
os.wait()
print('fine')",
        HOG.trim().replace('\n', "\n    ")
    );
    let done = run(sandbox, &python(&source, &[]));
    Verdict::stopped_if(done.facts.oom, || format!("{:?} {}", done.facts, text(&done.stdout)))
}

fn disk(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
import os
folders, written = os.environ.get('FOLDERS', '/work,/tmp,/dev/shm').split(','), 0
full = set()
for i in range(144):
    folder = folders[i % len(folders)]
    if folder in full or written == 48:
        continue
    try:
        with open(os.path.join(folder, f'flood{i}'), 'wb') as f:
            f.write(bytes(1 << 20))
        written += 1
    except OSError:
        full.add(folder)
for folder in folders:
    for name in os.listdir(folder):
        if name.startswith('flood'):
            os.unlink(os.path.join(folder, name))
print(written)";
    match text(&run(sandbox, &python(source, &[])).stdout).parse::<u64>() {
        Ok(mib) => Verdict::stopped_if(mib << 20 <= limits().disk_bytes, || format!("{mib} MiB with a limit of 16")),
        Err(e) => Verdict::Broken(e.to_string()),
    }
}

fn inodes(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
import os, shutil
os.mkdir('many')
made = 0
try:
    for made in range(40_000):
        os.close(os.open(f'many/{made}', os.O_CREAT | os.O_WRONLY))
except OSError:
    print('refused', made)
else:
    print('all', made)
shutil.rmtree('many', ignore_errors=True)";
    let said = text(&run(sandbox, &python(source, &[])).stdout);
    Verdict::stopped_if(said.starts_with("refused"), || said)
}

fn flood(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
import os
for _ in range(256):
    os.write(2, b'x' * 65536)";
    let done = run(sandbox, &python(source, &[]));
    let ended = done.facts.signal == Some(9) && !done.facts.timed_out;
    let kept = done.stderr.len() as u64;
    Verdict::stopped_if(ended && kept <= limits().output_bytes, || format!("{kept} bytes, {:?}", done.facts))
}

fn output(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let done = run(sandbox, &python("print('x' * 100_000)", &[]));
    let kept = done.stdout.len() as u64;
    let told = done.facts.output_cut && done.facts.exit == Some(0);
    Verdict::stopped_if(told && kept == limits().output_bytes, || format!("{kept} bytes, {:?}", done.facts))
}

/// Ends what an attack left, which only it has in its command line; whether there was anything.
fn clean_up(marker: &str) -> bool {
    let left = running_with(marker);
    let numbers = left.iter().map(i32::to_string);
    // started by this attack; one that ended meanwhile is none
    let _ = Command::new("kill").arg("-KILL").args(numbers).stderr(Stdio::null()).status();
    !left.is_empty()
}

fn stubborn(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let source = "
import os, signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        break
print('up', flush=True)
while True:
    time.sleep(60)";
    let marker = bait.marker();
    let mut spec = python(source, &[&marker]);
    spec.limits.wall = Duration::from_secs(3);
    let done = run(sandbox, &spec);
    let left = clean_up(&marker);
    if !text(&done.stdout).contains("up") {
        return Verdict::Broken(format!("{:?} {}", done.facts, text(&done.stderr)));
    }
    Verdict::stopped_if(done.facts.timed_out && !left, || format!("left running: {left}, {:?}", done.facts))
}

fn left_running(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let source = "
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print('over')";
    let marker = bait.marker();
    let done = run(sandbox, &python(source, &[&marker]));
    let left = clean_up(&marker);
    let told = done.facts.exit == Some(0) && text(&done.stdout) == "over";
    Verdict::stopped_if(told && !left, || format!("left running: {left}, {:?}", done.facts))
}

fn closed_and_asleep(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let marker = bait.marker();
    let mut spec = python("import os, time; os.close(1); os.close(2); time.sleep(600)", &[&marker]);
    spec.limits.wall = Duration::from_secs(2);
    let done = run(sandbox, &spec);
    let left = clean_up(&marker);
    Verdict::stopped_if(done.facts.timed_out && !left, || format!("left running: {left}, {:?}", done.facts))
}

/// Judges a program that says SPUN when it has used three seconds of CPU though it may use one.
fn spun(sandbox: &dyn Sandbox, source: &str) -> Verdict {
    let mut spec = python(source, &[]);
    spec.limits.cpu = Duration::from_secs(1);
    let done = run(sandbox, &spec);
    let said = text(&done.stdout);
    let held = done.facts.timed_out && done.facts.cpu >= spec.limits.cpu && !said.contains("SPUN");
    Verdict::stopped_if(held, || format!("{said} {:?}", done.facts))
}

fn spin(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    spun(
        sandbox,
        "
import os, time
child = os.fork()
while time.process_time() < 3:
    pass
if child:
    os.wait()
    print('SPUN')",
    )
}

fn short_children(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    spun(
        sandbox,
        "
import os, time
for _ in range(30):
    if os.fork() == 0:
        while time.process_time() < 0.1:
            pass
        os._exit(0)
    os.wait()
print('SPUN')",
    )
}
