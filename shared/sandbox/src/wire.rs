//! What the caller and the helper say to each other over one socket.
//!
//! In one direction a [`Request`] as JSON behind its length, three descriptors (stdin, stdout, stderr of the program) riding
//! on the first byte, then the bytes of the files, which the sandbox's init reads. In the other [`Reply`] messages, JSON behind their length. When the
//! caller's side closes, for whatever reason, the helper kills the sandbox.
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroup::CgroupPlan;
use crate::namespaces::User;
use crate::{Facts, Limits, Refusal, Spec, sys};

/// A message longer than this is a bug, not a message.
const MAX_MESSAGE: u32 = 64 << 20;

/// One run, as the helper needs it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Paths under /work and lengths; the contents follow the message in this order.
    pub files: Vec<(String, u64)>,
    /// Paths under /pristine and lengths; their contents follow after those of `files`.
    pub pristine: Vec<(String, u64)>,
    /// Paths under /work to bring out after the end.
    pub collect: Vec<String>,
    pub limits: Limits,
    pub rootfs: PathBuf,
    /// Whom the sandbox's user is mapped to.
    pub user: User,
    pub cgroup: CgroupPlan,
    /// Below which folder a run's own files lie where there are no namespaces; none where there are.
    pub landlock: Option<PathBuf>,
}

/// What a helper with a warm interpreter needs once; a socket for each run follows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Warm {
    /// Interpreter and flags.
    pub argv: Vec<String>,
    /// Its environment, which its children's /proc/self/environ shows.
    pub env: Vec<(String, String)>,
    /// Python code that loads what runs will need.
    pub preload: String,
    /// Names and texts of programs to compile.
    pub programs: Vec<(String, String)>,
    pub rootfs: PathBuf,
    pub user: User,
}

/// What the helper answers: `Started`, then `Done`; or `Failed` at any point.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    Started,
    Failed {
        what: String,
        errno: i32,
        cgroup: bool,
    },
    /// The end. The contents of the collected files, by path and length, follow the message.
    Done {
        facts: Facts,
        files: Vec<(String, u64)>,
        refused: Vec<Refusal>,
    },
}

pub fn write_message<T: Serialize>(mut to: impl Write, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message).map_err(io::Error::other)?;
    let mut all = Vec::with_capacity(4 + body.len());
    all.extend((body.len() as u32).to_le_bytes());
    all.extend(body);
    to.write_all(&all)
}

pub fn read_message<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::Error::other("message of the sandbox helper too long"));
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(io::Error::other)
}

/// The caller's half of the hand-over.
pub fn send_request(socket: &UnixStream, request: &Request, spec: &Spec, stdio: [&OwnedFd; 3]) -> io::Result<()> {
    sys::send_fds(socket, stdio)?;
    write_message(socket, request)?;
    write_contents(socket, &spec.files)?;
    write_contents(socket, &spec.pristine)
}

/// Bytes of files one after the other; their lengths were said before.
pub fn write_contents(mut socket: &UnixStream, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    files.iter().try_for_each(|(_, bytes)| socket.write_all(bytes))
}

/// Reads what [`write_contents`] wrote.
pub fn read_contents(socket: &UnixStream, files: Vec<(String, u64)>) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut contents = Vec::with_capacity(files.len());
    for (path, length) in files {
        contents.push((path, read_content(socket, length)?));
    }
    Ok(contents)
}

/// The bytes of one file.
pub fn read_content(socket: &UnixStream, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    socket.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The program's stdin, stdout, stderr.
pub type Stdio = [OwnedFd; 3];

/// Passes a run on to its init, the socket its files come from included.
pub fn pass_on(init: &UnixStream, source: &UnixStream, request: &Request, stdio: &Stdio) -> io::Result<()> {
    let source = source.as_fd().try_clone_to_owned()?;
    let [stdin, stdout, stderr] = stdio;
    sys::send_fds(init, [&source, stdin, stdout, stderr])?;
    write_message(init, request)
}

/// Init's half of it.
pub fn take_passed_on(helper: &UnixStream) -> io::Result<(Request, Stdio, UnixStream)> {
    let [source, stdin, stdout, stderr] = sys::receive_fds(helper)?;
    Ok((read_message(helper)?, [stdin, stdout, stderr], source.into()))
}

/// The helper's half: the request, and the program's stdin, stdout, stderr. The contents of the files are still to be read.
pub fn receive_request(socket: &UnixStream) -> io::Result<(Request, Stdio)> {
    let stdio = sys::receive_fds(socket)?;
    Ok((read_message(socket)?, stdio))
}
