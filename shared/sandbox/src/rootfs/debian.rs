//! A root file system out of Debian packages, without root.
//!
//! In: names of packages. Out: a filled tree and what is in it, by version. apt resolves the closure against this machine's
//! package lists as if nothing were installed, and downloads and verifies it; dpkg-deb opens the archives. **No maintainer
//! script runs**: what they would have made and programs need is made here (the links of update-alternatives in
//! [`ALTERNATIVES`], compiled Python, /etc/passwd). Caches of the loader are not needed, since Debian's libraries lie where
//! it looks by itself; packages that configure themselves at installation (certificates, databases, fonts) stay bare.
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::tree::Tree;
use super::{copy, layer};

/// In every tree: a shell and what shell scripts take for granted.
const BASE: [&str; 7] = ["coreutils", "dash", "diffutils", "findutils", "grep", "mawk", "sed"];

/// What update-alternatives would link, best first.
const ALTERNATIVES: [(&str, &[&str]); 5] = [
    ("usr/bin/cc", &["gcc"]),
    ("usr/bin/c++", &["g++"]),
    ("usr/bin/awk", &["gawk", "mawk"]),
    ("usr/bin/java", &["../lib/jvm/default-java/bin/java"]),
    ("usr/bin/javac", &["../lib/jvm/default-java/bin/javac"]),
];

/// apt as if nothing were installed here, touching nothing of this machine's own state.
const APT: [&str; 12] = [
    "-q",
    "-o",
    "Dir::State::status=/dev/null",
    "-o",
    "Debug::NoLocking=true",
    "-o",
    "Dir::Cache::pkgcache=",
    "-o",
    "Dir::Cache::srcpkgcache=",
    "-o",
    "APT::Install-Recommends=false",
    "-y",
];

/// Whether apt could take it for a package and nothing else: names begin with a letter or digit, and a `-` at the end would
/// mean removal.
pub fn is_name(name: &str) -> bool {
    let (bare, version) = name.split_once('=').unwrap_or((name, "1"));
    let plain = |s: &str, more: &str| s.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
    bare.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && bare.len() > 1
        && !bare.ends_with('-')
        && plain(bare, "+-.:")
        && !version.is_empty()
        && plain(version, "+-.:~")
}

/// Fills `staging/tree`; returns `name version` of every package in it.
pub fn unpack(packages: &[String], staging: &Path) -> io::Result<Vec<String>> {
    if let Some(odd) = packages.iter().find(|p| !is_name(p)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{odd:?} is no name of a package")));
    }
    let archives = staging.join("archives");
    fs::create_dir(&archives)?;
    let mut wanted: Vec<&str> = BASE.to_vec();
    wanted.extend(packages.iter().map(String::as_str));
    let exact = closure(&wanted)?;
    run(Command::new("apt-get").args(APT).arg("download").arg("--").args(&exact).current_dir(&archives))?;
    let mut files = fs::read_dir(&archives)?.map(|e| Ok(e?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    if files.len() != exact.len() {
        return Err(io::Error::other(format!("apt-get downloaded {} of {} packages", files.len(), exact.len())));
    }
    let root = staging.join("tree");
    let mut tree = Tree::create(&root, true)?;
    copy::merge_usr(&root)?;
    files.iter().try_for_each(|file| open_archive(file, &mut tree))?;
    fs::remove_dir_all(&archives)?;
    link_alternatives(&root, &tree)?;
    tree.finish()?;
    copy::write_etc(&root)?;
    compile_python(&root)?;
    Ok(exact.iter().map(|e| e.replacen('=', " ", 1)).collect())
}

/// `name:arch=version` of everything the packages need, themselves included.
fn closure(packages: &[&str]) -> io::Result<Vec<String>> {
    let listing = run(Command::new("apt-get").args(APT).args(["install", "--print-uris", "--"]).args(packages))?;
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let found: Vec<String> = listing.lines().filter_map(exact_version).collect();
    if found.len() < packages.len() {
        return Err(io::Error::other("apt-get did not resolve all packages: run `apt-get update`"));
    }
    Ok(found)
}

/// From a line `'uri' name_version_arch.deb size hash`.
fn exact_version(line: &str) -> Option<String> {
    let file = line.strip_prefix('\'')?.split(' ').nth(1)?.strip_suffix(".deb")?;
    let mut parts = file.split('_');
    let (name, version, architecture) = (parts.next()?, parts.next()?, parts.next()?);
    let version = version.replace("%3a", ":");
    Some(if architecture == "all" { format!("{name}={version}") } else { format!("{name}:{architecture}={version}") })
}

fn run(command: &mut Command) -> io::Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|e| {
        io::Error::new(e.kind(), format!("cannot run {program}: {e}; without Debian's tools make the root of an image"))
    })?;
    if done.status.success() {
        return Ok(done);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let errors: Vec<&str> = said.lines().filter(|l| l.starts_with("E:")).take(5).collect();
    Err(io::Error::other(format!(
        "{program}: {}",
        if errors.is_empty() { said.trim().into() } else { errors.join("; ") }
    )))
}

fn open_archive(file: &Path, tree: &mut Tree) -> io::Result<()> {
    let mut opener = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut tar) = opener.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let put = layer::put(tree, &mut tar);
    let read = put.and_then(|()| io::copy(&mut tar.by_ref(), &mut io::sink())); // the padding at the end
    drop(tar);
    let ended = opener.wait()?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    read.map_err(|e| io::Error::other(format!("{name}: {e}")))?;
    if !ended.success() {
        return Err(io::Error::other(format!("dpkg-deb cannot open {name}")));
    }
    Ok(())
}

