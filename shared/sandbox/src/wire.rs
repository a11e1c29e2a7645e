//! What the caller and the helper say to each other over one socket.
//!
//! In one direction a [`Request`] as JSON behind its length, three descriptors (stdin, stdout, stderr of the program) riding
//! on the first byte, then the bytes of the files. In the other [`Reply`] messages, JSON behind their length. When the
//! caller's side closes, for whatever reason, the helper kills the sandbox.
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroup::CgroupPlan;
use crate::{Facts, Limits, sys};

/// A message longer than this is a bug, not a message.
const MAX_MESSAGE: u32 = 64 << 20;

/// One run, as the helper needs it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Paths under /work and lengths; the contents follow the message in this order.
    pub files: Vec<(String, u64)>,
    pub limits: Limits,
    pub rootfs: PathBuf,
    /// Host uid and gid the sandbox's user is mapped to.
    pub host_uid: u32,
    pub host_gid: u32,
    /// Whether the caller is root: then supplementary groups are dropped and the host uid differs from the caller's.
    pub root: bool,
    pub cgroup: CgroupPlan,
}

/// What the helper answers: `Started`, then `Done`; or `Failed` at any point.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    Started,
    Failed { what: String, errno: i32, cgroup: bool },
    Done(Facts),
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
pub fn send_request(
    socket: &UnixStream,
    request: &Request,
    files: &[(String, Vec<u8>)],
    stdio: [&OwnedFd; 3],
) -> io::Result<()> {
    sys::send_fds(socket, stdio)?;
    write_message(socket, request)?;
    let mut socket = socket;
    files.iter().try_for_each(|(_, bytes)| socket.write_all(bytes))
}

/// The helper's half: the request, the contents of its files, and the program's stdin, stdout, stderr.
pub fn receive_request(socket: &UnixStream) -> io::Result<(Request, Vec<Vec<u8>>, [OwnedFd; 3])> {
    let stdio = sys::receive_fds(socket)?;
    let request: Request = read_message(socket)?;
    let mut contents = Vec::with_capacity(request.files.len());
    for (_, length) in &request.files {
        let mut bytes = Vec::new();
        socket.take(*length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != *length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        contents.push(bytes);
    }
    Ok((request, contents, stdio))
}
