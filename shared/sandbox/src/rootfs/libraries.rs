//! The shared libraries of the copied programs, found by the host's own loader through `ldd`.
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::copy;

/// Copies every library the programs need. Libraries go to the folder of libc, which the loader searches by itself, so that
/// a path of this host (a version manager's folder) does not appear inside; the loader goes where programs name it.
pub fn copy_closure(programs: &[PathBuf], tree: &Path) -> io::Result<()> {
    let mut needed: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut loaders = Vec::new();
    for chunk in programs.chunks(64) {
        let listing = Command::new("ldd").args(chunk).env("LC_ALL", "C").stdin(Stdio::null()).output()?;
        for line in String::from_utf8_lossy(&listing.stdout).lines() {
            match parse(line) {
                Some(Library::Named(name, path)) => drop(needed.insert(name, path)),
                Some(Library::Loader(path)) => loaders.push(path),
                None => {}
            }
        }
    }
    let home = needed.iter().find(|(name, _)| name.starts_with("libc.")).map(|(_, path)| path.as_path());
    let home = match home.or(loaders.first().map(PathBuf::as_path)).and_then(Path::parent) {
        Some(folder) => inside(&std::fs::canonicalize(folder)?),
        None => return Ok(()), // static programs
    };
    for (name, path) in &needed {
        copy::file(path, &tree.join(&home).join(name))?;
    }
    loaders.sort();
    loaders.dedup();
    loaders.iter().try_for_each(|loader| copy::file(loader, &tree.join(inside(loader))))
}

/// A path of the host below the tree, through /usr where the tree has links.
fn inside(path: &Path) -> PathBuf {
    let relative = path.strip_prefix("/").unwrap_or(path);
    match relative.components().next().and_then(|c| c.as_os_str().to_str()) {
        Some("lib" | "lib64" | "bin") => Path::new("usr").join(relative),
        _ => relative.to_path_buf(),
    }
}

#[derive(Debug, PartialEq)]
enum Library {
    Named(String, PathBuf),
    Loader(PathBuf),
}

/// One line of ldd: `name => /path (0x…)`, or `/path/of/loader (0x…)`.
fn parse(line: &str) -> Option<Library> {
    let line = line.trim();
    let path_of = |s: &str| s.split(" (0x").next().map(str::trim).filter(|p| p.starts_with('/')).map(PathBuf::from);
    match line.split_once(" => ") {
        Some((name, rest)) if name.starts_with('/') => path_of(rest).map(|_| Library::Loader(name.into())),
        Some((name, rest)) => Some(Library::Named(name.into(), path_of(rest)?)),
        None if line.contains(" (0x") => path_of(line).map(Library::Loader),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ldd() {
        let named = |n: &str, p: &str| Some(Library::Named(n.into(), p.into()));
        assert_eq!(parse("\tlibm.so.6 => /lib/x/libm.so.6 (0x00007f)"), named("libm.so.6", "/lib/x/libm.so.6"));
        assert_eq!(
            parse("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)"),
            Some(Library::Loader("/lib64/ld-linux-x86-64.so.2".into()))
        );
        assert_eq!(parse("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(parse("\tlibgone.so => not found"), None);
        assert_eq!(parse("/usr/bin/cat:"), None);
    }
}
