//! Files on the way in and out: /pristine cannot be changed, and what a hostile program leaves in /work comes out as plain
//! bytes or not at all.
mod support;

use rollmill_sandbox::{Finished, Sandbox, Spec};
use support::{both, python, run, text};

fn pristine(source: &str) -> Spec {
    let given = vec![("tests/t.py".to_string(), b"x = 1\n".to_vec()), ("conf".to_string(), b"c".to_vec())];
    Spec { pristine: given, ..python(source, &[]) }
}

#[test]
fn pristine_files_are_there_and_stay_as_they_are() {
    let source = r#"
import os, shutil
print(open('/pristine/tests/t.py').read().strip(), sorted(os.listdir('/pristine')))
def attempt(name, f):
    try:
        f()
        print('DONE', name)
    except OSError as e:
        print('DENIED', e.errno)
attempt('write', lambda: open('/pristine/tests/t.py', 'w'))
attempt('create', lambda: open('/pristine/new', 'w'))
attempt('remove', lambda: os.unlink('/pristine/conf'))
attempt('rename', lambda: os.rename('/pristine/tests', '/pristine/t'))
attempt('rename the folder', lambda: os.rename('/pristine', '/work/p'))
attempt('chmod', lambda: os.chmod('/pristine/conf', 0o777))
attempt('link out', lambda: os.link('/pristine/conf', '/work/conf'))
print(open('/work/ours', 'w').write('y'))
"#;
    for (name, sandbox) in both() {
        let done = run(&sandbox, &pristine(source));
        let out = text(&done.stdout);
        assert!(
            out.starts_with("x = 1 ['conf', 'tests']") && out.ends_with('1'),
            "{name}: {out} {}",
            text(&done.stderr)
        );
        assert_eq!(out.matches("DENIED").count(), 7, "{name}: {out}");
    }
}

fn collected(source: &str, collect: &[&str], sandbox: &dyn Sandbox) -> Finished {
    let mut spec = Spec { collect: collect.iter().map(|c| c.to_string()).collect(), ..python(source, &[]) };
    spec.limits.collect_bytes = 1 << 20;
    spec.files = vec![("given.txt".into(), b"given".to_vec()), ("pkg/a.py".into(), b"a".to_vec())];
    run(sandbox, &spec)
}

fn names(done: &Finished) -> Vec<(&str, usize)> {
    done.collected.files.iter().map(|(path, bytes)| (path.as_str(), bytes.len())).collect()
}

#[test]
fn plain_files_come_out() {
    let source = "
import os
os.makedirs('out/deep')
open('out/b.txt', 'w').write('bb')
open('out/deep/a.txt', 'w').write('aaa')
open('pkg/a.py', 'w').write('changed')
open('out/late.txt', 'w').write('x' * 10)
import subprocess
# A process that outlives its parent cannot change what comes out: all are dead by then.
subprocess.Popen(['sh', '-c', 'sleep 0.2; echo late >> out/b.txt'], start_new_session=True)
os._exit(3)
";
    for (name, sandbox) in both() {
        let done = collected(source, &["out", "pkg/a.py", "given.txt", "none"], &sandbox);
        assert_eq!(done.facts.exit, Some(3), "{name}");
        let want = [("given.txt", 5), ("out/b.txt", 2), ("out/deep/a.txt", 3), ("out/late.txt", 10), ("pkg/a.py", 7)];
        assert_eq!(names(&done), want, "{name}: {:?}", done.collected.refused);
        assert!(done.collected.refused.is_empty());
        let all = collected("pass", &[""], &sandbox);
        assert_eq!(names(&all), [("given.txt", 5), ("pkg/a.py", 1)], "{name}");
    }
}

#[test]
fn everything_else_is_refused_by_name() {
    let source = r#"
import os, socket
os.mkdir('out')
os.chdir('out')
os.symlink('/etc/passwd', 'link')
os.symlink('../pkg', 'folder-link')
os.mkfifo('fifo')
open('one', 'w').write('1')
os.link('one', 'two')
s = socket.socket(socket.AF_UNIX); s.bind('sock')
with open('sparse', 'wb') as f: f.truncate(8 << 20)
os.mkdir('deep')
at = 'deep'
for _ in range(40):
    at += '/d'
    os.mkdir(at)
open(b'\xff', 'w').write('odd')
open('fine', 'w').write('fine')
"#;
    for (name, sandbox) in both() {
        let done = collected(source, &["out", "link", "out/link", "out/folder-link/a.py"], &sandbox);
        assert_eq!(done.facts.exit, Some(0), "{name}: {}", text(&done.stderr));
        assert_eq!(names(&done), [("out/fine", 4)], "{name}");
        let reason = |path: &str| {
            let refused = done.collected.refused.iter().find(|r| r.path.ends_with(path));
            refused.map_or("", |r| r.reason.as_str())
        };
        for (path, want) in [
            ("out/link", "a symbolic link"),
            ("out/folder-link", "a symbolic link"),
            ("folder-link/a.py", "a symbolic link"),
            ("out/fifo", "a special file"),
            ("out/sock", "a special file"),
            ("out/one", "a file with several names"),
            ("out/two", "a file with several names"),
            ("out/sparse", "over the limit on bytes"),
            ("/d/d", "folders nested too deeply"),
            ("\u{fffd}", "a name that is not unicode"),
        ] {
            assert_eq!(reason(path), want, "{name}: {path} in {:?}", done.collected.refused);
        }
    }
}

#[test]
fn entries_and_bytes_are_bounded() {
    let many = "
import os
os.mkdir('out')
for n in range(15000):
    open(f'out/{n:05}', 'w').close()
";
    let large = "
import os
os.mkdir('out')
for n in range(30): open(f'out/{n:02}', 'wb').write(b'x' * 100_000)
";
    for (name, sandbox) in both() {
        let done = collected(many, &["out", "out"], &sandbox);
        assert!(done.collected.files.len() <= 20_000, "{name}");
        assert!(done.collected.refused.iter().any(|r| r.reason == "too many entries"), "{name}");
        let done = collected(large, &["out"], &sandbox);
        let bytes: usize = names(&done).iter().map(|(_, n)| n).sum();
        assert_eq!((names(&done).len(), bytes), (10, 1_000_000), "{name}");
        assert_eq!(done.collected.refused.len(), 20, "{name}");
    }
}

#[test]
fn all_of_it_for_an_ordinary_user() {
    support::all_again_as_an_ordinary_user("all_of_it_for_an_ordinary_user");
}
