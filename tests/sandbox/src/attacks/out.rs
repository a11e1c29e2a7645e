//! What is left in /work for whoever brings files out of it, and what is read of it.
use rollmill_sandbox::{Finished, Sandbox};

use crate::How::Does;
use crate::{Attack, Bait, Verdict, limits, python, run, text};

const fn does(name: &'static str, control: bool, act: fn(&dyn Sandbox, &Bait) -> Verdict) -> Attack {
    Attack { group: "files on the way out", name, control, how: Does(act) }
}

pub const LIST: &[Attack] = &[
    does("a symbolic link to a host file", true, link),
    does("a symbolic link as a folder on the way", false, folder_link),
    does("a hard link", true, hard_link),
    does("a FIFO that nobody writes", false, fifo),
    does("a socket", false, socket),
    does("a device", false, device),
    does("a sparse file of a terabyte", false, sparse),
    does("a sparse file over the cap", true, over_the_cap),
    does("a process that writes after the end", false, late_writer),
    does("very deep folders", false, deep),
    does("a work folder that nobody may enter", false, shut),
];

/// Runs a program in a fresh folder `out`, with an honest file in it, and brings that folder out.
fn left(sandbox: &dyn Sandbox, source: &str, args: &[&str], collect: &[&str]) -> Finished {
    let source = format!(
        "
import os, shutil, sys
shutil.rmtree('out', ignore_errors=True)
os.mkdir('out')
open('out/honest', 'w').write('honest')
os.chdir('out')
{source}"
    );
    let mut spec = python(&source, args);
    spec.collect = collect.iter().map(|c| c.to_string()).collect();
    run(sandbox, &spec)
}

/// Whether only the honest file came out and the other was refused by name; `kind` is how.
fn refused(done: &Finished, path: &str, kind: &str) -> Verdict {
    let files: Vec<_> = done.collected.files.iter().map(|(path, bytes)| (path.as_str(), bytes.len())).collect();
    if done.facts.exit != Some(0) {
        return Verdict::Broken(format!("{:?} {}", done.facts, text(&done.stderr)));
    }
    let named = done.collected.refused.iter().any(|r| r.path == path && r.reason.contains(kind));
    Verdict::stopped_if(files == [("out/honest", 6)] && named, || format!("{files:?} {:?}", done.collected.refused))
}

fn link(sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
    let done = left(sandbox, "os.symlink(sys.argv[1], 'link')", &[&bait.file()], &["out"]);
    refused(&done, "out/link", "symbolic link")
}

fn folder_link(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let done = left(sandbox, "os.symlink('/etc', 'etc')", &[], &["out", "out/etc/passwd"]);
    refused(&done, "out/etc/passwd", "symbolic link")
}

fn hard_link(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let done = left(sandbox, "open('one', 'w').write('1'); os.link('one', 'two')", &[], &["out"]);
    refused(&done, "out/two", "several names")
}

fn fifo(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    refused(&left(sandbox, "os.mkfifo('fifo')", &[], &["out"]), "out/fifo", "special file")
}

fn socket(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('sock')";
    refused(&left(sandbox, source, &[], &["out"]), "out/sock", "special file")
}

fn device(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
try:
    os.mknod('null', 0o20666, os.makedev(1, 3))
    print('made')
except OSError:
    pass";
    let done = left(sandbox, source, &[], &["out"]);
    let made = text(&done.stdout).contains("made") || done.collected.files.len() != 1;
    Verdict::stopped_if(!made, || format!("{:?}", done.collected))
}

fn sparse(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
try:
    open('sparse', 'wb').truncate(1 << 40)
except OSError:
    open('sparse', 'wb').truncate(8 << 20) # as far as the limit on files allows";
    refused(&left(sandbox, source, &[], &["out"]), "out/sparse", "over the limit")
}

fn over_the_cap(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let done = left(sandbox, "open('large', 'wb').truncate(8 << 20)", &[], &["out"]);
    let bytes: u64 = done.collected.files.iter().map(|(_, b)| b.len() as u64).sum();
    Verdict::stopped_if(bytes <= limits().collect_bytes, || format!("{bytes} bytes came out"))
}

fn late_writer(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
import subprocess
for _ in range(3):
    subprocess.Popen(['sh', '-c', 'while :; do echo late >> honest; done'], start_new_session=True,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
import time
time.sleep(0.3)
open('fixed', 'w').write('x')";
    let done = left(sandbox, source, &[], &["out", "out/honest"]);
    // the same file is looked at twice, and must be the same
    let names: Vec<_> = done.collected.files.iter().map(|f| f.0.as_str()).collect();
    let whole = done.collected.files.iter().all(|(name, b)| name != "out/honest" || b.ends_with(b"late\n"));
    Verdict::stopped_if(names == ["out/fixed", "out/honest"] && whole, || format!("{names:?}, whole lines: {whole}"))
}

fn deep(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let source = "
at = 'd'
for _ in range(40):
    os.mkdir(at)
    at += '/d'
open(at, 'w').write('x')";
    let done = left(sandbox, source, &[], &["out"]);
    let named = done.collected.refused.iter().any(|r| r.reason.contains("too deeply"));
    let files = done.collected.files.len();
    Verdict::stopped_if(named && files == 1, || format!("{files} files, {:?}", done.collected.refused))
}

fn shut(sandbox: &dyn Sandbox, _: &Bait) -> Verdict {
    let done = left(sandbox, "os.chmod('/work', 0)", &[], &["out"]);
    let names: Vec<_> = done.collected.files.iter().map(|f| f.0.as_str()).collect();
    Verdict::stopped_if(names == ["out/honest"], || format!("{names:?} {:?}", done.collected.refused))
}
