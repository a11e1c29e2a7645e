//! A SeaweedFS server of the harness's own, which can be killed with -9 and started again on the same data and ports.

use crate::process;
use anyhow::Context;
use rollmill_store::S3Settings;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The bucket that is made.
pub const BUCKET: &str = "rollmill-chaos";
const KEY: &str = "chaoskey";
const SECRET: &str = "chaossecret";

/// How long a start may take.
const START: Duration = Duration::from_secs(60);

/// The server.
pub struct Weed {
    program: PathBuf,
    dir: tempfile::TempDir,
    ports: [u16; 4],
    child: Option<Child>,
}

/// The program, if this machine has it.
pub fn program() -> Option<PathBuf> {
    let cache = std::env::var_os("ROLLMILL_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(home.join("rollmill"))
    })?;
    Some(cache.join("seaweedfs/weed")).filter(|p| p.is_file())
}

impl Weed {
    /// Starts a server with an empty bucket.
    pub fn start(program: &Path, seed: u64) -> anyhow::Result<Weed> {
        let dir = tempfile::tempdir()?;
        std::fs::create_dir(dir.path().join("data"))?;
        let iam = serde_json::json!({"identities": [{
            "name": "chaos",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }]});
        std::fs::write(dir.path().join("iam.json"), iam.to_string())?;
        let mut weed = Weed { program: program.into(), dir, ports: free_ports(seed)?, child: None };
        weed.begin()?;
        weed.wait()?;
        weed.make_bucket()?;
        Ok(weed)
    }

    /// How to reach it.
    pub fn settings(&self) -> S3Settings {
        S3Settings {
            endpoint: Some(format!("http://127.0.0.1:{}", self.ports[3])),
            region: Some("us-east-1".into()),
            access_key: Some(KEY.into()),
            secret_key: Some(SECRET.into()),
            ..S3Settings::default()
        }
    }

    /// Its pid, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills it with -9.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Starts it on the data and ports it had, without waiting for it.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        let log = std::fs::File::options().create(true).append(true).open(self.dir.path().join("log"))?;
        let [master, volume, filer, s3] = self.ports;
        let mut command = Command::new(&self.program);
        command.args(["mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-admin.ui=false", "-webdav=false"]);
        command.arg(format!("-dir={}", self.dir.path().join("data").display()));
        command.args([format!("-master.port={master}"), format!("-volume.port={volume}")]);
        command.args([format!("-filer.port={filer}"), format!("-s3.port={s3}")]);
        command.arg(format!("-s3.config={}", self.dir.path().join("iam.json").display()));
        // Its logs go to the folder for temporary files.
        command.env("TMPDIR", self.dir.path());
        command.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(process::start(&mut command).context("weed cannot be started")?);
        Ok(())
    }

    /// Whether it answers; an error if it has ended.
    pub fn ready(&mut self) -> anyhow::Result<bool> {
        if let Some(child) = &mut self.child
            && let Some(status) = child.try_wait()?
        {
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(5).collect();
            anyhow::bail!("weed ended by itself ({status}): {tail:?}");
        }
        Ok(matches!(request(self.ports[3], "GET", "/"), Ok(code) if code == 403 || code == 200))
    }

    /// Waits until it answers.
    pub fn wait(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while !self.ready()? {
            anyhow::ensure!(started.elapsed() < START, "weed does not answer after {START:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// A folder below the filer's `/buckets` is a bucket.
    fn make_bucket(&self) -> anyhow::Result<()> {
        let code = request(self.ports[2], "POST", &format!("/buckets/{BUCKET}/"))?;
        anyhow::ensure!((200..300).contains(&code), "weed made no bucket: HTTP {code}");
        Ok(())
    }
}

impl Drop for Weed {
    fn drop(&mut self) {
        // It dies with this process in any case.
        let _ = self.kill();
        // A server that is killed leaves its sockets, whose place is fixed.
        let ours: Vec<String> =
            self.ports.iter().flat_map(|p| [format!("-{p}.sock"), format!("-grpc-{}.sock", p + 10_000)]).collect();
        for entry in std::fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("seaweedfs-") && ours.iter().any(|end| name.ends_with(end)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Four ports p of loopback with p + 10000 free as well: SeaweedFS adds that for gRPC.
fn free_ports(seed: u64) -> anyhow::Result<[u16; 4]> {
    let from = 20_000 + ((u64::from(std::process::id()).wrapping_mul(7).wrapping_add(seed)) % 8_000) as u16;
    let free = |p: &u16| [*p, *p + 10_000].iter().all(|q| TcpListener::bind(("127.0.0.1", *q)).is_ok());
    let found: Vec<u16> = (from..from + 1_500).filter(free).take(4).collect();
    found.try_into().map_err(|_| anyhow::anyhow!("no four free ports from {from}"))
}

/// Status code of a request without a body.
fn request(port: u16, method: &str, path: &str) -> anyhow::Result<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    let mut head = [0u8; 12];
    stream.read_exact(&mut head)?;
    Ok(std::str::from_utf8(&head[9..])?.trim().parse()?)
}
