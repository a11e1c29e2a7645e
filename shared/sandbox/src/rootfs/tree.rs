//! Puts entries of an archive into a folder that becomes a root file system.
//!
//! In: entries by a path that somebody else chose. Out: folders, plain files and links below the root. What must hold:
//! nothing is made, read or removed outside the root, whatever the entries say; nothing is setuid, a device or writable by
//! others; links stay inside wherever the tree lies, so absolute ones are made relative; the number of entries and bytes
//! is bounded.
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// More than any image of a tool chain, less than a disk.
const MAX_ENTRIES: u64 = 2_000_000;
const MAX_BYTES: u64 = 32 << 30;
/// Links followed for one path, as the kernel counts.
const MAX_LINKS: usize = 40;
/// What a sandbox mounts over, or expects.
const MOUNT_POINTS: [&str; 7] = ["proc", "dev", "tmp", "work", "pristine", "sys", "etc"];

/// A tree being filled.
pub struct Tree {
    root: PathBuf,
    /// Whether a folder entry leaves a link to a folder alone (packages and `/lib`) or replaces it (layers of images).
    keep_folder_links: bool,
    entries: u64,
    bytes: u64,
}

/// A place inside: names from the root, none of them a link.
type Inside = Vec<OsString>;

impl Tree {
    pub fn create(root: &Path, keep_folder_links: bool) -> io::Result<Tree> {
        make_folder(root)?;
        Ok(Tree { root: root.into(), keep_folder_links, entries: 0, bytes: 0 })
    }

    pub fn folder(&mut self, path: &Path) -> io::Result<()> {
        self.count(0)?;
        let Some((parent, name)) = self.split(path)? else { return Ok(()) };
        let at = self.host(&parent).join(name);
        match fs::symlink_metadata(&at) {
            Ok(about) if about.is_dir() => return Ok(()),
            Ok(about) if about.is_symlink() && self.keep_folder_links => return Ok(()),
            Ok(_) => fs::remove_file(&at)?,
            Err(_) => {}
        }
        make_folder(&at)
    }

