//! What a hostile program left in /work, as listed after its end, and which of it is brought out.
//!
//! In: lines of mode, links, size and path. Out: files to read, in order, and refusals in the words of the `namespaces` backend.
//! What must hold: only regular files with one name are read; nothing is taken through a link; all is bounded.
use std::collections::BTreeMap;

use rollmill_sandbox::Refusal;

/// The most entries looked at, and refusals named.
const MAX_ENTRIES: usize = 20_000;
const MAX_REFUSED: usize = 100;
/// How deep folders may nest.
const MAX_DEPTH: usize = 32;

const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

#[derive(Debug, Clone, Copy)]
struct Entry {
    mode: u32,
    links: u64,
    size: u64,
}

impl Entry {
    fn is(self, kind: u32) -> bool {
        self.mode & KIND == kind
    }

    /// What the owner, who reads, may do.
    fn allows(self, bits: u32) -> bool {
        self.mode >> 6 & bits == bits
    }
}

/// Entries by name, by folder; the folder of all is empty.
#[derive(Default)]
pub struct Listing {
    folders: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Entry>>,
    /// Names that a line cannot hold.
    broken: usize,
}

/// What to read, and what not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Paths and sizes, in the order of paths, each once.
    pub files: Vec<(String, u64)>,
    pub refused: Vec<Refusal>,
}

impl Listing {
    /// Lines that make no sense are left out: then so is what they speak of.
    pub fn parse(text: &[u8]) -> Listing {
        let mut listing = Listing::default();
        for line in text.split(|b| *b == b'\n') {
            if let Some(n) = line.strip_prefix(b"n ") {
                listing.broken += std::str::from_utf8(n).ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(1);
            } else if let Some((entry, path)) = parse_line(line) {
                let at = path.iter().rposition(|b| *b == b'/');
                let (folder, name) = at.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]));
                listing.folders.entry(folder.to_vec()).or_default().insert(name.to_vec(), entry);
            }
        }
        listing
    }

    /// Everything under the `wanted` paths, at most `bytes` in all.
    pub fn select(&self, wanted: &[String], bytes: u64) -> Selection {
        let mut walk = Walk { listing: self, out: Selection::default(), left: bytes, entries: 0 };
        for path in wanted {
            walk.wanted(path);
        }
        if self.broken > 0 {
            walk.refuse("", "names with a line break");
        }
        walk.out.files.sort();
        walk.out.files.dedup_by(|a, b| a.0 == b.0);
        walk.out
    }

    fn entry(&self, folder: &[u8], name: &[u8]) -> Option<Entry> {
        self.folders.get(folder)?.get(name).copied()
    }
}

fn parse_line(line: &[u8]) -> Option<(Entry, &[u8])> {
    let mut fields = line.splitn(4, |b| *b == b' ');
    let mut field = || fields.next();
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let mode = u32::from_str_radix(text(field()?)?, 16).ok()?;
    let links = text(field()?)?.parse().ok()?;
    let size = text(field()?)?.parse().ok()?;
    Some((Entry { mode, links, size }, field()?.strip_prefix(b"./")?))
}

struct Walk<'a> {
    listing: &'a Listing,
    out: Selection,
    left: u64,
    entries: usize,
}

impl Walk<'_> {
    fn wanted(&mut self, path: &str) {
        if path.is_empty() {
            self.entries += 1;
            return self.folder("", 0);
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        for (at, _) in path.match_indices('/') {
            let (above, name) = path[..at].rsplit_once('/').unwrap_or(("", &path[..at]));
            match self.listing.entry(above.as_bytes(), name.as_bytes()) {
                None => return,
                Some(entry) if entry.is(LINK) => return self.refuse(path, "a symbolic link"),
                Some(entry) if !entry.is(FOLDER) => return self.refuse(path, "cannot be opened"),
                Some(_) => {}
            }
        }
        if let Some(entry) = self.listing.entry(folder.as_bytes(), name.as_bytes()) {
            self.visit(entry, path, 0);
        }
    }

    fn visit(&mut self, entry: Entry, path: &str, depth: usize) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return self.refuse(path, "too many entries");
        }
        if entry.is(LINK) {
            self.refuse(path, "a symbolic link");
        } else if entry.is(FOLDER) && entry.allows(0o5) {
            self.folder(path, depth);
        } else if entry.is(FILE) && entry.links != 1 {
            self.refuse(path, "a file with several names");
        } else if entry.is(FILE) && entry.size > self.left {
            self.refuse(path, "over the limit on bytes");
        } else if entry.is(FILE) && entry.allows(0o4) {
            self.left -= entry.size;
            self.out.files.push((path.into(), entry.size));
        } else if entry.is(FILE) || entry.is(FOLDER) {
            self.refuse(path, "cannot be read");
        } else {
            self.refuse(path, "a special file");
        }
    }

    fn folder(&mut self, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.refuse(path, "folders nested too deeply");
        }
        let listing = self.listing;
        for (name, entry) in listing.folders.get(path.as_bytes()).into_iter().flatten() {
            let child = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            match std::str::from_utf8(name) {
                Ok(name) => self.visit(*entry, &child(name), depth + 1),
                Err(_) => self.refuse(&child(&String::from_utf8_lossy(name)), "a name that is not unicode"),
            }
        }
    }

    fn refuse(&mut self, path: &str, reason: &str) {
        if self.out.refused.len() < MAX_REFUSED {
            self.out.refused.push(Refusal { path: path.into(), reason: reason.into() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(lines: &str, wanted: &[&str], bytes: u64) -> (Vec<String>, Vec<(String, String)>) {
        let wanted: Vec<String> = wanted.iter().map(|w| w.to_string()).collect();
        let selection = Listing::parse(lines.as_bytes()).select(&wanted, bytes);
        let refused = selection.refused.into_iter().map(|r| (r.path, r.reason)).collect();
        (selection.files.into_iter().map(|f| f.0).collect(), refused)
    }

    #[test]
    fn plain_files_in_order_and_once() {
        let lines = "41ed 2 60 ./out\n81a4 1 2 ./out/b\n81a4 1 3 ./out/a\n81a4 1 1 ./z\n";
        assert_eq!(select(lines, &["out", "out/a", "none"], 100).0, ["out/a", "out/b"]);
        assert_eq!(select(lines, &[""], 100).0, ["out/a", "out/b", "z"]);
    }

    #[test]
    fn what_is_not_plain_is_refused_by_name() {
        let lines = "41ed 2 60 ./d\na1ff 1 3 ./d/link\n11a4 1 0 ./d/fifo\n81a4 2 1 ./d/two\n81a4 1 9999 ./d/big
8000 1 1 ./d/dark\n4000 2 1 ./d/shut\na1ff 1 1 ./l\nn 2\n";
        let (files, refused) = select(lines, &["d", "l/x", "d/big/x"], 1000);
        assert!(files.is_empty());
        let want = [
            ("d/big", "over the limit on bytes"),
            ("d/dark", "cannot be read"),
            ("d/fifo", "a special file"),
            ("d/link", "a symbolic link"),
            ("d/shut", "cannot be read"),
            ("d/two", "a file with several names"),
            ("l/x", "a symbolic link"),
            ("d/big/x", "cannot be opened"),
            ("", "names with a line break"),
        ];
        assert_eq!(refused, want.map(|(path, why)| (path.to_string(), why.to_string())));
    }

    #[test]
    fn lines_of_a_liar_are_only_left_out() {
        assert_eq!(select("81a4 1 1 /etc/passwd\n81a4 1\nx\n81a4 1 -1 ./a\n", &["", "etc"], 10), (vec![], vec![]));
    }
}
