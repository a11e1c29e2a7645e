//! The unsafe control: what many a harness does. A plain process with this user's rights and environment, in a folder that the
//! next one uses too; a time-out that kills the one process; files read back as they are found.
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Collected, Facts, Finished, Isolation, Level, Sandbox, SandboxError, Session, Spec};

/// Runs programs as they are.
pub struct Plain {
    folder: tempfile::TempDir,
    isolation: Isolation,
}

impl Plain {
    /// With a folder of its own.
    pub fn new() -> io::Result<Plain> {
        let folder = tempfile::tempdir()?;
        for name in ["work", "tmp", "pristine"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let isolation = Isolation {
            backend: "none".into(),
            level: Level::Watched,
            cgroup: "none".into(),
            rootfs_digest: String::new(),
            notes: vec!["an unsafe control".into()],
        };
        Ok(Plain { folder, isolation })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run_here(&self, spec: &Spec) -> io::Result<Finished> {
        for (folder, files) in [("work", &spec.files), ("pristine", &spec.pristine)] {
            for (path, bytes) in files {
                let path = self.at(folder).join(path);
                fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
                fs::write(path, bytes)?;
            }
        }
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let started = Instant::now();
        let mut child = Command::new(&spec.argv[0])
            .args(&spec.argv[1..])
            .envs(spec.env.iter().map(|(n, v)| (n, v)))
            .env("PRISTINE", self.at("pristine"))
            .env("FOLDERS", format!("{},{}", self.at("work").display(), self.at("tmp").display()))
            .current_dir(self.at("work"))
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .spawn()?;
        let (status, timed_out) = wait(&mut child, spec.limits.wall)?;
        let facts = Facts {
            exit: status.code(),
            signal: signal_of(status),
            timed_out,
            wall: started.elapsed(),
            ..Facts::default()
        };
        let collected = self.collect(&spec.collect)?;
        Ok(Finished { facts, stdout: all_of(stdout)?, stderr: all_of(stderr)?, collected })
    }

    /// Follows whatever is there.
    fn collect(&self, wanted: &[String]) -> io::Result<Collected> {
        let mut files = Vec::new();
        for path in wanted {
            for entry in fs::read_dir(self.at("work").join(path)).into_iter().flatten() {
                let entry = entry?;
                if fs::metadata(entry.path()).is_ok_and(|about| about.is_file()) {
                    let name = format!("{path}/{}", entry.file_name().to_string_lossy());
                    files.push((name, fs::read(entry.path())?));
                }
            }
        }
        files.sort();
        Ok(Collected { files, refused: vec![] })
    }
}

fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

fn wait(child: &mut Child, wall: Duration) -> io::Result<(ExitStatus, bool)> {
    let end = Instant::now() + wall;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    Ok((child.wait()?, true))
}

fn all_of(mut file: fs::File) -> io::Result<Vec<u8>> {
    use std::io::Seek;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Sandbox for Plain {
    fn level(&self) -> &Isolation {
        &self.isolation
    }

    fn run(&self, spec: &Spec) -> Result<Finished, SandboxError> {
        self.run_here(spec).map_err(|source| SandboxError::Io { what: "cannot run a plain process".into(), source })
    }

    fn start(&self, _: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        Err(SandboxError::BadSpec { reason: "the control holds no conversations".into() })
    }
}
