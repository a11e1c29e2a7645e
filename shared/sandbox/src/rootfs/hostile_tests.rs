//! Archives that somebody hostile made, and layers, unpacked beside a folder that must stay as it is.
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use super::tree::Tree;
use super::{RootSource, layer, prepare};

/// An entry with a name and a target that no honest tool would write.
fn entry(tar: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, target: &str, body: &[u8]) {
    let mut header = Header::new_gnu();
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o4755);
    header.set_size(body.len() as u64);
    header.set_cksum();
    tar.append(&header, body).unwrap();
}

type Entry<'a> = (EntryType, &'a str, &'a str);

fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (kind, name, target) in entries {
        let body: &[u8] = if *kind == EntryType::Regular { name.as_bytes() } else { b"" };
        entry(&mut tar, *kind, name, target, body);
    }
    tar.into_inner().unwrap()
}

/// Unpacks layers into `<dir>/tree`, beside `<dir>/outside/secret`.
fn unpack(dir: &Path, layers: &[&[Entry]]) -> std::io::Result<()> {
    fs::create_dir(dir.join("outside"))?;
    fs::write(dir.join("outside/secret"), "secret")?;
    let mut tree = Tree::create(&dir.join("tree"), false)?;
    for entries in layers {
        let tar = archive(entries);
        layer::take_away(&mut tree, &tar[..])?;
        layer::put(&mut tree, &tar[..])?;
    }
    tree.finish()
}

fn untouched(dir: &Path) -> bool {
    let names = |d: &Path| fs::read_dir(d).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
    let mut top = names(dir);
    top.sort();
    names(&dir.join("outside")) == ["secret"]
        && fs::read(dir.join("outside/secret")).unwrap() == b"secret"
        && fs::metadata(dir.join("outside/secret")).unwrap().nlink() == 1
        && top == ["outside", "tree"]
}

use EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};

#[test]
fn entries_that_would_leave_the_tree_are_refused() {
    let cases: &[&[Entry]] = &[
        &[(Regular, "/etc/passwd", "")],
        &[(Regular, "../outside/new", "")],
        &[(Regular, "a/../../outside/new", "")],
        &[(Directory, "../made", "")],
        &[(Symlink, "../link", "x")],
        &[(Symlink, "up", "../outside"), (Regular, "up/new", "")],
        &[(Symlink, "up", "../outside")],
        &[(Directory, "a", ""), (Symlink, "a/b", ".."), (Symlink, "c", "a/b/../../outside")],
        &[(Link, "hard", "../outside/secret")],
        &[(Link, "hard", "/outside/secret")],
        &[(Symlink, "s", "a"), (Link, "hard", "s")],
        &[(Symlink, "x", "y"), (Symlink, "y", "x"), (Regular, "x/new", "")],
        &[(Regular, "file", ""), (Regular, "file/below", "")],
        &[(Regular, ".wh.", "")],
        &[(Regular, "..", "")],
        &[(Regular, ".wh...", "")],
    ];
    for case in cases {
        let dir = tempfile::tempdir().unwrap();
        let done = unpack(dir.path(), &[case]);
        assert!(done.is_err(), "{case:?} was accepted");
        assert!(untouched(dir.path()), "{case:?}");
    }
}

#[test]
fn absolute_links_mean_the_root_of_the_tree_and_nothing_is_setuid() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside").display().to_string();
    let entries = [
        (Directory, "usr/bin", ""),
        (Regular, "usr/bin/gawk", ""),
        (Symlink, "etc/alternatives/awk", "/usr/bin/gawk"),
        (Symlink, "usr/bin/awk", "/etc/alternatives/awk"),
        (Symlink, "bin", "/usr/bin"),
        (Regular, "bin/sh", ""),
        (Link, "usr/bin/dash", "bin/sh"),
        (Symlink, "host", &outside),
        (Regular, "host/new", ""),
        (Symlink, "work", "usr"),
        (Char, "usr/null", ""),
        (Block, "usr/disk", ""),
        (Fifo, "usr/fifo", ""),
    ];
    unpack(dir.path(), &[&entries]).unwrap();
    let tree = dir.path().join("tree");
    assert_eq!(fs::read_link(tree.join("usr/bin/awk")).unwrap(), Path::new("../../etc/alternatives/awk"));
    assert_eq!(fs::read(tree.join("usr/bin/awk")).unwrap(), b"usr/bin/gawk");
    assert_eq!(fs::read(tree.join("usr/bin/dash")).unwrap(), b"bin/sh");
    assert_eq!(fs::metadata(tree.join("usr/bin/sh")).unwrap().permissions().mode() & 0o7777, 0o755);
    // the path of this machine was made inside the tree
    assert!(tree.join(outside.trim_start_matches('/')).join("new").is_file());
    assert!(fs::symlink_metadata(tree.join("work")).unwrap().is_dir(), "what is mounted over is a folder");
    for left_out in ["null", "disk", "fifo"] {
        assert!(fs::symlink_metadata(tree.join("usr").join(left_out)).is_err(), "{left_out}");
    }
    assert!(untouched(dir.path()));
}

