//! What an agent changed, reduced to what may count: an allow-listed diff over a pristine copy.
//!
//! In: the pristine files of a task, the agent's files as they came out of its sandbox, rules. Out: the files to grade, and
//! what was ignored or refused, with reasons. What must hold: no file outside the allowed paths differs from the pristine
//! one; tests and their configuration are always the pristine ones; nothing that a tool chain would pick up by itself
//! (bytecode, `.pth`, `sitecustomize.py`) comes along. An agent's own tests and configuration are ignored, which costs it
//! nothing. What it does not know: links, special files and modes; they never leave the sandbox ([`Collected::refused`]),
//! and files go back in as plain ones that nobody can make setuid.

mod glob;

use glob::matches;
use rollmill_sandbox::{Collected, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// Paths that are never taken from an agent, whatever is allowed: tests and what configures them.
const IGNORED: &[&str] = &[
    "**/conftest.py",
    "**/pytest.ini",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/.pytest.toml",
    "**/tox.ini",
    "**/setup.cfg",
    "**/test_*.py",
    "**/*_test.py",
    "**/tests/**",
    "**/*_test.go",
    "**/*.test.js",
    "**/*.test.ts",
    "**/*.spec.js",
    "**/*.spec.ts",
    "**/__tests__/**",
    "**/.cargo/**",
    "**/.git/**",
    "**/.github/**",
    "**/.coveragerc",
    "**/__pycache__/**",
    "**/.pytest_cache/**",
    "**/node_modules/**",
];

/// Paths that an agent has no honest reason to write: what a tool chain would run unasked.
const REFUSED: &[&str] = &["**/*.pyc", "**/*.pyo", "**/*.pth", "**/sitecustomize.py", "**/usercustomize.py"];

/// Which changes count.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffRules {
    /// Patterns of paths that an agent may add, change and delete: `src/**`, `*.py`. A part is matched by `*` and `?`, any
    /// number of parts by `**`.
    pub allow: Vec<String>,
    /// Patterns of paths that are never taken from an agent, beside those for tests and configuration that always hold: what
    /// the suite's command is read from, such as `Makefile`, `package.json` or `Cargo.toml`.
    pub protect: Vec<String>,
    /// The most changed files.
    pub max_files: usize,
    /// The most bytes in one changed file.
    pub max_file_bytes: usize,
    /// The most bytes in all changed files.
    pub max_bytes: usize,
}

impl Default for DiffRules {
    /// Everything that is not protected; 500 files, 1 MiB each, 8 MiB in all.
    fn default() -> DiffRules {
        DiffRules {
            allow: vec!["**".to_owned()],
            protect: vec![],
            max_files: 500,
            max_file_bytes: 1 << 20,
            max_bytes: 8 << 20,
        }
    }
}

/// Files by relative path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What is graded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The pristine files with the changes that count.
    pub files: Files,
    /// Paths added or changed.
    pub changed: Vec<String>,
    /// Paths deleted.
    pub deleted: Vec<String>,
    /// What an honest agent does and what does not count: own tests, configuration, paths that are not allowed.
    pub ignored: Vec<Refusal>,
    /// What is not accepted: links and special files, bytecode, path configuration, what is over a cap.
    pub refused: Vec<Refusal>,
}

impl DiffRules {
    /// Applies an agent's whole folder, as [`rollmill_sandbox::Spec::collect`] with an empty path brings it out. A pristine
    /// file that is neither in it nor refused there was deleted.
    pub fn apply(&self, pristine: &Files, agent: &Collected) -> Applied {
        let mut applied = self.overlay(pristine, &agent.files);
        applied.refused.splice(0..0, agent.refused.iter().cloned());
        self.delete(pristine, agent, &mut applied);
        applied
    }

