//! Cases of a program: what it reads, what it is to print.
//!
//! In: the public JSON form, an array of objects: `stdin` and `stdout` (strings), optional `args` (strings), `files`
//! (name to text, put beside the program), `exit` (a number, 0 by default, or `"any"`), `checker` ([`Checker`]'s
//! spelling, `tokens` by default). Out: [`ProgramCase`]s, and the same form back. What must hold: an error names the index
//! and the field; a suite that a program without output would pass is refused.

use super::checker::Checker;
use crate::cases::CasesError;
use crate::diff::misplaced;
use crate::t0::clip as cut;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// One run of a program and what must come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCase {
    /// What it reads.
    pub stdin: String,
    /// What it is to print. It never enters the sandbox.
    pub stdout: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Files beside it, by relative path.
    pub files: BTreeMap<String, String>,
    /// The exit code that is wanted as well; `None` for any.
    pub exit: Option<i32>,
    /// How the output is held against what is wanted.
    pub checker: Checker,
}

impl ProgramCase {
    /// A case of input and output alone.
    pub fn new(stdin: &str, stdout: &str) -> ProgramCase {
        ProgramCase {
            stdin: stdin.to_owned(),
            stdout: stdout.to_owned(),
            args: vec![],
            files: BTreeMap::new(),
            exit: Some(0),
            checker: Checker::Tokens,
        }
    }
}

/// The most characters of an input, an output or a file that are shown.
const SHOWN: usize = 200;

impl ProgramCase {
    /// The case in one line for people and policies: `input "1 2\n" -> output "3\n"`.
    pub fn shown(&self) -> String {
        let files = self.files.iter().map(|(name, text)| format!("file {name:?} {:?}, ", cut(text, SHOWN)));
        let args = if self.args.is_empty() { String::new() } else { format!("arguments {:?}, ", self.args) };
        let (stdin, stdout) = (cut(&self.stdin, SHOWN), cut(&self.stdout, SHOWN));
        let exit = self.exit.filter(|code| *code != 0).map_or(String::new(), |code| format!(", exit code {code}"));
        format!("{}{args}input {stdin:?} -> output {stdout:?}{exit}", files.collect::<String>())
    }
}

#[derive(Deserialize)]
struct Row {
    stdin: Option<Json>,
    stdout: Option<Json>,
    args: Option<Json>,
    files: Option<Json>,
    exit: Option<Json>,
    checker: Option<Json>,
}

/// Reads the public JSON form; fields beyond it are left to the caller.
pub fn parse_programs(json: &str) -> Result<Vec<ProgramCase>, CasesError> {
    let rows: Vec<Row> = serde_json::from_str(json)?;
    let cases: Vec<ProgramCase> =
        rows.into_iter().enumerate().map(|(index, row)| parse_case(index, row)).collect::<Result<_, _>>()?;
    if !cases.is_empty() && cases.iter().all(|case| case.stdout.trim().is_empty()) {
        let what = "empty in every case: a program that does nothing would pass".to_owned();
        return Err(CasesError::Field { index: 0, field: "stdout".to_owned(), what });
    }
    Ok(cases)
}

fn parse_case(index: usize, row: Row) -> Result<ProgramCase, CasesError> {
    let fail = |field: &'static str, what: String| CasesError::Field { index, field: field.to_owned(), what };
    let exit = match row.exit {
        None => Some(0),
        Some(Json::String(word)) if word == "any" => None,
        Some(other) => {
            let code = other.as_i64().filter(|n| (0..256).contains(n)).and_then(|n| i32::try_from(n).ok());
            Some(code.ok_or_else(|| fail("exit", format!("must be 0 to 255 or \"any\", not {}", clip(&other))))?)
        }
    };
    let checker = match row.checker {
        None => Checker::Tokens,
        Some(name) => text(name)
            .map_err(|what| fail("checker", what))?
            .parse()
            .map_err(|e: super::UnknownChecker| fail("checker", e.to_string()))?,
    };
    let args = row.args.map_or(Ok(vec![]), texts).map_err(|what| fail("args", what))?;
    if args.iter().any(|arg| arg.contains('\0')) {
        return Err(fail("args", "an argument cannot hold a NUL byte".to_owned()));
    }
    let files = row.files.map_or(Ok(BTreeMap::new()), named_texts).map_err(|what| fail("files", what))?;
    let bytes = files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
    if let Some(name) = misplaced(&bytes) {
        return Err(fail("files", format!("{name:?} is no plain relative path, or a file and a folder at once")));
    }
    let stdout = row.stdout.ok_or_else(|| fail("stdout", "missing".to_owned()))?;
    Ok(ProgramCase {
        stdin: row.stdin.map_or(Ok(String::new()), text).map_err(|what| fail("stdin", what))?,
        stdout: text(stdout).map_err(|what| fail("stdout", what))?,
        args,
        files,
        exit,
        checker,
    })
}

