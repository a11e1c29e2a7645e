//! Root file systems: what becomes `/` of a sandbox.
//!
//! In: a [`RootSource`]: this machine's interpreter, Debian packages, or an image. Out: a [`RootFs`], a folder in the cache with
//! the digest of its contents beside it, `<cache>/rootfs/<fingerprint>` for the host's and `<cache>/rootfs/named/<name>` for a
//! prepared one. What must hold: a folder appears whole by one rename, so several processes may build it at once; it is never
//! written again; nothing in it is setuid or a device, and no link leads out of it.
mod copy;
mod debian;
mod host;
#[cfg(test)]
mod hostile_tests;
mod image;
mod layer;
mod libraries;
mod python;
mod store;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxError;
use crate::toolchain;
use tree::Tree;

/// What a root file system is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootSource {
    /// This machine's Python, a shell and small tools: the default, made by itself when a sandbox is opened.
    Host,
    /// Debian packages by name (or `name=version`), with all they need, coreutils and a shell. Needs apt's package lists
    /// and its archive, but no root; no maintainer script runs.
    Packages(Vec<String>),
    /// A tar made by `docker export` or `docker save` (or podman's), or an unpacked folder. It must hold a shell.
    Image(PathBuf),
}

/// Which root file system sandboxes get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Root {
    /// The host's interpreter.
    #[default]
    Host,
    /// One that [`prepare`] made in the same cache, by name.
    Named(String),
    /// One that [`prepare`] made elsewhere: the folder with `tree` and `digest`.
    At(PathBuf),
}

/// A built root file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootFs {
    /// What becomes `/` of a sandbox.
    pub tree: PathBuf,
    /// SHA-256 over paths, modes and contents, .pyc files left out, in hex.
    pub digest: String,
    /// What it was made of, in words.
    pub made_of: String,
}

/// What a prepared root file system says about itself.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    source: RootSource,
    /// Packages with their versions.
    contents: Vec<String>,
}

const ABOUT: &str = "about.json";

impl RootFs {
    fn load(place: &Path, made_of: String) -> Result<RootFs, SandboxError> {
        let digest = fs::read_to_string(place.join(store::DIGEST)).map_err(wrong("cannot read its digest".into()))?;
        // a bind mount resolves symbolic links once; the sandbox then names this folder
        let tree = fs::canonicalize(place.join("tree")).map_err(wrong("cannot find its tree".into()))?;
        Ok(RootFs { tree, digest, made_of })
    }

    /// Finds one, or, the host's, builds it.
    pub(crate) fn open(root: &Root, cache: &Path) -> Result<RootFs, SandboxError> {
        let place = match root {
            Root::Host => return host::open(cache),
            Root::Named(name) => named(cache, name)?,
            Root::At(place) => place.clone(),
        };
        if !store::is_built(&place) {
            let what = format!("there is none at {}: make it with `rollmill sandbox prepare`", place.display());
            return Err(SandboxError::RootFs { what });
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        RootFs::load(&place, format!("root {name} of {}", about(&place)?.source))
    }
}

impl RootSource {
    /// The packages of a named profile: `cpp`, `rust`, `go`, `javascript`, `shell`, `python`, or `all` of them.
    pub fn profile(name: &str) -> Option<RootSource> {
        let packages = toolchain::ALL.iter().filter(|t| t.language == name || name == "all").flat_map(|t| t.packages);
        let mut packages: Vec<String> = packages.map(|p| p.to_string()).collect();
        packages.sort();
        packages.dedup();
        (!packages.is_empty()).then_some(RootSource::Packages(packages))
    }
}

impl std::fmt::Display for RootSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RootSource::Host => f.write_str("this machine's python"),
            RootSource::Packages(names) => write!(f, "packages {}", names.join(" ")),
            RootSource::Image(path) => write!(f, "image {}", path.display()),
        }
    }
}

/// Makes a root file system under a name in the cache, or finds it there (minutes, and hundreds of megabytes for packages).
/// The same name always means the same bytes: a name that is taken by another source is refused, and packages that have
/// newer versions by now are not looked for. For [`RootSource::Host`] the name is not used.
pub fn prepare(name: &str, source: &RootSource, cache: &Path) -> Result<RootFs, SandboxError> {
    if *source == RootSource::Host {
        return host::open(cache);
    }
    let place = named(cache, name)?;
    let folder = place.parent().unwrap_or(cache).to_path_buf();
    fs::create_dir_all(&folder).map_err(wrong(format!("cannot make {}", folder.display())))?;
    if !store::is_built(&place) {
        store::build_once(&folder, &place, |staging| build(source, staging)).map_err(wrong(name.to_string()))?;
    }
    let taken = about(&place)?.source;
    if taken != *source {
        let what = format!("{name} is already made of {taken}: take another name, or remove {}", place.display());
        return Err(SandboxError::RootFs { what });
    }
    RootFs::open(&Root::At(place), cache)
}

/// The names of what [`prepare`] made in this cache, with what each is made of, in order.
pub fn prepared(cache: &Path) -> Vec<(String, RootFs)> {
    let entries = fs::read_dir(cache.join("rootfs/named")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    let open = |name: String| RootFs::open(&Root::Named(name.clone()), cache).ok().map(|root| (name, root));
    names.into_iter().filter_map(open).collect()
}

fn build(source: &RootSource, staging: &Path) -> io::Result<()> {
    let contents = match source {
        RootSource::Host => return Err(io::ErrorKind::InvalidInput.into()), // `prepare` took care of it
        RootSource::Packages(names) => debian::unpack(names, staging)?,
        RootSource::Image(image) => {
            let mut tree = Tree::create(&staging.join("tree"), false)?;
            image::unpack(image, &mut tree)?;
            tree.finish()?;
            vec![]
        }
    };
    let about = About { source: source.clone(), contents };
    fs::write(staging.join(ABOUT), serde_json::to_vec_pretty(&about).map_err(io::Error::other)?)
}

fn about(place: &Path) -> Result<About, SandboxError> {
    let path = place.join(ABOUT);
    let what = format!("cannot read {}", path.display());
    let bytes = fs::read(path).map_err(wrong(what.clone()))?;
    serde_json::from_slice(&bytes).map_err(|e| wrong(what)(e.into()))
}

fn named(cache: &Path, name: &str) -> Result<PathBuf, SandboxError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(plain) || name == "lock" {
        let what = format!("{name:?} is no name: letters, digits, `-`, `_` and `.`, a letter or digit first");
        return Err(SandboxError::RootFs { what });
    }
    Ok(cache.join("rootfs/named").join(name))
}

fn wrong(what: String) -> impl FnOnce(io::Error) -> SandboxError {
    move |e| SandboxError::RootFs { what: format!("{what}: {e}") }
}
