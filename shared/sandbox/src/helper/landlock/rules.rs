//! What of this machine's files a program may touch where it has no root of its own.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::RunFolder;

/// The newest version whose rights are known here; older kernels take what they know (from [`super::OLDEST`] on).
const KNOWN: ABI = ABI::V6;
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Confines this process for good. Whatever is not named is closed: reading, writing, executing, listing. The tree's programs
/// name the loader, and scripts name `/bin/sh` and `/usr/bin/env`, by paths of this machine; these files are open too.
pub fn apply(tree: &Path, folder: &RunFolder) -> io::Result<()> {
    let ruleset = Ruleset::default()
        .set_compatibility(landlock::CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| open(ruleset, rules(tree, folder)))
        .and_then(|ruleset| ruleset.restrict_self());
    match ruleset.map_err(io::Error::other)?.ruleset {
        RulesetStatus::NotEnforced => Err(io::ErrorKind::Unsupported.into()),
        _ => Ok(()),
    }
}

type Rules = Vec<(PathBuf, BitFlags<AccessFs>)>;

fn rules(tree: &Path, folder: &RunFolder) -> Rules {
    use AccessFs::{Execute, IoctlDev, MakeBlock, MakeChar, MakeSock, ReadDir, ReadFile, WriteFile};
    let read = Execute | ReadFile | ReadDir;
    let own = AccessFs::from_all(KNOWN) & !(IoctlDev | MakeBlock | MakeChar | MakeSock);
    let mut rules: Rules =
        vec![(tree.into(), read), (folder.pristine(), read), (folder.work(), own), (folder.tmp(), own)];
    rules.extend(programs_of_this_machine(tree).into_iter().map(|path| (path, Execute | ReadFile)));
    rules.extend(DEVICES.iter().map(|device| (device.into(), ReadFile | WriteFile)));
    rules
}

fn open(mut ruleset: RulesetCreated, rules: Rules) -> Result<RulesetCreated, RulesetError> {
    for (path, access) in rules {
        if let Ok(fd) = PathFd::new(&path) {
            ruleset = ruleset.add_rule(PathBeneath::new(fd, access))?; // what is not there stays closed
        }
    }
    Ok(ruleset)
}

fn programs_of_this_machine(tree: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = vec!["/bin/sh".into(), "/usr/bin/env".into()];
    for folder in ["lib64", "lib"] {
        let entries = fs::read_dir(tree.join(folder)).into_iter().flatten().flatten().map(|e| e.file_name());
        let loaders = entries.filter(|name| name.to_string_lossy().starts_with("ld-"));
        paths.extend(loaders.map(|name| Path::new("/").join(folder).join(name)));
    }
    paths.into_iter().filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// Folders of the tree with shared libraries: the one with libc has them all.
pub fn library_folders(tree: &Path) -> Vec<String> {
    let mut folders = vec![tree.join("usr/lib"), tree.join("usr/lib64")];
    let entries = fs::read_dir(tree.join("usr/lib")).into_iter().flatten().flatten().map(|e| e.path());
    folders.extend(entries.filter(|path| path.is_dir()));
    folders.retain(|folder| folder.join("libc.so.6").exists() || folder.join("libm.so.6").exists());
    folders.into_iter().map(|f| f.display().to_string()).collect()
}
