//! Brings files out of a sandbox whose processes are all dead.
//!
//! In: a descriptor of its /work, which a hostile program filled. Out: bytes of regular files. What must hold: nothing is
//! followed, waited for or opened for writing; files, entries, depth and bytes are bounded; what is left behind is named.
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use crate::{Collected, Refusal, sys};

/// The most entries looked at, and refusals named.
const MAX_ENTRIES: usize = 20_000;
const MAX_REFUSED: usize = 100;
/// How deep folders may nest.
const MAX_DEPTH: usize = 32;

/// Everything under the `wanted` paths, at most `bytes` in all.
pub fn read(work: &OwnedFd, wanted: &[String], bytes: u64) -> Collected {
    let mut reader = Reader { found: Collected::default(), left: bytes, entries: 0 };
    for path in wanted {
        let at = if path.is_empty() { "." } else { path };
        reader.visit(work.as_raw_fd(), OsStr::new(at), path, 0);
    }
    reader.found.files.sort();
    reader.found.files.dedup_by(|a, b| a.0 == b.0);
    reader.found
}

struct Reader {
    found: Collected,
    left: u64,
    entries: usize,
}

impl Reader {
    fn visit(&mut self, at: i32, name: &OsStr, path: &str, depth: usize) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return self.refuse(path, "too many entries");
        }
        let file = match sys::open_beneath(at, name, 0) {
            Ok(fd) => File::from(fd),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) => return self.refuse(path, why(&e)),
        };
        let about = match file.metadata() {
            Ok(about) => about,
            Err(_) => return self.refuse(path, "cannot be looked at"),
        };
        if about.is_dir() {
            self.folder(&file, path, depth);
        } else if !about.is_file() {
            self.refuse(path, "a special file");
        } else if about.nlink() != 1 {
            self.refuse(path, "a file with several names");
        } else if about.size() > self.left {
            self.refuse(path, "over the limit on bytes");
        } else {
            self.file(file, path);
        }
    }

    fn folder(&mut self, folder: &File, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.refuse(path, "folders nested too deeply");
        }
        // Through /proc, because std reads folders by name only; the link is the kernel's own.
        let Ok(entries) = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())) else {
            return self.refuse(path, "cannot be read");
        };
        let mut names: Vec<_> = entries.take(MAX_ENTRIES).flatten().map(|e| e.file_name()).collect();
        names.sort();
        for name in names {
            let Some(text) = name.to_str() else {
                self.refuse(&format!("{path}/{}", name.to_string_lossy()), "a name that is not unicode");
                continue;
            };
            let child = if path.is_empty() { text.to_string() } else { format!("{path}/{text}") };
            self.visit(folder.as_raw_fd(), &name, &child, depth + 1);
        }
    }

    fn file(&mut self, file: File, path: &str) {
        let mut bytes = Vec::new();
        match file.take(self.left).read_to_end(&mut bytes) {
            Ok(n) => {
                self.left -= n as u64;
                self.found.files.push((path.into(), bytes));
            }
            Err(_) => self.refuse(path, "cannot be read"),
        }
    }

    fn refuse(&mut self, path: &str, reason: &str) {
        if self.found.refused.len() < MAX_REFUSED {
            self.found.refused.push(Refusal { path: path.into(), reason: reason.into() });
        }
    }
}

fn why(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ELOOP) => "a symbolic link",
        Some(libc::EXDEV) => "outside of /work",
        Some(libc::ENXIO | libc::ENODEV) => "a special file",
        Some(libc::EACCES | libc::EPERM) => "cannot be read",
        _ => "cannot be opened",
    }
}
