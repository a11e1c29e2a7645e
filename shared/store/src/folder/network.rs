//! What a folder on a network file system does that a local one does not: names that are remembered as missing, handles that go
//! stale, answers that are lost. On a local disk none of it happens, and a miss costs a few opens of folders.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

/// What `look` finds below `root` at `path`; none if nothing is there.
///
/// An NFS client believes for half a minute that a name it missed is missing. Opening the folders above makes it ask the server
/// again (close-to-open consistency holds for folders too), and then a name that is there is found.
pub(super) fn find<T>(root: &Path, path: &Path, look: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
    if let Some(found) = absent(again_if_stale(&look))? {
        return Ok(Some(found));
    }
    // From the root down: a folder that was missed hides what is below it. Without the folder nothing is below it.
    let mut above: Vec<&Path> = path.ancestors().skip(1).take_while(|dir| dir.starts_with(root)).collect();
    above.reverse();
    for dir in above {
        if absent(again_if_stale(&|| File::open(dir)))?.is_none() {
            return Ok(None);
        }
    }
    absent(again_if_stale(&look))
}

/// A handle goes stale when others remove what it stands for; the name tells what is there now.
fn again_if_stale<T>(look: &impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..3 {
        match look() {
            Err(e) if e.kind() == ErrorKind::StaleNetworkFileHandle => {}
            other => return other,
        }
    }
    look()
}

/// A missing file or folder is an answer, not an error.
pub(super) fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(v) => Ok(Some(v)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether an error leaves the outcome of a write unknown, or may pass: a stale handle, and what a mount says that gave up waiting
/// for its server (`soft` mounts say EIO).
pub(super) fn may_pass(e: &io::Error) -> bool {
    const EIO: i32 = 5;
    matches!(e.kind(), ErrorKind::StaleNetworkFileHandle | ErrorKind::TimedOut | ErrorKind::Interrupted)
        || e.raw_os_error() == Some(EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const ESTALE: i32 = 116;

    #[test]
    fn a_stale_handle_is_looked_up_anew_but_not_for_ever() {
        let root = Path::new("/nowhere");
        let stale = Cell::new(2);
        let look = || match stale.replace(stale.get() - 1) {
            ..=0 => Ok("there"),
            _ => Err(io::Error::from_raw_os_error(ESTALE)),
        };
        assert_eq!(find(root, &root.join("a"), look).unwrap(), Some("there"));
        let never = || -> io::Result<()> { Err(io::Error::from_raw_os_error(ESTALE)) };
        let e = find(root, &root.join("a"), never).unwrap_err();
        assert!(may_pass(&e), "{e}");
    }

    #[test]
    fn a_missed_name_is_looked_for_again_below_folders_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let looks = Cell::new(0);
        // Missed first, found once the folders were opened.
        let look = || match looks.replace(looks.get() + 1) {
            0 => Err(io::Error::from(ErrorKind::NotFound)),
            _ => Ok("there"),
        };
        assert_eq!(find(dir.path(), &dir.path().join("a"), look).unwrap(), Some("there"));
        // Without its folder a name is not there, and is not looked for twice.
        looks.set(0);
        assert_eq!(find(dir.path(), &dir.path().join("none/a"), look).unwrap(), None);
        assert_eq!(looks.get(), 1);
    }
}
