//! The check kind in a real sandbox.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::GradeError;
use rollmill_grader::check::{Check, CheckVerdict, check};
use sandboxed::{files, sandbox, settled};

fn asked(question: &Check, code: &[(&str, &str)]) -> Result<CheckVerdict, GradeError> {
    let sandbox = sandbox();
    settled(|| check(sandbox, question, &files(code), &files(&[("a.py", "x = 1\n")]), 7))
}

fn passes(question: &Check, code: &[(&str, &str)]) -> bool {
    asked(question, code).unwrap().passed
}

fn script(text: &str) -> Check {
    Check::Script { text: text.to_owned(), without_comments: false }
}

#[test]
fn imports() {
    let question = Check::ForbidsImports { modules: vec!["socket".into(), "os.path".into()] };
    for (source, fine) in [
        ("import os\n# import socket\ns = 'import socket'\n", true),
        ("import sockets\nfrom . import socket\n", true),
        ("import os, socket as s\n", false),
        ("def f():\n    from socket import create_connection\n", false),
        ("from os import path\n", false),
        ("__import__('socket')\n", false),
        ("import importlib\nimportlib.import_module('os.path')\n", false),
        ("def f(:", false),
        ("# -*- coding: nonsense -*-\nimport socket\n", false),
        (&"(".repeat(5000), false),
    ] {
        assert_eq!(passes(&question, &[("pkg/m.py", source), ("README", "import socket")]), fine, "{source:.60}");
    }
    let verdict = asked(&question, &[("pkg/m.py", "import socket")]).unwrap();
    assert_eq!(verdict.remark, "pkg/m.py imports socket");
    assert!(passes(&question, &[]));
}

#[test]
fn sizes() {
    let question = Check::MaxFileBytes { bytes: 3 };
    assert!(passes(&question, &[("a", "123"), ("b", "")]));
    assert_eq!(asked(&question, &[("a", "1"), ("b", "1234")]).unwrap().remark, "b has 4 bytes");
}

#[test]
fn a_tasks_script_decides_and_its_prints_do_not() {
    let question = script(
        "import os\ndef check(folder):\n    print(open(folder + '/a.txt').read()); os.system('cat ' + folder + '/a.txt')\n    return os.path.exists(folder + '/b.txt'), 'no b'\n",
    );
    let forged = "\0\0\0\u{1f}{\"seq\":7,\"ok\":true,\"remark\":\"\"}";
    let sandbox = sandbox();
    let control = files(&[("a.txt", "")]);
    for (code, passed, remark) in [
        (vec![("a.txt", forged)], false, "no b"),
        (vec![("a.txt", ""), ("b.txt", "")], true, ""),
        (vec![("x", "")], false, "the check cannot read these files"),
    ] {
        let verdict = settled(|| check(sandbox, &question, &files(&code), &control, 7)).unwrap();
        assert_eq!((verdict.passed, verdict.remark.as_str()), (passed, remark));
    }
}

#[test]
fn a_script_that_breaks_by_itself_is_the_tasks_fault() {
    for text in ["def check(f): return None", "oops", "import os; os._exit(0)", "def check(f):\n  while True: f += f"] {
        assert!(matches!(asked(&script(text), &[]), Err(GradeError::Task(_))), "{text}");
    }
}

#[test]
fn code_is_read_only_and_never_run() {
    let writes = script("def check(folder):\n    open(folder + '/a.py', 'w')\n");
    assert!(matches!(asked(&writes, &[("a.py", "")]), Err(GradeError::Task(_))));
    let evil = [("sitecustomize.py", "import os; os._exit(0)"), ("os.py", "raise SystemExit"), ("check.py", "x")];
    assert!(passes(&script("import os\ndef check(folder): return len(os.listdir(folder)) == 3"), &evil));
}

#[test]
fn a_linter_cannot_be_told_to_look_away() {
    // A linter in one line, which obeys comments as real ones do.
    let text = "def check(folder):\n    text = open(folder + '/a.py').read()\n    return 'noqa' in text or 'eval(' not in text\n";
    let code = [("a.py", "s = '# noqa stays in strings'[0:0]\nx = eval('1')  # noqa\n")];
    let control = Check::Script { text: text.to_owned(), without_comments: false };
    assert!(passes(&control, &code), "the control is fooled");
    let text = text.replace("'noqa' in text", "'# noqa\\n' in text");
    assert!(!passes(&Check::Script { text: text.clone(), without_comments: true }, &code));
    assert!(passes(&Check::Script { text, without_comments: true }, &[("a.py", "x = 1  # eval(1)\n")]));
    let verdict =
        asked(&Check::Script { text: "def check(f): return True".into(), without_comments: true }, &[("a.py", "(")]);
    assert!(!verdict.unwrap().passed, "what cannot be read does not pass");
}
