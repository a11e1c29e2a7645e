//! How a program of each language is compiled and run.
//!
//! In: a language and a solution's files. Out: command lines for the sandbox and limits, from the sandbox's own table of tool
//! chains, with more than one source file and a check of syntax where nothing is compiled. The root file system behind the
//! sandbox must hold the tool chain (profile `all`, or the language's); servers and custom checkers need its python3 as well.

use crate::t0::Solution;
use rollmill_sandbox::Limits;
use rollmill_sandbox::toolchain::{PROGRAM, Toolchain};
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
    /// bash
    Shell,
}

/// A spelling that names no language: mend the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown language {0:?}: use python, c, cpp, rust, go, javascript or shell")]
pub struct UnknownLanguage(pub String);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Language, UnknownLanguage> {
        Language::ALL.into_iter().find(|l| l.name() == text).ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

/// C is compiled as C++ is.
static C: Toolchain = Toolchain {
    language: "c",
    packages: &["gcc"],
    source: "main.c",
    compile: &["gcc", "-O2", "-std=gnu17", "-o", PROGRAM, "main.c", "-lm"],
    run: &["./program"],
    env: &[],
    compile_limits: limits(60, 1024, 32, 128),
    run_limits: limits(10, 512, 32, 64),
};

const fn limits(seconds: u64, memory_mib: u64, pids: u32, disk_mib: u64) -> Limits {
    Limits {
        wall: Duration::from_secs(seconds),
        cpu: Duration::from_secs(seconds),
        memory_bytes: memory_mib << 20,
        pids,
        disk_bytes: disk_mib << 20,
        output_bytes: 1 << 20,
        collect_bytes: 32 << 20,
    }
}

const CHECK_PYTHON: &str = "import sys\nwith open(sys.argv[1], 'rb') as f: source = f.read()\n\
    compile(source, sys.argv[1], 'exec', dont_inherit=True)";

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

    /// Its tool chain in [`rollmill_sandbox::toolchain`]; C has none there.
    fn tools(self) -> &'static Toolchain {
        Toolchain::of(self.name()).unwrap_or(&C)
    }

    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::C => "c",
            Language::Cpp => "cpp",
            Language::Rust => "rust",
            Language::Go => "go",
            Language::JavaScript => "javascript",
            Language::Shell => "shell",
        }
    }

    /// The name of a solution's main file: `main.py`, `main.cpp`.
    pub fn main_file(self) -> String {
        self.tools().source.to_owned()
    }

    /// A solution of one file.
    pub fn solution(self, source: &str) -> Solution {
        Solution { files: vec![(self.main_file(), source.as_bytes().to_vec())], main: self.main_file() }
    }

    /// Whether a compiled file is what runs.
    pub(super) fn is_compiled(self) -> bool {
        !self.tools().compile.is_empty()
    }

    /// Compiles all files of the language's kind, the main one first; where nothing is compiled, checks the syntax of the
    /// main one.
    pub(super) fn compile_command(self, solution: &Solution) -> Vec<String> {
        let tools = self.tools();
        let main = solution.main.clone();
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).chain([main.clone()]).collect();
        match self {
            Language::Python => return words(&["python3", "-I", "-S", "-B", "-c", CHECK_PYTHON]),
            Language::JavaScript => return words(&["node", "--check"]),
            Language::Shell => return words(&["bash", "-n"]),
            _ => {}
        }
        let ending = tools.source.trim_start_matches("main");
        let others = solution.files.iter().map(|(name, _)| name.clone());
        let others = others.filter(|name| name.ends_with(ending) && *name != main);
        // rustc finds the others by itself
        let others: Vec<String> = if self == Language::Rust { vec![] } else { others.collect() };
        let sources = |word: &&str| match *word == tools.source {
            true => std::iter::once(main.clone()).chain(others.clone()).collect(),
            false => vec![(*word).to_owned()],
        };
        tools.compile.iter().flat_map(sources).collect()
    }

    pub(super) fn run_command(self, main: &str) -> Vec<String> {
        if self == Language::Python {
            // not -I: a program of several files imports its own
            return ["python3", "-B", main].map(str::to_owned).to_vec();
        }
        let tools = self.tools();
        tools.run.iter().map(|word| if *word == tools.source { main } else { word }.to_owned()).collect()
    }

    pub(super) fn env(self) -> Vec<(String, String)> {
        self.tools().env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What compiling may use; a busy machine gets three times the wall clock.
    pub(super) fn compile_limits(self) -> Limits {
        let limits = self.tools().compile_limits.clone();
        Limits { wall: 3 * limits.cpu, ..limits }
    }

    /// Memory, processes, disk and output of a program.
    pub(super) fn run_limits(self) -> Limits {
        self.tools().run_limits.clone()
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
        assert_eq!(Language::Cpp.run_command("main.cpp"), ["./program"]);
        assert_eq!(Language::Shell.run_command("a/b.sh"), ["bash", "a/b.sh"]);
        assert_eq!(Language::C.compile_command(&Language::C.solution(""))[4..], [PROGRAM, "main.c", "-lm"]);
        for language in Language::ALL {
            assert_eq!(language.name().parse(), Ok(language));
            assert_eq!(serde_json::to_value(language).unwrap(), language.name());
        }
        assert!("C++".parse::<Language>().is_err());
    }
}
