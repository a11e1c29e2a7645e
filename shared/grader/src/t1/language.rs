//! How a program of each language is compiled and run.
//!
//! In: a language and a solution's files. Out: command lines for the sandbox, and what is brought out after compiling. The
//! root file system behind the sandbox must have the tools that are named here.

use crate::t0::Solution;
use rollmill_sandbox::Limits;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// A language of programs; spelled in lower case, `cpp` for C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython 3
    Python,
    /// C17 with GNU extensions
    C,
    /// C++17 with GNU extensions
    Cpp,
    /// Rust 2021
    Rust,
    /// Go
    Go,
    /// Node.js
    JavaScript,
    /// POSIX sh
    Shell,
}

/// A spelling that names no language: mend the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown language {0:?}: use python, c, cpp, rust, go, javascript or shell")]
pub struct UnknownLanguage(pub String);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Language, UnknownLanguage> {
        Language::ALL.into_iter().find(|l| l.row().name == text).ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

/// One language's line of the table. `{main}` stands for the main file, `{sources}` for all files of its kind, the main
/// one first.
struct Row {
    name: &'static str,
    ending: &'static str,
    compile: &'static [&'static str],
    /// `None` where the program is the compiled file.
    run: Option<&'static [&'static str]>,
}

/// Where a compiler puts the program, under /work.
pub(super) const BINARY: &str = ".out/program";

const CHECK_PYTHON: &str = "import sys\nopen(sys.argv[1], encoding='utf-8', errors='surrogateescape').close()\n\
    compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec', dont_inherit=True)";

impl Language {
    /// All of them.
    pub const ALL: [Language; 7] = [
        Language::Python,
        Language::C,
        Language::Cpp,
        Language::Rust,
        Language::Go,
        Language::JavaScript,
        Language::Shell,
    ];

    fn row(self) -> Row {
        let binary = |name, ending, compile| Row { name, ending, compile, run: None };
        match self {
            Language::Python => Row {
                name: "python",
                ending: ".py",
                compile: &["python3", "-I", "-S", "-B", "-c", CHECK_PYTHON, "{main}"],
                run: Some(&["python3", "-B", "{main}"]),
            },
            Language::C => binary("c", ".c", &["gcc", "-O2", "-std=gnu17", "-o", BINARY, "{sources}", "-lm"]),
            Language::Cpp => binary("cpp", ".cpp", &["g++", "-O2", "-std=gnu++17", "-o", BINARY, "{sources}"]),
            Language::Rust => binary("rust", ".rs", &["rustc", "-O", "--edition=2021", "-o", BINARY, "{main}"]),
            Language::Go => binary("go", ".go", &["go", "build", "-o", BINARY, "{sources}"]),
            Language::JavaScript => Row {
                name: "javascript",
                ending: ".js",
                compile: &["node", "--check", "{main}"],
                run: Some(&["node", "{main}"]),
            },
            Language::Shell => {
                Row { name: "shell", ending: ".sh", compile: &["sh", "-n", "{main}"], run: Some(&["sh", "{main}"]) }
            }
        }
    }

    /// The spelling.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The name of a solution's main file: `main.py`, `main.cpp`.
    pub fn main_file(self) -> String {
        format!("main{}", self.row().ending)
    }

    /// A solution of one file.
    pub fn solution(self, source: &str) -> Solution {
        Solution { files: vec![(self.main_file(), source.as_bytes().to_vec())], main: self.main_file() }
    }

    /// Whether a compiled file is what runs.
    pub(super) fn is_compiled(self) -> bool {
        self.row().run.is_none()
    }

    pub(super) fn compile_command(self, solution: &Solution) -> Vec<String> {
        let row = self.row();
        let others = solution.files.iter().map(|(name, _)| name);
        let others = others.filter(|name| name.ends_with(row.ending) && **name != solution.main);
        let mut argv = Vec::new();
        for word in row.compile {
            match *word {
                "{main}" => argv.push(solution.main.clone()),
                "{sources}" => argv.extend(std::iter::once(&solution.main).chain(others.clone()).cloned()),
                word => argv.push(word.to_owned()),
            }
        }
        argv
    }

    pub(super) fn run_command(self, main: &str) -> Vec<String> {
        match self.row().run {
            Some(words) => words.iter().map(|word| word.replace("{main}", main)).collect(),
            None => vec![format!("/work/{BINARY}")],
        }
    }

    /// The environment of the compiler: no downloads, caches where there is room.
    pub(super) fn compile_env(self) -> Vec<(String, String)> {
        let go = [("GOCACHE", "/tmp/go"), ("GO111MODULE", "off"), ("CGO_ENABLED", "0"), ("GOTOOLCHAIN", "local")];
        let pairs = if self == Language::Go { go.as_slice() } else { &[] };
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What compiling may use.
    pub(super) fn compile_limits(self) -> Limits {
        let wall = Duration::from_secs(if self.is_compiled() { 240 } else { 30 });
        Limits {
            wall,
            cpu: wall / 3,
            memory_bytes: 2 << 30,
            pids: 128,
            disk_bytes: 512 << 20,
            output_bytes: 64 << 10,
            collect_bytes: 64 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let mut solution = Language::Cpp.solution("int main() {}");
        solution.files.insert(0, ("part.cpp".into(), vec![]));
        solution.files.push(("part.h".into(), vec![]));
        let argv = Language::Cpp.compile_command(&solution);
        assert_eq!(argv[argv.len() - 2..], ["main.cpp", "part.cpp"]);
        assert_eq!(Language::Cpp.run_command("main.cpp"), ["/work/.out/program"]);
        assert_eq!(Language::Shell.run_command("a/b.sh"), ["sh", "a/b.sh"]);
        for language in Language::ALL {
            assert_eq!(language.name().parse(), Ok(language));
            assert_eq!(serde_json::to_value(language).unwrap(), language.name());
        }
        assert!("C++".parse::<Language>().is_err());
    }
}
