//! The host's real interpreter: a `python3` on the PATH may be a version manager's shim, so it is asked what it is.
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// Where an interpreter keeps what a sandbox needs of it.
#[derive(Debug, Clone, Deserialize)]
pub struct Python {
    /// The real program.
    pub executable: PathBuf,
    /// The folder with `os.py`.
    pub standard_library: PathBuf,
    /// `lib` or `lib64`.
    pub library_folder: String,
    /// As `3.11.7`.
    pub version: String,
}

const QUESTION: &str = "
import json, os, sys
print(json.dumps({
    'executable': os.path.realpath(sys.executable),
    'standard_library': os.path.dirname(os.path.realpath(os.__file__)),
    'library_folder': getattr(sys, 'platlibdir', 'lib'),
    'version': '%d.%d.%d' % sys.version_info[:3],
}))";

impl Python {
    pub fn find() -> Result<Python, String> {
        let asked = ["python3", "/usr/bin/python3"].iter().map(|p| Self::ask(p)).collect::<Vec<_>>();
        let usable = |r: &Result<Python, String>| r.is_ok();
        let best = asked.iter().position(usable).unwrap_or(0);
        asked.into_iter().nth(best).unwrap_or_else(|| Err("no python3".into()))
    }

    fn ask(program: &str) -> Result<Python, String> {
        let answer = Command::new(program)
            .args(["-I", "-S", "-c", QUESTION])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cannot run {program}, install Python 3.8 or newer: {e}"))?;
        if !answer.status.success() {
            return Err(format!("{program} does not run: {}", String::from_utf8_lossy(&answer.stderr).trim()));
        }
        serde_json::from_slice(&answer.stdout).map_err(|e| format!("{program} gave an odd answer: {e}"))
    }

    /// `python3.11`: the name of the program and of its library's folder.
    pub fn name(&self) -> String {
        let mut parts = self.version.split('.');
        format!("python{}.{}", parts.next().unwrap_or("3"), parts.next().unwrap_or("0"))
    }

    /// Compiles a copied library so that no sandbox has to; the .pyc files are never checked against the sources.
    pub fn compile(&self, library: &Path) -> io::Result<()> {
        let inside = format!("/usr/{}/{}", self.library_folder, self.name());
        let done = Command::new(&self.executable)
            .args(["-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-d", &inside])
            .arg(library)
            .stdin(Stdio::null())
            .output()?;
        // a module that does not compile (templates, broken on purpose) does not compile on the host either
        if !library.join("__pycache__").is_dir() {
            let why = String::from_utf8_lossy(&done.stderr).trim().to_string();
            return Err(io::Error::other(format!("the standard library does not compile: {why}")));
        }
        Ok(())
    }
}