fn text(json: Json) -> Result<String, String> {
    match json {
        Json::String(text) => Ok(text),
        other => Err(format!("must be a string, not {}", clip(&other))),
    }
}

fn texts(json: Json) -> Result<Vec<String>, String> {
    match json {
        Json::Array(items) => items.into_iter().map(text).collect(),
        other => Err(format!("must be an array of strings, not {}", clip(&other))),
    }
}

fn named_texts(json: Json) -> Result<BTreeMap<String, String>, String> {
    match json {
        Json::Object(items) => items.into_iter().map(|(name, json)| Ok((name, text(json)?))).collect(),
        other => Err(format!("must be an object of strings, not {}", clip(&other))),
    }
}

fn clip(json: &Json) -> String {
    json.to_string().chars().take(40).collect()
}

/// Writes the public JSON form, which [`parse_programs`] reads to the same cases.
pub fn render_programs(cases: &[ProgramCase]) -> String {
    Json::Array(cases.iter().map(render_case).collect()).to_string()
}

fn render_case(case: &ProgramCase) -> Json {
    let mut row = Map::new();
    row.insert("stdin".to_owned(), json!(case.stdin));
    row.insert("stdout".to_owned(), json!(case.stdout));
    if !case.args.is_empty() {
        row.insert("args".to_owned(), json!(case.args));
    }
    if !case.files.is_empty() {
        row.insert("files".to_owned(), json!(case.files));
    }
    if case.exit != Some(0) {
        row.insert("exit".to_owned(), case.exit.map_or(json!("any"), |code| json!(code)));
    }
    if case.checker != Checker::Tokens {
        row.insert("checker".to_owned(), json!(case.checker.to_string()));
    }
    Json::Object(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_form() {
        let json = r#"[{"stdin": "1 2\n", "stdout": "3\n"}, {"stdout": "", "args": ["-n", "x y"], "exit": 3, "id": 7},
            {"stdin": "", "stdout": "0.5", "files": {"a/b.txt": "t"}, "exit": "any", "checker": "float(rel=0.1)"}]"#;
        let cases = parse_programs(json).unwrap();
        assert_eq!(cases[0], ProgramCase::new("1 2\n", "3\n"));
        assert_eq!((cases[1].exit, cases[1].args.len()), (Some(3), 2));
        assert_eq!((cases[2].exit, cases[2].files["a/b.txt"].as_str()), (None, "t"));
        assert_eq!(parse_programs(&render_programs(&cases)).unwrap(), cases);
    }

    #[test]
    fn a_case_is_shown_in_one_line() {
        let mut case = ProgramCase::new("1 2\n", "3\n");
        assert_eq!(case.shown(), r#"input "1 2\n" -> output "3\n""#);
        case.args = vec!["-n".into()];
        case.files.insert("a.txt".into(), "t".into());
        case.exit = Some(3);
        assert_eq!(case.shown(), r#"file "a.txt" "t", arguments ["-n"], input "1 2\n" -> output "3\n", exit code 3"#);
        case.stdin = "é".repeat(1000);
        assert_eq!(case.shown().matches('é').count(), SHOWN - 1, "the last one is an ellipsis");
    }

    #[test]
    fn errors_name_index_and_field() {
        for (bad, want) in [
            (r#"{"stdin": "1"}"#, "test case 1, field \"stdout\": missing"),
            (r#"{"stdin": 1, "stdout": ""}"#, "test case 1, field \"stdin\": must be a string, not 1"),
            (r#"{"stdout": "", "args": "x"}"#, "test case 1, field \"args\": must be an array"),
            (r#"{"stdout": "", "files": {"a": 1}}"#, "test case 1, field \"files\": must be a string"),
            (r#"{"stdout": "", "args": ["a\u0000"]}"#, "test case 1, field \"args\": an argument cannot"),
            (r#"{"stdout": "", "files": {"../a": ""}}"#, "test case 1, field \"files\": \"../a\" is no plain"),
            (r#"{"stdout": "", "files": {"a": "", "a/b": ""}}"#, "test case 1, field \"files\": \"a\" is no plain"),
            (r#"{"stdout": "", "exit": 256}"#, "test case 1, field \"exit\": must be 0 to 255"),
            (r#"{"stdout": "", "checker": "fuzzy"}"#, "test case 1, field \"checker\": unknown checker"),
        ] {
            let error = parse_programs(&format!(r#"[{{"stdout": "1"}}, {bad}]"#)).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
        assert!(matches!(parse_programs("{}"), Err(CasesError::Json(_))));
    }

    #[test]
    fn a_suite_that_silence_passes_is_refused() {
        let error = parse_programs(r#"[{"stdout": ""}, {"stdout": "\n"}]"#).unwrap_err().to_string();
        assert!(error.contains("does nothing would pass"), "{error}");
        assert!(parse_programs("[]").unwrap().is_empty());
    }
}