    /// A plain file with what can be read from `from`.
    pub fn file(&mut self, path: &Path, executable: bool, from: &mut impl Read) -> io::Result<()> {
        self.count(0)?;
        let at = self.free(path)?.1;
        let mut to = OpenOptions::new().write(true).create_new(true).open(at)?;
        to.set_permissions(fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                n => {
                    self.count(n as u64)?;
                    to.write_all(&buffer[..n])?;
                }
            }
        }
    }

    /// A symbolic link; an absolute target means the root of this tree.
    pub fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        self.count(0)?;
        let (parent, at) = self.free(path)?;
        let target = match target.strip_prefix("/") {
            Ok(inner) => {
                let up: PathBuf = std::iter::repeat_n("..", parent.len()).collect();
                let whole = up.join(inner);
                if whole.as_os_str().is_empty() { PathBuf::from(".") } else { whole }
            }
            Err(_) => target.to_path_buf(),
        };
        symlink(target, at)
    }

    /// A second name of a file that is there already.
    pub fn hard_link(&mut self, path: &Path, original: &Path) -> io::Result<()> {
        self.count(0)?;
        let Some((parent, name)) = self.split(original)? else { return Err(refused(original, "is no file")) };
        let from = self.host(&parent).join(name);
        if !fs::symlink_metadata(&from).is_ok_and(|about| about.is_file()) {
            return Err(refused(path, "is a second name of something that is no file of the tree"));
        }
        let at = self.free(path)?.1;
        fs::hard_link(from, at)
    }

    /// Takes away what a lower layer put there, if anything.
    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        match self.split(path)? {
            Some((parent, name)) => clear(&self.host(&parent).join(name)),
            None => Err(refused(path, "is the root")),
        }
    }

    /// Takes away everything inside a folder, if there is one.
    pub fn empty(&mut self, path: &Path) -> io::Result<()> {
        let folder = match self.split(path)? {
            Some((parent, name)) => self.host(&parent).join(name),
            None => self.root.clone(),
        };
        if !fs::symlink_metadata(&folder).is_ok_and(|about| about.is_dir()) {
            return Ok(());
        }
        fs::read_dir(folder)?.try_for_each(|entry| clear(&entry?.path()))
    }

    /// Whether something is there, its last part not followed.
    pub fn has(&self, path: &Path) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    /// Makes what a sandbox mounts over, and refuses links that lead out of the tree.
    pub fn finish(&mut self) -> io::Result<()> {
        for name in MOUNT_POINTS {
            let at = self.root.join(name);
            if !fs::symlink_metadata(&at).is_ok_and(|about| about.is_dir()) {
                clear(&at)?;
                make_folder(&at)?;
            }
        }
        let mut folders = vec![Inside::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.host(&folder))? {
                let entry = entry?;
                let kind = entry.file_type()?;
                let inner = || folder.iter().cloned().chain([entry.file_name()]).collect::<Inside>();
                if kind.is_dir() {
                    folders.push(inner());
                } else if kind.is_symlink() {
                    let mut links = 0;
                    let target = fs::read_link(entry.path())?;
                    self.follow(folder.clone(), &target, &mut links, false).map_err(|e| match e.kind() {
                        io::ErrorKind::InvalidData => refused(&inner().iter().collect::<PathBuf>(), "leads out of it"),
                        _ => e,
                    })?;
                }
            }
        }
        Ok(())
    }

    fn host(&self, inside: &[OsString]) -> PathBuf {
        self.root.join(inside.iter().collect::<PathBuf>())
    }

    /// Where an entry goes, with its parents made; what was there is gone.
    fn free(&self, path: &Path) -> io::Result<(Inside, PathBuf)> {
        let Some((parent, name)) = self.split(path)? else { return Err(refused(path, "is the root")) };
        let at = self.host(&parent).join(name);
        clear(&at)?;
        Ok((parent, at))
    }

    /// The folder of an entry, links followed inside the tree, and its last name. None is the root itself.
    fn split(&self, path: &Path) -> io::Result<Option<(Inside, OsString)>> {
        let mut names: Vec<&OsStr> = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(refused(path, "is no plain relative path")),
            }
        }
        let Some(last) = names.pop() else { return Ok(None) };
        let mut links = 0;
        let parent = self.follow(Inside::new(), &names.iter().collect::<PathBuf>(), &mut links, true)?;
        Ok(Some((parent, last.to_os_string())))
    }

    /// Walks `path` from a folder as a kernel with this root would, but refuses to rise above the root. Missing folders
    /// are made, or else passed over as if they were there.
    fn follow(&self, from: Inside, path: &Path, links: &mut usize, make: bool) -> io::Result<Inside> {
        let mut at = from;
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::RootDir => at.clear(),
                Component::ParentDir if at.pop().is_some() => {}
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a link leads out of the tree"));
                }
                Component::Normal(name) => {
                    at.push(name.into());
                    let host = self.host(&at);
                    match fs::symlink_metadata(&host) {
                        Ok(about) if about.is_symlink() => {
                            *links += 1;
                            if *links > MAX_LINKS {
                                // a loop: harmless where it only lies there, no way to a folder
                                return if make { Err(refused(path, "runs in a circle")) } else { Ok(at) };
                            }
                            at.pop();
                            at = self.follow(at, &fs::read_link(host)?, links, make)?;
                        }
                        Ok(about) if make && !about.is_dir() => return Err(refused(path, "has a file for a folder")),
                        Ok(_) => {}
                        Err(_) if make => make_folder(&host)?,
                        Err(_) => {}
                    }
                }
            }
        }
        Ok(at)
    }

    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.entries += u64::from(bytes == 0);
        self.bytes += bytes;
        if self.entries > MAX_ENTRIES || self.bytes > MAX_BYTES {
            return Err(io::Error::other("it has more files or bytes than a root file system may have"));
        }
        Ok(())
    }
}

/// A new folder that all may read, whatever the umask.
fn make_folder(at: &Path) -> io::Result<()> {
    fs::create_dir(at)?;
    fs::set_permissions(at, fs::Permissions::from_mode(0o755))
}

/// Removes whatever is there, following nothing.
fn clear(at: &Path) -> io::Result<()> {
    match fs::symlink_metadata(at) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(at),
        Ok(_) => fs::remove_file(at),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}: it is refused", path.display()))
}