    /// Puts files over the pristine ones, such as those of a [`crate::Solution`]; nothing is deleted.
    pub fn overlay(&self, pristine: &Files, agent: &[(String, Vec<u8>)]) -> Applied {
        let mut applied = Applied { files: pristine.clone(), ..Applied::default() };
        let mut bytes = 0;
        for (path, content) in agent {
            if pristine.get(path) == Some(content) {
                continue;
            }
            if let Some(reason) = self.refuses(path, content, &applied.files) {
                applied.refused.push(refusal(path, reason));
            } else if let Some(reason) = self.ignores(path, content, pristine) {
                applied.ignored.push(refusal(path, reason));
            } else if applied.changed.len() >= self.max_files || bytes + content.len() > self.max_bytes {
                applied.refused.push(refusal(path, "over the limit on changes"));
            } else {
                bytes += content.len();
                applied.files.insert(path.clone(), content.clone());
                applied.changed.push(path.clone());
            }
        }
        applied
    }

    fn delete(&self, pristine: &Files, agent: &Collected, applied: &mut Applied) {
        let kept: BTreeSet<&str> = agent.files.iter().map(|(path, _)| path.as_str()).collect();
        // What could not be brought out is not gone: a folder that was refused stands for all below it.
        let below = |path: &str, folder: &str| {
            path.strip_prefix(folder).is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
        };
        let unseen = |path: &str| agent.refused.iter().any(|refused| below(path, &refused.path));
        for path in pristine.keys().filter(|p| !kept.contains(p.as_str()) && !unseen(p)) {
            if self.is_protected(path) || !self.is_allowed(path) {
                applied.ignored.push(refusal(path, "deleted outside the allowed paths"));
            } else {
                applied.files.remove(path);
                applied.deleted.push(path.clone());
            }
        }
    }

    fn refuses(&self, path: &str, content: &[u8], files: &Files) -> Option<&'static str> {
        if !is_plain(path) {
            return Some("no plain relative path");
        }
        if REFUSED.iter().any(|p| matches(p, &path.to_ascii_lowercase())) {
            return Some("bytecode or path configuration");
        }
        if content.len() > self.max_file_bytes {
            return Some("over the limit on bytes");
        }
        in_the_way(path, files).then_some("a file in place of a folder, or the other way round")
    }

    fn ignores(&self, path: &str, content: &[u8], pristine: &Files) -> Option<&'static str> {
        if self.is_protected(path) {
            return Some("tests and their configuration are the pristine ones");
        }
        if !self.is_allowed(path) {
            return Some("outside the allowed paths");
        }
        let is_project = path.rsplit('/').next() == Some("pyproject.toml");
        let old = pristine.get(path).map_or("", |old| std::str::from_utf8(old).unwrap_or(""));
        (is_project && test_section(old) != test_section(std::str::from_utf8(content).unwrap_or("[tool.pytest]")))
            .then_some("tests and their configuration are the pristine ones")
    }

    fn is_protected(&self, path: &str) -> bool {
        IGNORED.iter().copied().chain(self.protect.iter().map(String::as_str)).any(|p| matches(p, path))
    }

    fn is_allowed(&self, path: &str) -> bool {
        self.allow.iter().any(|p| matches(p, path))
    }
}

fn refusal(path: &str, reason: &str) -> Refusal {
    Refusal { path: path.to_owned(), reason: reason.to_owned() }
}

/// Whether a folder of the path is a file in `files`, or the path a folder.
fn in_the_way(path: &str, files: &Files) -> bool {
    let below = format!("{path}/");
    let is_folder = files.range(below.clone()..).next().is_some_and(|(p, _)| p.starts_with(&below));
    is_folder || path.match_indices('/').any(|(at, _)| files.contains_key(&path[..at]))
}

/// The first path that cannot be among these in one folder: not plain and relative, or a file and a folder at once.
pub(crate) fn misplaced(files: &Files) -> Option<&str> {
    files.keys().map(String::as_str).find(|path| !is_plain(path) || in_the_way(path, files))
}

pub(crate) fn is_plain(path: &str) -> bool {
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.len() > 255 || part.contains(['\0', '\\']);
    path.len() <= 1000 && !path.split('/').any(odd)
}

/// The lines of a pyproject.toml that a test runner would read: all tables whose name holds `pytest`. Text that hides one in
/// another spelling of TOML (dotted keys, quotes, escapes) counts whole.
fn test_section(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.contains("pytest") || line.contains('\\') || line == "[tool]";
        }
        if (inside || line.contains("pytest")) && !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests;
