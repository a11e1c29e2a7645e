//! One tar archive, unpacked onto a tree that may hold lower layers.
//!
//! Whiteouts (`.wh.NAME`, and `.wh..wh..opq` for a whole folder) take away what lower layers put there and nothing of
//! their own layer, so they are read in a pass of their own. Devices, FIFOs and sockets are left out.
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tar::{Archive, Entry, EntryType};

use super::tree::Tree;

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Folders of documents, which no program needs.
const DOCUMENTS: [&str; 6] =
    ["usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug"];

/// First pass: takes away what the whiteouts of this layer name.
pub fn take_away(tree: &mut Tree, tar: impl Read) -> io::Result<()> {
    for entry in Archive::new(tar).entries()? {
        let path = entry?.path()?.into_owned();
        let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        if name.as_bytes() == OPAQUE {
            tree.empty(folder)?;
        } else if let Some(gone) = name.as_bytes().strip_prefix(WHITEOUT) {
            tree.remove(&folder.join(std::ffi::OsStr::from_bytes(gone)))?;
        }
    }
    Ok(())
}

/// Second pass: puts the entries there.
pub fn put(tree: &mut Tree, tar: impl Read) -> io::Result<()> {
    for entry in Archive::new(tar).entries()? {
        put_entry(tree, entry?)?;
    }
    Ok(())
}

fn put_entry(tree: &mut Tree, mut entry: Entry<impl Read>) -> io::Result<()> {
    let path = entry.path()?.into_owned();
    let is_whiteout = path.file_name().is_some_and(|n| n.as_bytes().starts_with(WHITEOUT));
    let inner = path.strip_prefix(".").unwrap_or(&path);
    if is_whiteout || DOCUMENTS.iter().any(|d| inner.starts_with(d)) {
        return Ok(());
    }
    let target = |entry: &Entry<_>| match entry.link_name()? {
        Some(target) => Ok(target.into_owned()),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} links to nothing", path.display()))),
    };
    match entry.header().entry_type() {
        EntryType::Directory => tree.folder(&path),
        EntryType::Symlink => tree.link(&path, &target(&entry)?),
        EntryType::Link => {
            let original = target(&entry)?;
            tree.hard_link(&path, &original)
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let executable = entry.header().mode()? & 0o111 != 0;
            tree.file(&path, executable, &mut entry)
        }
        _ => Ok(()),
    }
}
