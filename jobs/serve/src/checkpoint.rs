//! The name of weights: the hash of their safetensors files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// `sha256:` and 16 hex digits over `model.safetensors`, or over all safetensors files of the folder by name.
pub fn digest(dir: &Path) -> io::Result<String> {
    let mut files: Vec<_> = std::fs::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .filter(|path: &io::Result<_>| {
            path.as_ref().map_or(true, |p| p.extension().is_some_and(|e| e == "safetensors"))
        })
        .collect::<io::Result<_>>()?;
    files.sort();
    let mut hash = Sha256::new();
    let mut buffer = vec![0u8; 1 << 20];
    for file in files {
        let mut file = File::open(file)?;
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
    }
    Ok(format!("sha256:{}", &hex::encode(hash.finalize())[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_hash_of_the_weights_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("model.safetensors"), "abc").unwrap();
        std::fs::write(dir.path().join("config.json"), "x").unwrap();
        // FIPS 180-4, example of SHA-256 over "abc"
        assert_eq!(digest(dir.path()).unwrap(), "sha256:ba7816bf8f01cfea");
    }
}
