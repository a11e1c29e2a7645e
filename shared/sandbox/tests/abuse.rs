//! What a program is left with: no privilege, no environment but its own, no open file, nothing of the run before. The list of
//! what it may try against that is `tests/sandbox`, for every backend.
mod support;

use support::{both, python, run, text};

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
