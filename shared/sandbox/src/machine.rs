//! What this machine's kernel says about itself. Paths are read below a root, so that a recorded tree can be asked too.
use std::fs;
use std::path::Path;

/// A setting of the kernel, as a number.
pub fn sysctl(root: &Path, path: &str) -> Option<u64> {
    fs::read_to_string(root.join("proc/sys").join(path)).ok()?.trim().parse().ok()
}

/// The setting that keeps an ordinary user from making namespaces, if one is known.
pub fn forbids_user_namespaces(root: &Path) -> Option<String> {
    let settings = [
        ("user/max_user_namespaces", 0, "a number above zero, as 15000"),
        ("kernel/unprivileged_userns_clone", 0, "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", 1, "0, or give rollmill an AppArmor profile with `userns`"),
    ];
    settings
        .iter()
        .find(|(path, bad, _)| sysctl(root, path) == Some(*bad))
        .map(|(path, bad, good)| format!("sysctl {} is {bad}: set it to {good}", path.replace('/', ".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_recorded_machines() {
        let machine = |settings: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            for (path, value) in settings {
                let path = dir.path().join("proc/sys").join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{value}\n")).unwrap();
            }
            forbids_user_namespaces(dir.path())
        };
        assert_eq!(machine(&[("user/max_user_namespaces", "96365")]), None);
        assert!(machine(&[("user/max_user_namespaces", "0")]).unwrap().contains("user.max_user_namespaces is 0"));
        let debian_10 = [("user/max_user_namespaces", "7000"), ("kernel/unprivileged_userns_clone", "0")];
        assert!(machine(&debian_10).unwrap().contains("kernel.unprivileged_userns_clone"));
        let ubuntu_24 = [("user/max_user_namespaces", "7000"), ("kernel/apparmor_restrict_unprivileged_userns", "1")];
        assert!(machine(&ubuntu_24).unwrap().contains("AppArmor profile"));
    }
}
