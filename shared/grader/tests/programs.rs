//! Tier T1 programs in a real sandbox: every outcome, every checker, attacks with the same wrong program as measure.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::{Died, Oom, Passed, SyntaxError, Timeout, Wrong};
use rollmill_grader::t1::{
    Language, ProgramCase, Programs, T1Options, grade_programs, parse_programs, visible_program_output,
};
use rollmill_grader::{GradeError, Solution, SuiteResult};
use rollmill_sandbox::{Sandbox, Spec};
use sandboxed::{outcomes, sandbox, settled, tools};
use std::time::Duration;

fn options() -> T1Options {
    T1Options { per_case: Duration::from_secs(2), ..T1Options::default() }
}

fn graded(language: Language, source: &str, cases: &[ProgramCase], checker: Option<&str>) -> SuiteResult {
    graded_in(sandbox(), language, source, cases, checker)
}

fn graded_in(
    sandbox: &dyn Sandbox,
    language: Language,
    source: &str,
    cases: &[ProgramCase],
    checker: Option<&str>,
) -> SuiteResult {
    let suite = Programs { language, cases, checker };
    settled(|| grade_programs(sandbox, &language.solution(source), &suite, &options())).unwrap()
}

/// Reads numbers, prints their sum.
fn sums() -> Vec<ProgramCase> {
    vec![ProgramCase::new("1 2\n", "3\n"), ProgramCase::new("10 20 30", "60\n"), ProgramCase::new("", "0\n")]
}

const SUM: &str = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n";

#[test]
fn right_and_wrong() {
    let result = graded(Language::Python, SUM, &sums(), None);
    assert_eq!((result.compiled, result.passed, result.total), (true, 3, 3), "{result:?}");
    let result = graded(Language::Python, "print(3, end='')", &sums(), None);
    assert_eq!(outcomes(&result), [Passed, Wrong, Wrong]);
    assert_eq!(result.verdicts[1].detail, "printed \"3\"");
    let seen = visible_program_output(&result, &sums());
    let want = "1 of 3 visible tests passed. Test 2 with input \"10 20 30\": expected \"60\\n\", but printed \"3\"";
    assert_eq!(seen, want);
    assert_eq!(result.isolation["backend"], "namespaces");
}

#[test]
fn programs_that_do_not_answer() {
    let case = [ProgramCase::new("", "1\n")];
    for (source, outcome) in [
        ("import sys; print(1); sys.exit(3)", Died),
        ("import os; os.kill(os.getpid(), 11)", Died),
        ("print(1); raise ValueError('x')", Died),
        ("while True: pass", Timeout),
        ("import time; time.sleep(1000)", Timeout),
        ("print(1); a = []\nwhile True: a.append(bytearray(b'x') * (16 << 20))", Oom),
        ("while True: print('x' * 100000)", Wrong),
        ("print('1' * (2 << 20))", Wrong),
        ("import os; os.write(1, b'\\xff\\n')", Wrong),
        ("", Wrong),
    ] {
        let got = outcomes(&graded(Language::Python, source, &case, None));
        // where RLIMIT_AS holds the memory, Python raises
        assert!(got == [outcome] || (outcome == Oom && got == [Died]), "{source}: {got:?}");
    }
}

#[test]
fn what_does_not_compile() {
    for (language, source, word) in
        [(Language::Python, "def f(:\n", "SyntaxError"), (Language::Python, "x = '\0'", "null bytes")]
    {
        let result = graded(language, source, &sums(), None);
        assert_eq!((result.compiled, outcomes(&result)), (false, vec![SyntaxError; 3]));
        assert!(result.import_error.as_ref().unwrap().contains(word), "{result:?}");
        assert!(visible_program_output(&result, &sums()).starts_with("the solution does not compile: "));
    }
    let nothing = Solution { files: vec![], main: "main.py".into() };
    let cases = sums();
    let suite = Programs { language: Language::Python, cases: &cases, checker: None };
    let result = grade_programs(sandbox(), &nothing, &suite, &options()).unwrap();
    assert_eq!((result.compiled, result.passed), (false, 0));
}

