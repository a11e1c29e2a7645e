//! The default root file system: this machine's Python, a shell and small tools.
//!
//! In: the host's interpreter. Out: a tree with files of the host's distribution only, no site-packages, nothing of a home
//! folder, kept under a name made of everything that was copied.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::python::Python;
use super::{RootFs, copy, libraries, store, wrong};
use crate::SandboxError;

/// Raised when the recipe changes what ends up in the tree.
const RECIPE: &str = "rollmill-rootfs-2";

/// Tools beside the interpreter, where the host has them; the shell is a must.
const TOOLS: &[&str] = &[
    "awk", "basename", "cat", "chmod", "cmp", "cp", "cut", "date", "diff", "dirname", "echo", "env", "expr", "false",
    "find", "grep", "head", "id", "ln", "ls", "mkdir", "mktemp", "mv", "od", "printf", "pwd", "readlink", "rm",
    "rmdir", "sed", "seq", "sleep", "sort", "stat", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true",
    "uname", "uniq", "wc", "xargs",
];

/// Finds or builds the root file system of this machine's interpreter.
pub fn open(cache: &Path) -> Result<RootFs, SandboxError> {
    let python = Python::find().map_err(|what| SandboxError::RootFs { what })?;
    let fingerprint = fingerprint(&python).map_err(wrong("cannot read the interpreter's files".into()))?;
    let folder = cache.join("rootfs");
    let place = folder.join(&fingerprint);
    fs::create_dir_all(&folder).map_err(wrong(format!("cannot make {}", folder.display())))?;
    if !store::is_built(&place) {
        store::build_once(&folder, &place, |staging| build(&python, &staging.join("tree")))
            .map_err(wrong(format!("cannot build {}", place.display())))?;
    }
    RootFs::load(&place, format!("python {}", python.version))
}

fn build(python: &Python, tree: &Path) -> io::Result<()> {
    for folder in ["usr/bin", "usr/lib", "etc", "proc", "dev", "tmp", "work", "pristine", "sys", "root", "var"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    copy::merge_usr(tree)?;
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
    libraries::copy_closure(&programs, tree)?;
    copy::write_etc(tree)?;
    python.compile(&library)
}

/// Names the inputs without reading all of them: paths, sizes and times of what would be copied.
fn fingerprint(python: &Python) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(RECIPE);
    hash.update(format!("{python:?}"));
    let mut files: Vec<PathBuf> = vec![python.executable.clone()];
    files.extend(["sh"].iter().chain(TOOLS).filter_map(|t| copy::find_tool(t)));
    files.extend(copy::walk(&python.standard_library)?);
    for file in files {
        let about = fs::metadata(&file)?;
        hash.update(format!("{}\0{}\0{:?}\n", file.display(), about.len(), about.modified()?));
    }
    Ok(copy::hex(&hash.finalize()[..16]))
}
