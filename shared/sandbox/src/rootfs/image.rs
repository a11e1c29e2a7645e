//! A root file system out of an image: a tar by `docker export` or `docker save` (plain or gzip), or an unpacked folder.
//!
//! In: a path; what is in it was made by somebody else. Out: a filled tree. Nothing of the image is executed.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use tar::{Archive, EntryType};

use super::layer;
use super::tree::Tree;

/// Fills a tree.
pub fn unpack(image: &Path, tree: &mut Tree) -> io::Result<()> {
    if fs::metadata(image)?.is_dir() {
        return copy_folder(image, tree);
    }
    let saved = Saved::open(image)?;
    if saved.index.contains_key(Path::new("manifest.json")) {
        return saved.layers()?.iter().try_for_each(|(at, length)| {
            layer::take_away(tree, saved.read(*at, *length)?)?;
            layer::put(tree, saved.read(*at, *length)?)
        });
    }
    layer::put(tree, plain(File::open(image)?)?)
}

/// The contents of a file, gzip undone.
fn plain(file: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut file = BufReader::new(file);
    let start = io::BufRead::fill_buf(&mut file)?;
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Err(io::Error::other(
            "a layer is compressed with zstd: save the image with `docker save`, or unpack it",
        ));
    }
    Ok(if start.starts_with(&[0x1f, 0x8b]) { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// A tar and where its files lie in it.
struct Saved {
    path: PathBuf,
    /// Offset and length of plain files.
    index: BTreeMap<PathBuf, (u64, u64)>,
    links: BTreeMap<PathBuf, PathBuf>,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(rename = "Layers")]
    layers: Vec<PathBuf>,
}

impl Saved {
    /// Looks at the outer archive only. A gzip around everything is no `docker save`: its index stays empty.
    fn open(path: &Path) -> io::Result<Saved> {
        let mut saved = Saved { path: path.into(), index: BTreeMap::new(), links: BTreeMap::new() };
        let mut start = [0; 2];
        let mut file = File::open(path)?;
        if file.read(&mut start)? == 2 && start == [0x1f, 0x8b] {
            return Ok(saved);
        }
        file.rewind()?;
        for entry in Archive::new(file).entries_with_seek()? {
            let entry = entry?;
            let name = entry.path()?.components().filter(|c| *c != Component::CurDir).collect::<PathBuf>();
            match (entry.header().entry_type(), entry.link_name()?) {
                (EntryType::Symlink, Some(target)) => drop(saved.links.insert(name, target.into_owned())),
                (EntryType::Link, Some(target)) => drop(saved.links.insert(name, Path::new("/").join(target))),
                (EntryType::Regular, _) => drop(saved.index.insert(name, (entry.raw_file_position(), entry.size()))),
                _ => {}
            }
        }
        Ok(saved)
    }

    /// Where the layers are, lowest first.
    fn layers(&self) -> io::Result<Vec<(u64, u64)>> {
        let (at, length) = self.find(Path::new("manifest.json"))?;
        let images: Vec<Manifest> = serde_json::from_reader(self.raw(at, length)?)
            .map_err(|e| io::Error::other(format!("its manifest.json is no list of images: {e}")))?;
        match images.as_slice() {
            [one] => one.layers.iter().map(|layer| self.find(layer)).collect(),
            all => Err(io::Error::other(format!("it holds {} images: save exactly one", all.len()))),
        }
    }

    /// A file of the outer archive; older archives name equal layers by links.
    fn find(&self, path: &Path) -> io::Result<(u64, u64)> {
        let mut path = path.to_path_buf();
        for _ in 0..8 {
            if let Some(found) = self.index.get(&path) {
                return Ok(*found);
            }
            let Some(target) = self.links.get(&path) else { break };
            path = join(path.parent().unwrap_or(Path::new("")), target);
        }
        Err(io::Error::other(format!("{} is not in it", path.display())))
    }

    fn raw(&self, at: u64, length: u64) -> io::Result<io::Take<File>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(file.take(length))
    }

    fn read(&self, at: u64, length: u64) -> io::Result<Box<dyn Read>> {
        plain(self.raw(at, length)?)
    }
}

/// A link's target as a name in the archive; only a key to look up, never a path to open.
fn join(folder: &Path, target: &Path) -> PathBuf {
    let mut all = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::Normal(name) => all.push(name),
            Component::ParentDir => drop(all.pop()),
            _ => {}
        }
    }
    all
}

/// An unpacked tree, links copied as links.
fn copy_folder(from: &Path, tree: &mut Tree) -> io::Result<()> {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(from.join(&folder))? {
            let entry = entry?;
            let (kind, inner) = (entry.file_type()?, folder.join(entry.file_name()));
            if kind.is_dir() {
                tree.folder(&inner)?;
                folders.push(inner);
            } else if kind.is_symlink() {
                tree.link(&inner, &fs::read_link(entry.path())?)?;
            } else if kind.is_file() {
                let mut file = File::open(entry.path())?;
                let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
                tree.file(&inner, executable, &mut file)?;
            }
        }
    }
    Ok(())
}