fn link_alternatives(root: &Path, tree: &Tree) -> io::Result<()> {
    for (link, candidates) in ALTERNATIVES {
        let there = |target: &&&str| root.join("usr/bin").join(target).exists();
        if let (false, Some(target)) = (tree.has(Path::new(link)), candidates.iter().find(there)) {
            symlink(target, root.join(link))?;
        }
    }
    Ok(())
}

/// Compiles the tree's Python with itself, started by its own loader. These files are the distribution's.
fn compile_python(root: &Path) -> io::Result<()> {
    let link = fs::read_link(root.join("usr/bin/python3"));
    let Ok(name) = link else { return Ok(()) };
    let library = root.join("usr/lib").join(&name);
    let Some(loader) = loader(root)? else { return Err(io::Error::other("no loader to run its python3 with")) };
    let done = Command::new(&loader)
        .arg("--library-path")
        .arg(libraries(root)?)
        .arg(root.join("usr/bin").join(&name))
        .args(["-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-p", "/", "-s"])
        .arg(root)
        .arg(&library)
        .args([root.join("usr/lib/python3/dist-packages")].iter().filter(|p| p.is_dir()))
        .env_clear()
        .stdin(Stdio::null())
        .output()?;
    // modules that are broken on purpose do not compile anywhere
    if !library.join("__pycache__").is_dir() {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_string();
        return Err(io::Error::other(format!("its standard library does not compile: {why}")));
    }
    Ok(())
}

fn loader(root: &Path) -> io::Result<Option<PathBuf>> {
    for folder in ["lib64", "lib"] {
        let entries = fs::read_dir(root.join("usr").join(folder)).into_iter().flatten().flatten();
        let mut found = entries.map(|e| e.path()).filter(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ld-linux") && name.contains(".so.")
        });
        if let Some(path) = found.next() {
            return Ok(Some(fs::canonicalize(path)?));
        }
    }
    Ok(None)
}

/// The folders with shared libraries by architecture, as one search path.
fn libraries(root: &Path) -> io::Result<String> {
    let entries = fs::read_dir(root.join("usr/lib"))?.flatten().map(|e| e.path());
    let folders = entries.filter(|p| p.to_string_lossy().ends_with("-linux-gnu"));
    Ok(folders.map(|p| p.display().to_string()).collect::<Vec<_>>().join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_and_nothing_that_apt_takes_for_an_option_or_a_removal() {
        for good in ["g++", "libc6", "golang-go", "python3.11", "0ad", "libc6:arm64", "gcc=4:12.2.0-3", "x1=1~rc1+b2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a", "-o", "--yes", "gcc-", "a b", "a;b", "/x.deb", "./x.deb", "Gcc", "gcc=", "a*", "gcc/sid"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn versions_are_read_from_the_listing() {
        let line = "'http://h/g/gcc_12.2.0-3_amd64.deb' gcc_4%3a12.2.0-3_amd64.deb 5216 MD5Sum:f3";
        assert_eq!(exact_version(line).as_deref(), Some("gcc:amd64=4:12.2.0-3"));
        let line = "'http://h/t.deb' libtirpc-common_1.3.3+ds-1_all.deb 14048 SHA256:e4";
        assert_eq!(exact_version(line).as_deref(), Some("libtirpc-common=1.3.3+ds-1"));
        assert_eq!(exact_version("Reading package lists..."), None);
    }
}
