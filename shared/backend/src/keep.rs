//! A sandbox that leaves what it did in a folder, for people who want to look inside a grade.
//!
//! In: any sandbox, a folder. Out: the same answers, and one numbered folder a run: `command.json`, `files/`, `pristine/`,
//! `stdin` and `stdout` as they went over the pipes, `stderr`, `collected/`, `facts.json`. What must hold: nothing is decided
//! by it, and a folder that cannot be written stops the grade with the reason.

use rollmill_sandbox::{Finished, Isolation, Received, Sandbox, SandboxError, Session, Spec};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The wrapper.
pub struct Keep {
    inner: Arc<dyn Sandbox>,
    folder: PathBuf,
    runs: AtomicUsize,
}

impl Keep {
    /// Keeps runs below `folder`, which is made if it is not there.
    pub fn new(inner: Arc<dyn Sandbox>, folder: &Path) -> Result<Keep, SandboxError> {
        fs::create_dir_all(folder).map_err(failed(folder))?;
        Ok(Keep { inner, folder: folder.to_path_buf(), runs: AtomicUsize::new(0) })
    }

    /// Writes what goes in.
    fn begin(&self, spec: &Spec) -> Result<PathBuf, SandboxError> {
        let folder = self.folder.join(format!("{:03}", self.runs.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let command = serde_json::json!({ "argv": spec.argv, "env": spec.env, "limits": spec.limits });
        write(&folder, "command.json", format!("{command:#}\n").as_bytes())?;
        write_all(&folder.join("files"), &spec.files)?;
        write_all(&folder.join("pristine"), &spec.pristine)?;
        Ok(folder)
    }
}

/// Writes what came out.
fn end(folder: &Path, done: &Finished) -> Result<(), SandboxError> {
    write(folder, "stderr", &done.stderr)?;
    write(folder, "facts.json", format!("{:#}\n", serde_json::json!(done.facts)).as_bytes())?;
    write_all(&folder.join("collected"), &done.collected.files)
}

/// The paths are plain and relative: a spec with others is refused, and others are not brought out.
fn write_all(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), SandboxError> {
    files.iter().try_for_each(|(path, bytes)| write(folder, path, bytes))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), SandboxError> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent).and_then(|()| fs::write(&path, bytes)).map_err(failed(&path))
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> SandboxError {
    let what = format!("cannot keep {}", path.display());
    move |source| SandboxError::Setup { what, source }
}

impl Sandbox for Keep {
    fn level(&self) -> &Isolation {
        self.inner.level()
    }

    fn run(&self, spec: &Spec) -> Result<Finished, SandboxError> {
        let folder = self.begin(spec)?;
        let done = self.inner.run(spec)?;
        write(&folder, "stdout", &done.stdout)?;
        end(&folder, &done).map(|()| done)
    }

    fn start(&self, spec: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        let folder = self.begin(spec)?;
        let create = |name: &str| File::create(folder.join(name)).map_err(failed(&folder));
        let (stdin, stdout) = (create("stdin")?, create("stdout")?);
        Ok(Box::new(Kept { inner: self.inner.start(spec)?, folder, stdin, stdout }))
    }
}

struct Kept {
    inner: Box<dyn Session>,
    folder: PathBuf,
    stdin: File,
    stdout: File,
}

impl Session for Kept {
    fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        self.stdin.write_all(bytes).map_err(failed(&self.folder))?;
        self.inner.send(bytes, deadline)
    }

    fn recv(&mut self, max: usize, deadline: Instant) -> Result<Received, SandboxError> {
        let received = self.inner.recv(max, deadline)?;
        if let Received::Bytes(bytes) = &received {
            self.stdout.write_all(bytes).map_err(failed(&self.folder))?;
        }
        Ok(received)
    }

    fn finish(self: Box<Self>) -> Result<Finished, SandboxError> {
        let Kept { inner, folder, mut stdout, .. } = *self;
        let done = inner.finish()?;
        stdout.write_all(&done.stdout).map_err(failed(&folder))?;
        end(&folder, &done).map(|()| done)
    }
}
