//! What init tells the helper over the status pipe: length-prefixed JSON, written whole (a pipe keeps 4 KiB together).
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub enum Status {
    /// Everything is set up; the program is about to start.
    Ready,
    /// A step failed and init ends.
    Failed { what: String, errno: i32 },
    /// A warm program was forked and waits for its limits; its pid where the helper lives.
    Forked { pid: i32 },
    /// The program ended with this wait status, and init ends.
    Exited { code: i32 },
}

impl Status {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = crate::wire::write_message(&mut bytes, self); // a vector takes any bytes
        bytes
    }

    pub fn read(from: impl Read) -> io::Result<Status> {
        crate::wire::read_message(from)
    }
}
