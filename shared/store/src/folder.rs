//! A run in a folder. The create is ours: write below `.staging/<attempt>` on the same file system, fsync, hard link to the
//! final name, fsync of the directory. A hard link fails if the name is taken, so it is create-only on every POSIX disk.
//!
//! On NFS too, but there an answer can be lost: a link that was made says "exists" when it is asked for again. [`crate::create_once`]
//! reads back, as on a bucket. ARCHITECTURE.md says what else holds there, `tests/faults/tests/conformance` tries it.

mod network;

use crate::{AttemptId, Blobs, Created, Entry, Key, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use network::{absent, find, may_pass};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Objects as files below a root folder.
pub struct Folder {
    root: PathBuf,
    staging: PathBuf,
    counter: AtomicU64,
}

impl Folder {
    /// Opens `root`, which is made if missing. The staging folder is this process's own.
    pub fn open(root: &Path) -> Result<Folder, StoreError> {
        fs::create_dir_all(root).map_err(|e| disk(root, e))?;
        let root = root.canonicalize().map_err(|e| disk(root, e))?;
        let staging = root.join(".staging").join(AttemptId::fresh().as_str());
        Ok(Folder { root, staging, counter: AtomicU64::new(0) })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.as_str())
    }

    /// A fresh file name in the staging folder, whose folder exists.
    fn staged(&self) -> Result<PathBuf, StoreError> {
        fs::create_dir_all(&self.staging).map_err(|e| disk(&self.staging, e))?;
        Ok(self.staging.join(self.counter.fetch_add(1, Ordering::Relaxed).to_string()))
    }

    fn create_blocking(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        let target = self.path(key);
        let staged = self.staged()?;
        let written = write_synced(&staged, bytes).map_err(|e| self.error(&staged, e));
        let linked = written.and_then(|()| link_new(&staged, &target).map_err(|e| self.error(&target, e)));
        let _ = fs::remove_file(&staged);
        linked
    }

    fn upload_blocking(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let target = self.path(key);
        let staged = self.staged()?;
        fs::copy(file, &staged).map_err(|e| self.error(file, e))?;
        let moved = File::open(&staged)
            .and_then(|f| f.sync_all())
            .and_then(|()| fs::create_dir_all(parent(&target)))
            .and_then(|()| rename(&staged, &target))
            .and_then(|()| sync_dir(parent(&target)));
        moved.map_err(|e| self.error(&target, e))
    }

    /// What `look` finds at `path`.
    fn find<T>(&self, path: &Path, look: impl Fn() -> io::Result<T>) -> Result<Option<T>, StoreError> {
        find(&self.root, path, look).map_err(|e| self.error(path, e))
    }

    fn error(&self, path: &Path, e: io::Error) -> StoreError {
        match may_pass(&e) {
            true => {
                StoreError::Transient { store: self.address(), what: path.display().to_string(), reason: e.to_string() }
            }
            false => disk(path, e),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Leftovers of a killed process stay; they are invisible to readers and gc removes them.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

fn disk(path: &Path, source: io::Error) -> StoreError {
    StoreError::Disk { path: path.display().to_string(), source }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn link_new(staged: &Path, target: &Path) -> io::Result<Created> {
    fs::create_dir_all(parent(target))?;
    match fs::hard_link(staged, target) {
        Ok(()) => sync_dir(parent(target)).map(|()| Created::New),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(Created::Exists),
        Err(e) => Err(e),
    }
}

/// Moves a file to where nobody else writes. That it is gone and the target there means that an answer was lost.
fn rename(staged: &Path, target: &Path) -> io::Result<()> {
    match fs::rename(staged, target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && target.is_file() => Ok(()),
        other => other,
    }
}

/// Bytes below a staging folder, and for how long nothing in it was written.
fn quiet_for(dir: &Path) -> io::Result<(u64, Duration)> {
    // The disk's clock against the disk's stamps; a stamp in the future counts as just written.
    let age = |meta: &fs::Metadata| meta.modified().map(|at| at.elapsed().unwrap_or_default());
    let (mut bytes, mut quiet) = (0, age(&fs::metadata(dir)?)?);
    for entry in fs::read_dir(dir)? {
        let Some(meta) = absent(entry?.metadata())? else { continue };
        bytes += meta.len();
        quiet = quiet.min(age(&meta)?);
    }
    Ok((bytes, quiet))
}

fn walk(root: &Path, dir: &Path, found: &mut Vec<Entry>) -> io::Result<()> {
    let Some(entries) = find(root, dir, || fs::read_dir(dir))? else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let Some(meta) = absent(entry.metadata())? else { continue };
        if meta.is_dir() {
            walk(root, &path, found)?;
        } else if let Some(key) =
            path.strip_prefix(root).ok().and_then(Path::to_str).and_then(|name| Key::new(name).ok())
        {
            found.push(Entry { key, size: meta.len() });
        }
    }
    Ok(())
}

#[async_trait]
impl Blobs for Folder {
    fn address(&self) -> String {
        self.root.display().to_string()
    }

    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        tokio::task::block_in_place(|| self.create_blocking(key, &bytes))
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        let path = self.path(key);
        self.find(&path, || fs::read(&path)).map(|b| b.map(Bytes::from))
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        let path = self.path(key);
        self.find(&path, || fs::metadata(&path)).map(|m| m.map(|m| m.len()))
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        let dir = self.path(prefix);
        let mut found = Vec::new();
        walk(&self.root, &dir, &mut found).map_err(|e| self.error(&dir, e))?;
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        let mut found = self.list(prefix).await?;
        let from = after.map_or(0, |after| found.partition_point(|e| e.key <= *after));
        found.drain(..from);
        found.truncate(most);
        Ok(found)
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let path = self.path(key);
        absent(fs::remove_file(&path)).map(|_| ()).map_err(|e| self.error(&path, e))
    }

    async fn unfinished(&self, age: Duration, remove: bool) -> Result<Vec<(String, u64)>, StoreError> {
        let staging = self.root.join(".staging");
        let mut found = Vec::new();
        for attempt in absent(fs::read_dir(&staging)).map_err(|e| disk(&staging, e))?.into_iter().flatten() {
            let path = attempt.map_err(|e| disk(&staging, e))?.path();
            // Its own is in use however old it is.
            if path == self.staging {
                continue;
            }
            let (bytes, quiet) = quiet_for(&path).map_err(|e| disk(&path, e))?;
            if quiet < age {
                continue;
            }
            if remove {
                absent(fs::remove_dir_all(&path)).map_err(|e| disk(&path, e))?;
            }
            found.push((path.strip_prefix(&self.root).unwrap_or(&path).display().to_string(), bytes));
        }
        Ok(found)
    }

    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        tokio::task::block_in_place(|| self.upload_blocking(key, file))
    }

    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let from = self.path(key);
        let part = file.with_extension("part");
        let missing = || disk(&from, io::ErrorKind::NotFound.into());
        self.find(&from, || fs::copy(&from, &part))?.ok_or_else(missing)?;
        fs::rename(&part, file).map_err(|e| disk(file, e))
    }
}