#[test]
fn arguments_files_and_exit_codes() {
    let cases = parse_programs(
        r#"[{"args": ["-n", "a b"], "files": {"in/x.txt": "hello"}, "stdin": "s", "stdout": "-n a b\nhello s", "exit": 3},
            {"args": ["-n", "a b"], "files": {"in/x.txt": "hello"}, "stdin": "s", "stdout": "-n a b\nhello s", "exit": "any"},
            {"args": ["-n", "a b"], "files": {"in/x.txt": "hello"}, "stdin": "s", "stdout": "-n a b\nhello s"}]"#,
    )
    .unwrap();
    let source = "import sys\nprint(*sys.argv[1:])\nprint(open('in/x.txt').read(), input())\nsys.exit(3)\n";
    let result = graded(Language::Python, source, &cases, None);
    assert_eq!(outcomes(&result), [Passed, Passed, Died], "{result:?}");
}

#[test]
fn nothing_is_carried_from_one_case_to_the_next() {
    let source = "import os\nprint(int(any(os.path.exists(p) for p in ('/tmp/x', '/work/x', '/dev/shm/x'))))\n\
        for p in ('/tmp/x', '/work/x', '/dev/shm/x'): open(p, 'w').close()\nif os.fork() == 0:\n    os.setsid()\n    import time; time.sleep(100)\n";
    let cases = vec![ProgramCase::new("", "0"); 3];
    assert_eq!(graded(Language::Python, source, &cases, None).passed, 3);
}

#[test]
fn files_in_odd_places_fail_the_solution_and_not_the_run() {
    let cases = parse_programs(r#"[{"stdout": "1", "files": {"data/x": "1"}}]"#).unwrap();
    let suite = Programs { language: Language::Python, cases: &cases, checker: None };
    for (path, compiles) in [("data", true), ("../x", false), ("/x", false), ("main.py/x", false), ("data/x/y", true)] {
        let mut solution = Language::Python.solution("print(1)");
        solution.files.push((path.to_owned(), vec![]));
        let result = grade_programs(sandbox(), &solution, &suite, &options()).unwrap();
        assert_eq!((result.compiled, result.passed), (compiles, 0), "{path}: {result:?}");
    }
}

#[test]
fn a_suite_has_one_budget() {
    let cases = vec![ProgramCase::new("", "1"); 4];
    let suite = Programs { language: Language::Python, cases: &cases, checker: None };
    let opts = T1Options { total: Duration::from_secs(2), ..options() };
    let sandbox = sandbox();
    let solution = Language::Python.solution("while True: pass");
    let result = settled(|| grade_programs(sandbox, &solution, &suite, &opts)).unwrap();
    assert_eq!(outcomes(&result), vec![Timeout; 4]);
    assert_eq!(result.verdicts[3].detail, "the time for all cases was used up");
}

/// Any two numbers that add up to the given one.
const PAIR: &str = "def check(input, expected, output):
    print('ok', open(output).read())  # what a checker prints is no answer
    a, b = map(int, open(output).read().split())
    return a + b == int(open(input).read()), 'the sum is %d' % (a + b)
";

#[test]
fn a_custom_checker_decides() {
    let case =
        |n: &str, answer: &str| ProgramCase { checker: "custom".parse().unwrap(), ..ProgramCase::new(n, answer) };
    let cases = [case("7", "3 4"), case("5", "0 5")];
    for (source, want) in [
        ("n = int(input()); print(1, n - 1)", [Passed; 2]),
        ("print(2, 5)", [Passed, Wrong]),
        ("print('{\"ok\": true}')", [Wrong; 2]),
        ("import os; os.write(1, b'\\0\\0\\0\\x20{\"seq\": 1, \"ok\": true, \"remark\": \"\"}')", [Wrong; 2]),
        ("print('x' * 500000)", [Wrong; 2]),
        ("", [Wrong; 2]),
    ] {
        assert_eq!(outcomes(&graded(Language::Python, source, &cases, Some(PAIR))), want, "{source}");
    }
    let result = graded(Language::Python, "print(2, 5)", &cases, Some(PAIR));
    assert_eq!(result.verdicts[1].detail, "printed \"2 5\\n\": the sum is 7");
}

#[test]
fn a_checker_that_breaks_is_the_tasks_fault_only_if_it_breaks_by_itself() {
    let cases = [ProgramCase { checker: "custom".parse().unwrap(), ..ProgramCase::new("7", "3 4") }];
    let sandbox = sandbox();
    let solution = Language::Python.solution("print('nonsense')");
    let ask = |checker: Option<&str>| {
        let suite = Programs { language: Language::Python, cases: &cases, checker };
        settled(|| grade_programs(sandbox, &solution, &suite, &options()))
    };
    assert_eq!(outcomes(&ask(Some(PAIR)).unwrap()), [Wrong]);
    for broken in ["def check(i, e, o): return 1", "x", "import os; os._exit(0)"] {
        let error = ask(Some(broken)).unwrap_err();
        assert!(matches!(&error, GradeError::Task(_)) && !error.is_transient(), "{broken}: {error}");
    }
    assert!(matches!(ask(None), Err(GradeError::Task(_))));
}

/// Ways to the wanted output without the work. Each prints `secret` where it finds one, and is wrong otherwise.
const THIEVES: &[(&str, &str)] = &[
    (
        "looks beside itself and above",
        "import glob\nfor p in glob.glob('/work/**', recursive=True) + glob.glob('/pristine/**', recursive=True) + glob.glob('/tmp/**', recursive=True):\n    try: text = open(p).read()\n    except Exception: continue\n    if 'secret-' in text and not p.endswith('main.py'): print(text.strip())\n",
    ),
    (
        "looks into processes",
        "import glob\nfor p in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/fd/*'):\n    try: import os; text = os.read(os.open(p, os.O_RDONLY | os.O_NONBLOCK), 1 << 20)\n    except Exception: continue\n    at = text.find(b'secret-' + b'4711')\n    if at >= 0: print('secret-' + '4711')\n",
    ),
    (
        "looks at its arguments and environment",
        "import os, sys\nprint([w for w in sys.argv + list(os.environ.values()) if w.startswith('secret-')] or '')\n",
    ),
];

#[test]
fn what_is_wanted_is_nowhere_to_be_found() {
    let cases = [ProgramCase::new("x", "secret-4711")];
    for (name, source) in THIEVES {
        assert_eq!(outcomes(&graded(Language::Python, source, &cases, None)), [Wrong], "{name}");
    }
    // The control, a grader that puts the expected output beside the program, is robbed.
    let spec = Spec {
        argv: ["python3", "main.py"].map(str::to_owned).to_vec(),
        files: sandboxed::files(&[("main.py", THIEVES[0].1), ("expected", "secret-4711")]).into_iter().collect(),
        ..Spec::default()
    };
    let printed = sandbox().run(&spec).unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&printed).trim(), "secret-4711");
}

