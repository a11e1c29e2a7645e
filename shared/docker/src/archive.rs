//! Files as a tar, for a shell in the container to unpack.
use std::io;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

/// Programs that unpack read whole records of this size: what is shorter leaves them waiting.
const RECORD: usize = 20 * 512;

/// Plain files, with `#!` scripts and ELF files executable.
pub fn of_files(files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (path, bytes) in files {
        let executable = bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF");
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if executable { 0o755 } else { 0o644 });
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes.as_slice())?;
    }
    let mut all = archive.into_inner()?;
    all.resize(all.len().next_multiple_of(RECORD), 0);
    Ok(all)
}

/// A whole tree, links as links, everything owned by root, in the order of paths.
pub fn write_tree(tree: &Path, to: impl io::Write) -> io::Result<()> {
    let mut archive = Builder::new(to);
    archive.follow_symlinks(false);
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let mut entries = std::fs::read_dir(tree.join(&folder))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let inner = folder.join(entry.file_name());
            append(&mut archive, &entry.path(), &inner)?;
            if entry.file_type()?.is_dir() {
                folders.push(inner);
            }
        }
    }
    archive.into_inner().map(drop)
}

fn append<W: io::Write>(archive: &mut Builder<W>, from: &Path, inner: &Path) -> io::Result<()> {
    let about = std::fs::symlink_metadata(from)?;
    let mut header = Header::new_gnu();
    header.set_metadata(&about);
    header.set_uid(0);
    header.set_gid(0);
    if about.is_symlink() {
        header.set_size(0);
        archive.append_link(&mut header, inner, std::fs::read_link(from)?)
    } else if about.is_dir() {
        header.set_size(0);
        archive.append_data(&mut header, inner, io::empty())
    } else {
        archive.append_data(&mut header, inner, std::fs::File::open(from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_whole_records_with_their_modes() {
        let long = format!("{}/x", "d".repeat(200));
        let files = vec![("a.py".to_string(), b"pass".to_vec()), (long.clone(), b"#!/bin/sh\n".to_vec())];
        let bytes = of_files(&files).unwrap();
        assert_eq!(bytes.len() % RECORD, 0);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let seen: Vec<(String, u32)> = archive
            .entries()
            .unwrap()
            .map(|e| e.unwrap())
            .map(|e| (e.path().unwrap().display().to_string(), e.header().mode().unwrap()))
            .collect();
        assert_eq!(seen, [("a.py".to_string(), 0o644), (long, 0o755)]);
    }

    #[test]
    fn a_tree_keeps_links_and_belongs_to_root() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("usr")).unwrap();
        std::fs::write(dir.path().join("usr/a"), "x").unwrap();
        std::os::unix::fs::symlink("usr", dir.path().join("lib")).unwrap();
        let mut bytes = Vec::new();
        write_tree(dir.path(), &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let seen: Vec<(String, EntryType, u64)> = archive
            .entries()
            .unwrap()
            .map(|e| e.unwrap())
            .map(|e| (e.path().unwrap().display().to_string(), e.header().entry_type(), e.header().uid().unwrap()))
            .collect();
        let want = [("lib", EntryType::Symlink), ("usr", EntryType::Directory), ("usr/a", EntryType::Regular)];
        assert_eq!(seen, want.map(|(path, kind)| (path.to_string(), kind, 0)));
    }
}
