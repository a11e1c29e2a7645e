//! The folder of one run where no file system can be mounted: made by the helper, filled by a hostile program, measured
//! while it runs and removed after it.
//!
//! What must hold: nothing is followed out of it; neither depth nor modes nor numbers of what is inside make measuring or
//! removing fail or take unbounded memory.
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::helper::tree;
use crate::sys;

/// How many entries a run may have, as its file system would bound it.
const MAX_ENTRIES: u64 = 16_384;
const PREFIX: &str = "run-";

pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes it below `runs`, for a user. Only that user, and those on the way to it, get in.
    pub fn create(runs: &Path, uid: u32, gid: u32) -> io::Result<RunFolder> {
        let folder = RunFolder { path: runs.join(format!("{PREFIX}{}", std::process::id())) };
        folder.remove(); // left by a killed helper that had our pid
        fs::create_dir(&folder.path)?;
        fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o711))?;
        for inner in [folder.work(), folder.tmp(), folder.pristine()] {
            fs::create_dir(&inner)?;
            fs::set_permissions(&inner, fs::Permissions::from_mode(0o700))?;
            if sys::effective_ids() != (uid, gid) {
                sys::chown(&inner, uid, gid)?;
            }
        }
        Ok(folder)
    }

    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    pub fn pristine(&self) -> PathBuf {
        self.path.join("pristine")
    }

    /// Whether the run has more than `bytes` on disk, files that are open but have no name any more included. What cannot be
    /// looked at counts as too much.
    pub fn is_over(&self, bytes: u64, init: i32) -> bool {
        let (mut used, mut entries) = (unnamed_bytes(init), 0);
        let mut folders = vec![self.work(), self.tmp()];
        while let Some(folder) = folders.pop() {
            let listing = match fs::read_dir(&folder) {
                Ok(listing) => listing,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => return true,
            };
            for entry in listing.flatten() {
                entries += 1;
                match fs::symlink_metadata(entry.path()) {
                    Ok(about) if about.is_dir() => folders.push(entry.path()),
                    Ok(about) => used += about.blocks() * 512,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => return true,
                }
                if used > bytes || entries > MAX_ENTRIES {
                    return true;
                }
            }
        }
        used > bytes
    }

    /// Removes it and all inside. Folders are brought up to the top before they are emptied, so depth does not matter.
    pub fn remove(&self) {
        let _ = remove(&self.path); // the next sweep takes what is left
    }
}

/// Removes folders of helpers that are gone.
pub fn sweep(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(PREFIX).is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = remove(&entry.path()); // busy or not ours
        }
    }
}

fn remove(top: &Path) -> io::Result<()> {
    let mut number = 0u64;
    open_up(top)?;
    loop {
        let mut found = false;
        for entry in fs::read_dir(top)? {
            let entry = entry?;
            found = true;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            open_up(&entry.path())?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    open_up(&inner.path())?; // a folder that moves is written to
                    number += 1;
                    fs::rename(inner.path(), top.join(format!(".{}-{number}", std::process::id())))?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
        if !found {
            return fs::remove_dir(top);
        }
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn unnamed_bytes(init: i32) -> u64 {
    let files =
        tree::pids(&[init]).into_iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten());
    let about = files.flatten().filter_map(|fd| fs::metadata(fd.path()).ok());
    about.filter(|about| about.is_file() && about.nlink() == 0).map(|about| about.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_leaves_is_measured_and_removed() {
        let runs = tempfile::tempdir().unwrap();
        fs::write(runs.path().join("beside"), "x").unwrap();
        let (uid, gid) = sys::effective_ids();
        let folder = RunFolder::create(runs.path(), uid, gid).unwrap();
        let none = i32::MAX;
        assert!(!folder.is_over(4096, none));
        fs::write(folder.tmp().join("a"), vec![1; 100_000]).unwrap();
        assert!(folder.is_over(65_536, none) && !folder.is_over(200_000, none));
        let mut at = folder.work();
        for _ in 0..200 {
            at.push("deeper-and-deeper");
            fs::create_dir(&at).unwrap();
        }
        std::os::unix::fs::symlink(runs.path(), folder.work().join("link")).unwrap();
        fs::set_permissions(folder.work().join("deeper-and-deeper"), fs::Permissions::from_mode(0o000)).unwrap();
        folder.remove();
        let left: Vec<_> = fs::read_dir(runs.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["beside"]);
    }

    #[test]
    fn a_sweep_takes_what_dead_helpers_left_and_nothing_else() {
        let runs = tempfile::tempdir().unwrap();
        for name in ["run-999999999", &format!("run-{}", std::process::id()), "other"] {
            fs::create_dir_all(runs.path().join(name).join("work/x")).unwrap();
        }
        sweep(runs.path());
        assert!(!runs.path().join("run-999999999").exists());
        assert!(runs.path().join("other").exists() && runs.path().join(format!("run-{}", std::process::id())).exists());
    }
}