#[test]
fn exits_and_claims_earn_nothing() {
    for source in [
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "print('OK\\n3 passed in 0.01s')",
        "print('{\"passed\": 3, \"reward\": 1.0}')",
        "import os, signal; signal.raise_signal(signal.SIGSTOP)",
        "open('/work/reward.txt', 'w').write('1')",
        "import os; os.kill(-1, 9)",
    ] {
        let result = graded(Language::Python, source, &sums(), None);
        assert_eq!(result.passed, 0, "{source}: {result:?}");
    }
    // The control, a grader that asks for the exit code alone, pays for the first.
    let argv = ["python3", "-c", "import sys; sys.exit(0)"].map(str::to_owned).to_vec();
    assert_eq!(sandbox().run(&Spec { argv, ..Spec::default() }).unwrap().facts.exit, Some(0));
}

#[test]
fn honest_programs_pass() {
    let honest: &[(&str, &str)] = &[
        (
            "exit in main",
            "import sys\ndef main():\n    print(sum(map(int, sys.stdin.read().split())))\n    sys.exit(0)\nmain()\n",
        ),
        (
            "logs",
            "import logging, sys\nlogging.basicConfig(level=10)\nlogging.info('x' * 1000)\nprint(sum(map(int, sys.stdin.read().split())), '\\n\\n')\n",
        ),
        ("slow start", "import time, sys\ntime.sleep(0.5)\nprint(sum(map(int, sys.stdin.read().split())))\n"),
        (
            "threads and children",
            "import subprocess, sys, threading\nout = []\nn = sum(map(int, sys.stdin.read().split()))\nt = threading.Thread(target=lambda: out.append(subprocess.check_output(['echo', str(n)]).decode()))\nt.start(); t.join()\nsys.stdout.write(out[0])\n",
        ),
        (
            "line by line",
            "n = 0\ntry:\n    while True: n += sum(map(int, input().split()))\nexcept EOFError:\n    print(n)\n",
        ),
        (
            "own tests",
            "import sys, unittest\nclass T(unittest.TestCase):\n    def test(self): pass\nprint(sum(map(int, sys.stdin.read().split())))\n",
        ),
    ];
    for (name, source) in honest {
        let result = graded(Language::Python, source, &sums(), None);
        assert_eq!(result.passed, 3, "{name}: {result:?}");
    }
}