#[test]
fn whiteouts_take_away_lower_layers_and_nothing_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let lower: &[Entry] = &[(Regular, "a/old", ""), (Regular, "b/old", ""), (Regular, "c/old", ""), (Regular, "d", "")];
    // the new file of `b` comes before the mark that empties `b`
    let upper: &[Entry] = &[
        (Regular, "a/.wh.old", ""),
        (Regular, "b/new", ""),
        (Regular, "b/.wh..wh..opq", ""),
        (Regular, ".wh.c", ""),
        (Directory, "d", ""),
        (Regular, "d/inner", ""),
    ];
    unpack(dir.path(), &[lower, upper]).unwrap();
    let there = |p: &str| dir.path().join("tree").join(p).exists();
    assert_eq!(["a/old", "b/old", "c", "a/.wh.old"].map(there), [false; 4]);
    assert_eq!(["a", "b/new", "d/inner"].map(there), [true; 3]);
    let control = tempfile::tempdir().unwrap();
    unpack(control.path(), &[lower, &[]]).unwrap();
    assert!(control.path().join("tree/a/old").exists(), "without a whiteout it stays");
}

/// A `docker save` archive of these layers.
fn saved(path: &Path, layers: &[Vec<u8>]) {
    let mut tar = Builder::new(Vec::new());
    let names: Vec<String> = (0..layers.len()).map(|n| format!("l{n}/layer.tar")).collect();
    let manifest = serde_json::json!([{ "Config": "c.json", "RepoTags": ["x:1"], "Layers": names }]).to_string();
    for (name, layer) in names.iter().zip(layers) {
        entry(&mut tar, Regular, name, "", layer);
    }
    entry(&mut tar, Regular, "manifest.json", "", manifest.as_bytes());
    fs::write(path, tar.into_inner().unwrap()).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

#[test]
fn saved_exported_and_unpacked_images_give_the_same_tree() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let lower = archive(&[(Regular, "usr/bin/sh", ""), (Regular, "gone", ""), (Symlink, "bin", "usr/bin")]);
    let upper = archive(&[(Regular, ".wh.gone", ""), (Regular, "etc/x", "")]);
    let flat = archive(&[(Regular, "./usr/bin/sh", ""), (Symlink, "bin", "usr/bin"), (Regular, "etc/x", "")]);
    let path = |name: &str| dir.path().join(name);
    saved(&path("saved.tar"), &[lower, gzip(&upper)]);
    fs::write(path("export.tar"), &flat).unwrap();
    fs::write(path("export.tar.gz"), gzip(&flat)).unwrap();
    let made = |name: &str| prepare(&name.replace('.', "-"), &RootSource::Image(path(name)), &cache).unwrap();
    let first = made("saved.tar");
    assert!(first.tree.join("etc/x").is_file() && !first.tree.join("gone").exists());
    let (plain, zipped) = (made("export.tar"), made("export.tar.gz"));
    assert_eq!(plain.digest, zipped.digest);
    let folder = RootSource::Image(plain.tree.clone());
    assert_eq!(prepare("folder", &folder, &cache).unwrap().digest, plain.digest);
    let other = prepare("folder", &RootSource::Image(path("saved.tar")), &cache).unwrap_err();
    assert!(other.to_string().contains("already made of"), "{other}");
    assert_eq!(prepare("saved-tar", &RootSource::Image(path("saved.tar")), &cache).unwrap(), first);
}

#[test]
fn what_is_no_image_is_an_error_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    fs::write(dir.path().join("text"), "this is no tar\n".repeat(100)).unwrap();
    let mut two = Builder::new(Vec::new());
    entry(&mut two, Regular, "manifest.json", "", br#"[{"Layers":[]},{"Layers":[]}]"#);
    fs::write(dir.path().join("two"), two.into_inner().unwrap()).unwrap();
    let mut gone = Builder::new(Vec::new());
    entry(&mut gone, Regular, "manifest.json", "", br#"[{"Layers":["../../etc/passwd"]}]"#);
    fs::write(dir.path().join("gone"), gone.into_inner().unwrap()).unwrap();
    saved(&dir.path().join("zstd"), &[vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0]]);
    for name in ["text", "two", "gone", "zstd", "absent"] {
        let error = prepare(name, &RootSource::Image(dir.path().join(name)), &cache).unwrap_err();
        println!("{error}");
        let left: Vec<PathBuf> = fs::read_dir(cache.join("rootfs/named")).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(left, [cache.join("rootfs/named/lock")], "{name}");
    }
    for name in ["", ".", "..", "a/b", "lock", "-x"] {
        assert!(prepare(name, &RootSource::Image(dir.path().join("text")), &cache).is_err(), "{name:?}");
    }
}

fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "..", ".", "outside", ".wh.a", ".wh..wh..opq"])
}

fn path() -> impl Strategy<Value = String> {
    (prop::bool::weighted(0.1), prop::collection::vec(part(), 1..4))
        .prop_map(|(absolute, parts)| format!("{}{}", if absolute { "/" } else { "" }, parts.join("/")))
}

fn entries() -> impl Strategy<Value = Vec<(EntryType, String, String)>> {
    let kind = prop::sample::select(vec![Regular, Directory, Symlink, Symlink, Link]);
    prop::collection::vec((kind, path(), path()), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the entries, each tried by itself so that a refusal does not end the attempt.
    #[test]
    fn nothing_outside_is_touched(entries in entries()) {
        let dir = tempfile::tempdir().unwrap();
        unpack(dir.path(), &[]).unwrap();
        fs::remove_dir_all(dir.path().join("tree")).unwrap();
        let mut tree = Tree::create(&dir.path().join("tree"), false).unwrap();
        for (kind, name, target) in &entries {
            let tar = archive(&[(*kind, name, target)]);
            let _ = layer::take_away(&mut tree, &tar[..]);
            let _ = layer::put(&mut tree, &tar[..]);
        }
        prop_assert!(untouched(dir.path()));
    }
}
