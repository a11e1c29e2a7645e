//! Whether a spec can be run at all. What is refused here is a bug of the caller.
use std::collections::BTreeSet;
use std::time::Duration;

use crate::{SandboxError, Spec};

pub fn check(spec: &Spec) -> Result<(), SandboxError> {
    let bad = |reason: String| Err(SandboxError::BadSpec { reason });
    if spec.argv.first().is_none_or(String::is_empty) {
        return bad("no program is named".into());
    }
    if spec.argv.iter().any(|a| a.contains('\0')) {
        return bad("an argument contains a NUL byte".into());
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return bad(format!("environment variable {name:?} cannot exist"));
        }
    }
    let limits = &spec.limits;
    if limits.wall.is_zero() || limits.cpu.is_zero() || limits.wall > Duration::from_secs(86_400) {
        return bad(format!("wall {:?} and cpu {:?} must be above zero and at most a day", limits.wall, limits.cpu));
    }
    if limits.memory_bytes < 8 << 20 || limits.pids == 0 || limits.disk_bytes < 4096 {
        return bad("limits below 8 MiB of memory, one process or a page of disk run nothing".into());
    }
    check_files(&spec.files)?;
    check_files(&spec.pristine)?;
    spec.collect.iter().filter(|path| !path.is_empty()).try_for_each(|path| parts_of(path).map(drop))
}

/// The parts of a plain relative path.
fn parts_of(path: &str) -> Result<Vec<&str>, SandboxError> {
    let parts: Vec<&str> = path.split('/').collect();
    let part_is_bad = |p: &&str| matches!(*p, "" | "." | "..") || p.len() > 255 || p.contains('\0');
    if path.len() > 4000 || parts.iter().any(part_is_bad) {
        return Err(SandboxError::BadSpec { reason: format!("{path:?} is no plain relative path") });
    }
    Ok(parts)
}

fn check_files(given: &[(String, Vec<u8>)]) -> Result<(), SandboxError> {
    let mut files = BTreeSet::new();
    let mut folders = BTreeSet::new();
    for (path, _) in given {
        let parts = parts_of(path)?;
        files.insert(path.clone());
        folders.extend((1..parts.len()).map(|n| parts[..n].join("/")));
    }
    if let Some(both) = files.intersection(&folders).next() {
        return Err(SandboxError::BadSpec { reason: format!("{both:?} is both a file and a folder") });
    }
    if files.len() < given.len() {
        return Err(SandboxError::BadSpec { reason: "a file is given twice".into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_files(paths: &[&str]) -> Spec {
        let files = paths.iter().map(|p| (p.to_string(), vec![])).collect();
        Spec { argv: vec!["sh".into()], files, ..Spec::default() }
    }

    #[test]
    fn plain_relative_paths_pass_and_all_others_are_refused() {
        assert!(check(&with_files(&["a", "b/c.py", "b/d/e", ".hidden", "..x"])).is_ok());
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/./b", "a\0b"] {
            assert!(check(&with_files(&[path])).is_err(), "{path:?} was accepted");
        }
        assert!(check(&with_files(&["a", "a/b"])).is_err());
        assert!(check(&with_files(&["a", "a"])).is_err());
    }

    #[test]
    fn commands_and_environments_that_cannot_exist_are_refused() {
        assert!(check(&Spec::default()).is_err());
        let mut spec = with_files(&[]);
        spec.env = vec![("A=B".into(), "c".into())];
        assert!(check(&spec).is_err());
        spec.env = vec![("A".into(), "b\0".into())];
        assert!(check(&spec).is_err());
    }
}
