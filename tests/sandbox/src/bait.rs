//! What attacks are after on this machine: a file, a port, a socket without a file, an environment.
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Held open as long as attacks run.
pub struct Bait {
    folder: tempfile::TempDir,
    port: TcpListener,
    _socket: UnixListener,
    abstract_name: String,
    marks: AtomicU32,
}

impl Bait {
    /// Lays it out.
    pub fn new() -> io::Result<Bait> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("secret.txt"), "bait")?;
        let abstract_name = format!("rollmill-bait-{}", folder.path().display());
        let address = SocketAddr::from_abstract_name(&abstract_name)?;
        let (port, socket) = (TcpListener::bind("127.0.0.1:0")?, UnixListener::bind_addr(&address)?);
        Ok(Bait { folder, port, _socket: socket, abstract_name, marks: AtomicU32::new(0) })
    }

    /// The arguments of attacks that ask: a file, a port, this process's search path as an environment that must not be seen
    /// (everyone who starts tests has one), the name of an abstract socket, and this process's pid.
    pub fn arguments(&self) -> Vec<String> {
        let port = self.port.local_addr().map(|a| a.port()).unwrap_or(0);
        let path = std::env::var("PATH").unwrap_or_default();
        vec![self.file(), port.to_string(), path, self.abstract_name.clone(), std::process::id().to_string()]
    }

    /// The file with the secret.
    pub fn file(&self) -> String {
        self.folder.path().join("secret.txt").display().to_string()
    }

    /// A word that is in no command line yet.
    pub fn marker(&self) -> String {
        format!("marker-{}-{}", std::process::id(), self.marks.fetch_add(1, Ordering::Relaxed))
    }
}

/// Pids of processes, not zombies, that have this word in their command line; this one is none of them.
pub fn running_with(marker: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(marker.len()).any(|w| w == marker.as_bytes())
    };
    pids.filter(|pid| *pid != std::process::id() as i32).filter(has).collect()
}
