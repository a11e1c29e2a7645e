//! Where built trees are kept: whole by one rename, built once, never written again.
//!
//! In: a folder of trees, the place of one of them, how to build it. Out: nothing but the place. What must hold: a place
//! exists with its digest or not at all; a builder that was killed leaves only what the next one sweeps.
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::copy;
use crate::sys;

/// How the folders of half-built trees begin.
const STAGING: &str = ".staging-";

/// The file beside a tree that makes it count.
pub const DIGEST: &str = "digest";

/// Whether something was built there.
pub fn is_built(place: &Path) -> bool {
    place.join(DIGEST).exists()
}

/// Builds under a lock, so that processes starting together build once; the rename alone would be correct, but slow. `build`
/// fills the folder it is given, with the root file system in `tree`.
pub fn build_once(folder: &Path, place: &Path, build: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let lock = fs::File::create(folder.join("lock"))?;
    sys::try_lock(&lock, true)?;
    if is_built(place) {
        return Ok(());
    }
    for entry in fs::read_dir(folder)?.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(STAGING)) {
        remove_all(&entry.path())?; // of a builder that was killed: the lock is ours
    }
    let staging = folder.join(format!("{STAGING}{}", std::process::id()));
    fs::create_dir(&staging)?;
    // Whatever the umask: the user of a sandbox goes in by the name of the tree, though not into the folders above.
    fs::set_permissions(&staging, fs::Permissions::from_mode(0o755))?;
    let filled = build(&staging).and_then(|()| fs::write(staging.join(DIGEST), copy::digest(&staging.join("tree"))?));
    let built = filled.and_then(|()| match fs::rename(&staging, place) {
        Err(_) if is_built(place) => Ok(()), // another process won without our lock (a network file system)
        other => other,
    });
    let _ = remove_all(&staging); // gone after a rename; otherwise leave nothing half-built
    built
}

fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(folder: &Path) -> usize {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.filter(|e| e.file_name().to_string_lossy().starts_with(STAGING)).count()
    }

    #[test]
    fn a_place_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x");
        let half = |staging: &Path| {
            fs::create_dir(staging.join("tree"))?;
            Err(io::Error::other("half-way"))
        };
        assert!(build_once(dir.path(), &place, half).is_err());
        assert!(!place.exists() && staged(dir.path()) == 0);
        fs::create_dir(dir.path().join(".staging-1")).unwrap(); // of a builder that was killed
        let whole = |staging: &Path| {
            fs::create_dir(staging.join("tree"))?;
            fs::write(staging.join("tree/a"), "a")
        };
        build_once(dir.path(), &place, whole).unwrap();
        assert!(is_built(&place) && staged(dir.path()) == 0);
        build_once(dir.path(), &place, |_| panic!("built twice")).unwrap();
    }
}