/// The sum in every language, and something that does not compile.
const SUMS: &[(Language, &str, &str)] = &[
    (Language::Python, SUM, "def f(:"),
    (
        Language::C,
        "#include <stdio.h>\nint main(void) { long n, s = 0; while (scanf(\"%ld\", &n) == 1) s += n; printf(\"%ld\\n\", s); }\n",
        "int main(void) { return x; }",
    ),
    (
        Language::Cpp,
        "#include <iostream>\nint main() { long n, s = 0; while (std::cin >> n) s += n; std::cout << s << std::endl; }\n",
        "int main() { return x; }",
    ),
    (
        Language::Rust,
        "use std::io::Read;\nfn main() { let mut t = String::new(); std::io::stdin().read_to_string(&mut t).unwrap(); println!(\"{}\", t.split_whitespace().map(|w| w.parse::<i64>().unwrap()).sum::<i64>()); }\n",
        "fn main() { let x: i32 = \"\"; }",
    ),
    (
        Language::Go,
        "package main\nimport \"fmt\"\nfunc main() {\n\tvar n, s int\n\tfor {\n\t\tif _, err := fmt.Scan(&n); err != nil { break }\n\t\ts += n\n\t}\n\tfmt.Println(s)\n}\n",
        "package main\nfunc main() { x := 1 }",
    ),
    (
        Language::JavaScript,
        "const t = require('fs').readFileSync(0, 'utf8');\nconsole.log(t.split(/\\s+/).filter(Boolean).map(Number).reduce((a, b) => a + b, 0));\n",
        "function f( {",
    ),
    (Language::Shell, "total=0\nfor n in $(cat); do total=$((total + n)); done\necho $total\n", "if true; then\n"),
];

#[test]
fn every_language_compiles_and_runs() {
    let Some(sandbox) = tools() else { return };
    for (language, right, broken) in SUMS {
        let result = graded_in(sandbox, *language, right, &sums(), None);
        assert_eq!((result.compiled, result.passed), (true, 3), "{language:?}: {result:?}");
        let result = graded_in(sandbox, *language, broken, &sums(), None);
        assert_eq!((result.compiled, outcomes(&result)), (false, vec![SyntaxError; 3]), "{language:?}");
        assert!(!result.import_error.unwrap().is_empty());
    }
}

#[test]
fn programs_of_several_files() {
    let Some(sandbox) = tools() else { return };
    for (language, items) in [
        (Language::Python, vec![("main.py", "from part import f\nprint(f())"), ("part.py", "def f(): return 3")]),
        (
            Language::Cpp,
            vec![
                ("main.cpp", "#include <cstdio>\nint f();\nint main() { printf(\"%d\", f()); }"),
                ("part.cpp", "int f() { return 3; }"),
            ],
        ),
        (
            Language::Rust,
            vec![
                ("main.rs", "mod part;\nfn main() { println!(\"{}\", part::f()) }"),
                ("part.rs", "pub fn f() -> i32 { 3 }"),
            ],
        ),
        (
            Language::Go,
            vec![
                ("main.go", "package main\nfunc main() { println2(f()) }"),
                (
                    "part.go",
                    "package main\nimport \"fmt\"\nfunc f() int { return 3 }\nfunc println2(n int) { fmt.Println(n) }",
                ),
            ],
        ),
        (
            Language::JavaScript,
            vec![("main.js", "console.log(require('./part').f())"), ("part.js", "exports.f = () => 3")],
        ),
    ] {
        let cases = [ProgramCase::new("", "3")];
        let suite = Programs { language, cases: &cases, checker: None };
        let solution = Solution { files: sandboxed::files(&items).into_iter().collect(), main: language.main_file() };
        let result = settled(|| grade_programs(sandbox, &solution, &suite, &options())).unwrap();
        assert_eq!(result.passed, 1, "{language:?}: {result:?}");
    }
}

#[test]
fn a_missing_tool_stops_the_run() {
    let cases = sums();
    let suite = Programs { language: Language::Go, cases: &cases, checker: None };
    // The default root holds Python and small tools.
    let result = grade_programs(sandbox(), &Language::Go.solution("package main"), &suite, &options());
    let error = result.unwrap_err();
    assert!(matches!(&error, GradeError::NoTool(_)) && error.to_string().contains("no go"), "{error}");
}
