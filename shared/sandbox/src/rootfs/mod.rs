//! The private root file system: this machine's Python, a shell and small tools, copied once into the cache.
//!
//! In: the host's interpreter. Out: a folder `<cache>/rootfs/<fingerprint>/tree` with the digest of its contents beside it.
//! What must hold: the folder appears whole by one rename, so several processes may build it at once; it is never written
//! again; it holds files of the host's distribution only, no site-packages, nothing of a home folder.
mod copy;
mod libraries;
mod python;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{SandboxError, sys};
use python::Python;

/// Raised when the recipe changes what ends up in the tree.
const RECIPE: &str = "rollmill-rootfs-2";

/// How the folders of half-built trees begin.
const STAGING: &str = ".staging-";

/// Tools beside the interpreter, where the host has them; the shell is a must.
const TOOLS: &[&str] = &[
    "awk", "basename", "cat", "chmod", "cmp", "cp", "cut", "date", "diff", "dirname", "echo", "env", "expr", "false",
    "find", "grep", "head", "id", "ln", "ls", "mkdir", "mktemp", "mv", "od", "printf", "pwd", "readlink", "rm",
    "rmdir", "sed", "seq", "sleep", "sort", "stat", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true",
    "uname", "uniq", "wc", "xargs",
];

/// A built root file system.
#[derive(Debug, Clone)]
pub struct RootFs {
    /// What becomes `/` of a sandbox.
    pub tree: PathBuf,
    /// SHA-256 over paths, modes and contents, .pyc files left out.
    pub digest: String,
    /// As `3.11.7`.
    pub python_version: String,
}

/// Finds or builds the root file system of this machine's interpreter.
pub fn open(cache: &Path) -> Result<RootFs, SandboxError> {
    let python = Python::find().map_err(|what| SandboxError::RootFs { what })?;
    let wrong = |what: String| move |e: io::Error| SandboxError::RootFs { what: format!("{what}: {e}") };
    let fingerprint = fingerprint(&python).map_err(wrong("cannot read the interpreter's files".into()))?;
    let folder = cache.join("rootfs");
    let place = folder.join(&fingerprint);
    fs::create_dir_all(&folder).map_err(wrong(format!("cannot make {}", folder.display())))?;
    if !place.join("digest").exists() {
        build_once(&python, &folder, &place).map_err(wrong(format!("cannot build {}", place.display())))?;
    }
    let digest = fs::read_to_string(place.join("digest")).map_err(wrong("cannot read its digest".into()))?;
    // a bind mount resolves symbolic links once; the sandbox then names this folder
    let tree = fs::canonicalize(place.join("tree")).map_err(wrong("cannot find its tree".into()))?;
    Ok(RootFs { tree, digest, python_version: python.version })
}

/// Builds under a lock, so that processes starting together build once; the rename alone would be correct, but slow.
fn build_once(python: &Python, folder: &Path, place: &Path) -> io::Result<()> {
    let lock = fs::File::create(folder.join("lock"))?;
    sys::try_lock(&lock, true)?;
    if place.join("digest").exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)?.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(STAGING)) {
        remove_all(&entry.path())?; // of a builder that was killed: the lock is ours
    }
    let staging = folder.join(format!("{STAGING}{}", std::process::id()));
    let built = build(python, &staging).and_then(|()| match fs::rename(&staging, place) {
        Err(_) if place.join("digest").exists() => Ok(()), // another process won without our lock (a network file system)
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

fn build(python: &Python, staging: &Path) -> io::Result<()> {
    let tree = staging.join("tree");
    for folder in ["usr/bin", "usr/lib", "etc", "proc", "dev", "tmp", "work", "pristine", "sys", "root", "var"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    copy::merge_usr(&tree)?;
    let mut programs = vec![python.executable.clone()];
    copy::file(&python.executable, &tree.join("usr/bin").join(python.name()))?;
    for alias in ["python3", "python"] {
        std::os::unix::fs::symlink(python.name(), tree.join("usr/bin").join(alias))?;
    }
    for tool in ["sh"].iter().chain(TOOLS) {
        if let Some(path) = copy::find_tool(tool) {
            copy::file(&path, &tree.join("usr/bin").join(tool))?;
            programs.push(path);
        } else if *tool == "sh" {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no sh in /usr/bin or /bin"));
        }
    }
    let library = tree.join("usr").join(&python.library_folder).join(python.name());
    copy::standard_library(&python.standard_library, &library)?;
    programs.extend(copy::shared_objects(&library)?);
    libraries::copy_closure(&programs, &tree)?;
    write_etc(&tree)?;
    python.compile(&library)?;
    fs::write(staging.join("digest"), copy::digest(&tree)?)
}

fn write_etc(tree: &Path) -> io::Result<()> {
    fs::write(tree.join("etc/passwd"), "user:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")?;
    fs::write(tree.join("etc/group"), "user:x:1000:\nnobody:x:65534:\n")?;
    fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n")
}

/// Names the inputs without reading all of them: paths, sizes and times of what would be copied.
fn fingerprint(python: &Python) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(RECIPE);
    hash.update(format!("{python:?}"));
    let mut files = vec![python.executable.clone()];
    files.extend(["sh"].iter().chain(TOOLS).filter_map(|t| copy::find_tool(t)));
    files.extend(copy::walk(&python.standard_library)?);
    for file in files {
        let about = fs::metadata(&file)?;
        hash.update(format!("{}\0{}\0{:?}\n", file.display(), about.len(), about.modified()?));
    }
    Ok(copy::hex(&hash.finalize()[..16]))
}
