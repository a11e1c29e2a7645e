//! Copying the files of the host into the tree, and the digest of what came out.
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Parts of the standard library that no task needs and that are large, graphical, or test Python itself.
const LEFT_OUT: &[&str] = &[
    "__pycache__",
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "idle_test",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
];

/// `/bin`, `/lib`, `/lib64` and `/sbin` are links into /usr.
pub fn merge_usr(tree: &Path) -> io::Result<()> {
    for name in ["bin", "lib", "lib64"] {
        fs::create_dir_all(tree.join("usr").join(name))?;
        symlink(format!("usr/{name}"), tree.join(name))?;
    }
    symlink("usr/bin", tree.join("sbin"))
}

/// Copies one file, links followed, readable and (if it was) executable by all, never setuid, writable by nobody else.
pub fn file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    let executable = fs::metadata(from)?.permissions().mode() & 0o111 != 0;
    fs::set_permissions(to, fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
}

/// A tool's real program on this host.
pub fn find_tool(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin"].iter().find_map(|f| fs::canonicalize(Path::new(f).join(name)).ok()).filter(|p| p.is_file())
}

/// The files of a standard library that are wanted, in order.
pub fn walk(library: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![library.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let build_files = folder == library && name.starts_with("config-");
            let wanted = !build_files && !LEFT_OUT.contains(&&*name);
            match fs::metadata(&path) {
                Ok(about) if wanted && about.is_dir() && !path.is_symlink() => folders.push(path),
                Ok(about) if wanted && about.is_file() => found.push(path),
                _ => {} // dangling links, and what is left out
            }
        }
    }
    found.sort();
    Ok(found)
}

pub fn standard_library(from: &Path, to: &Path) -> io::Result<()> {
    for path in walk(from)? {
        let inner = path.strip_prefix(from).map_err(io::Error::other)?;
        if !path.extension().is_some_and(|e| e == "a" || e == "o") {
            file(&path, &to.join(inner))?;
        }
    }
    Ok(())
}

/// Extension modules of a copied library.
pub fn shared_objects(library: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(walk(library)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "so")).collect())
}

/// Users and hosts, as the sandbox maps them.
pub fn write_etc(tree: &Path) -> io::Result<()> {
    fs::write(tree.join("etc/passwd"), "user:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")?;
    fs::write(tree.join("etc/group"), "user:x:1000:\nnobody:x:65534:\n")?;
    fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n")
}

/// SHA-256 over every path with its kind and contents, in order. Compiled files are left out: the compiler does not promise
/// the same bytes twice.
pub fn digest(tree: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut paths = Vec::new();
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            paths.push(path);
        }
    }
    paths.sort();
    for path in paths.iter().filter(|p| p.file_name().is_none_or(|n| n != "__pycache__")) {
        if path.extension().is_some_and(|e| e == "pyc") {
            continue;
        }
        let inner = path.strip_prefix(tree).map_err(io::Error::other)?.display();
        if path.is_symlink() {
            hash.update(format!("link {inner} {}\n", fs::read_link(path)?.display()));
        } else if path.is_dir() {
            hash.update(format!("folder {inner}\n"));
        } else {
            let bytes = fs::read(path)?;
            hash.update(format!("file {inner} {:o} {}\n", fs::metadata(path)?.permissions().mode(), bytes.len()));
            hash.update(bytes);
        }
    }
    Ok(hex(&hash.finalize()))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_sees_contents_and_names_but_not_compiled_files() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), text).unwrap();
        };
        put("a.py", "1");
        let before = digest(dir.path()).unwrap();
        put("__pycache__/a.pyc", "x");
        assert_eq!(digest(dir.path()).unwrap(), before);
        put("a.py", "2");
        assert_ne!(digest(dir.path()).unwrap(), before);
    }

    #[test]
    fn walk_leaves_out_packages_and_tests() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["os.py", "json/__init__.py", "site-packages/x.py", "test/y.py", "json/__pycache__/z.pyc"] {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = walk(dir.path()).unwrap();
        assert_eq!(found, [dir.path().join("json/__init__.py"), dir.path().join("os.py")]);
    }
}
