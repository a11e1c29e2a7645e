//! A solution's files, as they are put into the sandbox.
//!
//! In: a file or a folder that an untrusted process may have written. Out: names and bytes. What must hold: nothing is
//! followed or opened but regular files; sizes and counts are capped; no bytecode and no path configuration comes along.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most bytes in one file.
pub const MAX_FILE: u64 = 4 << 20;
/// The most bytes in all files together.
pub const MAX_ALL: u64 = 16 << 20;
/// The most files, and the most entries looked at.
pub const MAX_FILES: usize = 1000;
/// How deep folders may nest.
pub const MAX_DEPTH: usize = 16;

/// A solution: files by relative path, and which of them is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// Relative path (`/` separated) and content.
    pub files: Vec<(String, Vec<u8>)>,
    /// The path of the module that is imported, such as `solution.py`.
    pub main: String,
}

/// Why a path is no solution. It was refused because of what the solution's author put there, or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SolutionError {
    /// A symbolic link, a device, a FIFO, a `.pyc` or a `.pth`.
    #[error("{path}: {what} is not accepted in a solution: leave it out")]
    Refused {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Over a cap.
    #[error("{path}: the solution has {what}: make it smaller")]
    TooLarge {
        /// Where.
        path: PathBuf,
        /// Which cap.
        what: &'static str,
    },
    /// No file to import.
    #[error("{path}: no solution.py and no single .py file to import: name it solution.py")]
    NoMain {
        /// The folder.
        path: PathBuf,
    },
    /// No file to compile or run.
    #[error("{path}: no {main} and no single file of its ending: name it {main}")]
    NoProgram {
        /// The folder.
        path: PathBuf,
        /// What is looked for.
        main: String,
    },
    /// It could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Solution {
    /// A solution of one file, `solution.py`.
    pub fn from_source(source: &str) -> Solution {
        Solution { files: vec![("solution.py".to_owned(), source.as_bytes().to_vec())], main: "solution.py".to_owned() }
    }

    /// Reads a file, or a folder with a `solution.py` or a single `.py` file at its top. `__pycache__` and `.git` are left
    /// out; links, special files, `.pyc` and `.pth` are refused.
    pub fn from_path(path: &Path) -> Result<Solution, SolutionError> {
        let mut reader = Reader { files: Vec::new(), bytes: 0, entries: 0 };
        let kind = lstat(path)?.file_type();
        if kind.is_dir() {
            reader.folder(path, "", 0)?;
            reader.files.sort();
            let main = main_of(&reader.files).ok_or_else(|| SolutionError::NoMain { path: path.to_owned() })?;
            return Ok(Solution { files: reader.files, main });
        }
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("solution.py").to_owned();
        reader.file(path, name.clone())?;
        Ok(Solution { files: reader.files, main: name })
    }

    /// Reads a file under the name `main`, or a folder with a file of that name, or with a single file of the same ending, at
    /// its top. What is refused is as for [`Solution::from_path`].
    pub fn program(path: &Path, main: &str) -> Result<Solution, SolutionError> {
        if lstat(path)?.file_type().is_file() {
            let mut reader = Reader { files: Vec::new(), bytes: 0, entries: 0 };
            reader.file(path, main.to_owned())?;
            return Ok(Solution { files: reader.files, main: main.to_owned() });
        }
        let mut solution = Solution::tree(path)?;
        let ending = main.rsplit_once('.').map_or(main, |(_, ending)| ending);
        let alike = |name: &&str| !name.contains('/') && name.rsplit_once('.').is_some_and(|(_, e)| e == ending);
        let mut alike = solution.files.iter().map(|(name, _)| name.as_str()).filter(alike);
        let found = match (solution.files.iter().any(|(name, _)| name == main), alike.next(), alike.next()) {
            (true, ..) => Some(main.to_owned()),
            (false, Some(only), None) => Some(only.to_owned()),
            _ => None,
        };
        let name_it = || SolutionError::NoProgram { path: path.to_owned(), main: main.to_owned() };
        solution.main = found.ok_or_else(name_it)?;
        Ok(solution)
    }

    /// Reads a whole folder, of which no file is the main one.
    pub fn tree(path: &Path) -> Result<Solution, SolutionError> {
        let mut reader = Reader { files: Vec::new(), bytes: 0, entries: 0 };
        reader.folder(path, "", 0)?;
        reader.files.sort();
        Ok(Solution { files: reader.files, main: String::new() })
    }

    /// The source of the main file, with foreign bytes replaced; empty if it is not there.
    pub fn main_source(&self) -> String {
        let main = self.files.iter().find(|(name, _)| *name == self.main);
        main.map_or(String::new(), |(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
    }
}

fn main_of(files: &[(String, Vec<u8>)]) -> Option<String> {
    let top: Vec<&String> =
        files.iter().map(|(name, _)| name).filter(|n| n.ends_with(".py") && !n.contains('/')).collect();
    match top.iter().find(|n| n.as_str() == "solution.py") {
        Some(name) => Some((*name).clone()),
        None if top.len() == 1 => Some(top[0].clone()),
        None => None,
    }
}

fn lstat(path: &Path) -> Result<fs::Metadata, SolutionError> {
    fs::symlink_metadata(path).map_err(|source| SolutionError::Read { path: path.to_owned(), source })
}

struct Reader {
    files: Vec<(String, Vec<u8>)>,
    bytes: u64,
    entries: usize,
}

impl Reader {
    fn folder(&mut self, path: &Path, prefix: &str, depth: usize) -> Result<(), SolutionError> {
        if depth > MAX_DEPTH {
            return Err(SolutionError::TooLarge { path: path.to_owned(), what: "folders nested too deeply" });
        }
        let unread = |source| SolutionError::Read { path: path.to_owned(), source };
        for entry in fs::read_dir(path).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            self.entries += 1;
            if self.entries > MAX_FILES {
                return Err(SolutionError::TooLarge { path: path.to_owned(), what: "too many files" });
            }
            let child = entry.path();
            let name = entry.file_name().into_string();
            let name =
                name.map_err(|_| SolutionError::Refused { path: child.clone(), what: "a name that is not unicode" })?;
            let relative = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            if !lstat(&child)?.file_type().is_dir() {
                self.file(&child, relative)?;
            } else if name != "__pycache__" && name != ".git" {
                self.folder(&child, &relative, depth + 1)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, relative: String) -> Result<(), SolutionError> {
        let refused = |what| SolutionError::Refused { path: path.to_owned(), what };
        let unread = |source| SolutionError::Read { path: path.to_owned(), source };
        let kind = lstat(path)?.file_type();
        if kind.is_symlink() {
            return Err(refused("a symbolic link"));
        }
        if !kind.is_file() {
            return Err(refused("a special file"));
        }
        let lower = relative.to_ascii_lowercase();
        if [".pyc", ".pyo", ".pth"].iter().any(|ending| lower.ends_with(ending)) {
            return Err(refused("bytecode or path configuration"));
        }
        // What is opened may not be what was looked at: neither follow a link nor wait for a FIFO, and look again.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unread)?;
        if !file.metadata().map_err(unread)?.is_file() {
            return Err(refused("a special file"));
        }
        let mut content = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut content).map_err(unread)?;
        self.bytes += content.len() as u64;
        if content.len() as u64 > MAX_FILE || self.bytes > MAX_ALL {
            return Err(SolutionError::TooLarge { path: path.to_owned(), what: "too many bytes" });
        }
        self.files.push((relative, content));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x = 1\n").unwrap();
        }
        dir
    }

    #[test]
    fn files_and_folders() {
        let dir =
            folder(&["solution.py", "pkg/a.py", "__pycache__/solution.cpython-311.pyc", ".git/config", "other.py"]);
        let solution = Solution::from_path(dir.path()).unwrap();
        let names: Vec<&str> = solution.files.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["other.py", "pkg/a.py", "solution.py"]);
        assert_eq!(solution.main, "solution.py");
        assert_eq!(solution.main_source(), "x = 1\n");
        assert_eq!(Solution::from_path(&dir.path().join("other.py")).unwrap().main, "other.py");
        assert_eq!(Solution::from_path(folder(&["f.py", "pkg/g.py"]).path()).unwrap().main, "f.py");
        assert!(matches!(Solution::from_path(folder(&["f.py", "g.py"]).path()), Err(SolutionError::NoMain { .. })));
    }

    #[test]
    fn programs_and_trees() {
        let dir = folder(&["main.cpp", "part.cpp", "lib/a.h"]);
        let program = Solution::program(dir.path(), "main.cpp").unwrap();
        assert_eq!((program.main.as_str(), program.files.len()), ("main.cpp", 3));
        assert_eq!(Solution::program(&dir.path().join("part.cpp"), "main.cpp").unwrap().files[0].0, "main.cpp");
        assert_eq!(Solution::program(folder(&["x.go", "y.md"]).path(), "main.go").unwrap().main, "x.go");
        let two = folder(&["x.go", "y.go"]);
        assert!(matches!(Solution::program(two.path(), "main.go"), Err(SolutionError::NoProgram { .. })));
        assert_eq!(Solution::tree(dir.path()).unwrap().files.len(), 3);
    }

    #[test]
    fn refused() {
        for bad in ["evil.pth", "evil.PYC"] {
            let dir = folder(&["solution.py", bad]);
            assert!(matches!(Solution::from_path(dir.path()), Err(SolutionError::Refused { .. })), "{bad}");
        }
        let dir = folder(&["solution.py"]);
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link.py")).unwrap();
        assert!(matches!(Solution::from_path(dir.path()), Err(SolutionError::Refused { what: "a symbolic link", .. })));
        assert!(Solution::from_path(&dir.path().join("link.py")).is_err());
        let dir = folder(&["solution.py"]);
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        assert!(matches!(Solution::from_path(dir.path()), Err(SolutionError::Refused { what: "a special file", .. })));
        let dir = folder(&["solution.py"]);
        let sparse = fs::File::create(dir.path().join("data.bin")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert!(matches!(Solution::from_path(dir.path()), Err(SolutionError::TooLarge { .. })));
        assert!(matches!(Solution::from_path(&dir.path().join("none")), Err(SolutionError::Read { .. })));
    }
}
