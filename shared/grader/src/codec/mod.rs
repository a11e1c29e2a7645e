//! Typed values on the wire between the trusted side and a worker in the sandbox.
//!
//! A value is a flat list of nodes in preorder (`[{"t":"list","v":2},{"t":"int","v":"1"},{"t":"none"}]`), so a frame's JSON
//! is never deeper than four levels whatever the value is, and [`assemble()`] needs no recursion. A frame is a 4-byte
//! big-endian length and that many bytes of JSON.
//!
//! In: bytes that a hostile process wrote. Out: values within the caps, or an error. What must hold: no panic, no stack
//! overflow, memory bounded by a small multiple of the frame's length.

mod assemble;
mod flatten;

pub use assemble::{assemble, checked};
pub use flatten::flatten;

use serde::{Deserialize, Serialize};

/// The longest frame that is read or written, in bytes.
pub const MAX_FRAME: usize = 16 << 20;
/// The most nodes in one value.
pub const MAX_NODES: usize = 1_000_000;
/// How deep a value may nest; a little more than [`crate::literal::MAX_DEPTH`], since arguments are wrapped in a tuple.
pub const MAX_DEPTH: usize = 110;

/// Why bytes are no frame, or a frame no value. From a worker this is a verdict; towards one it is a fault of the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A frame longer than [`MAX_FRAME`].
    #[error("frame of {0} bytes is over the limit")]
    FrameTooLong(usize),
    /// Not the JSON that was agreed on.
    #[error("malformed frame: {0}")]
    Malformed(String),
    /// More nodes than [`MAX_NODES`], or deeper than [`MAX_DEPTH`].
    #[error("value is too large or too deep")]
    TooLarge,
    /// The node list does not form one value.
    #[error("malformed value: {0}")]
    Shape(&'static str),
    /// Something that is not data cannot be sent.
    #[error("a {0} is not data")]
    Opaque(String),
}

/// One node of a value; containers carry the number of elements (pairs for a dict) that follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", content = "v", rename_all = "lowercase", deny_unknown_fields)]
pub enum Node {
    /// `None`
    None,
    /// `bool`
    Bool(bool),
    /// decimal digits, or hexadecimal behind `0x`
    Int(String),
    /// `repr` of the float
    Float(String),
    /// `repr` of both parts
    Complex(String, String),
    /// text
    Str(String),
    /// hexadecimal
    Bytes(String),
    /// number of elements
    Tuple(u32),
    /// number of elements
    List(u32),
    /// number of elements
    Set(u32),
    /// number of elements
    Frozenset(u32),
    /// number of pairs
    Dict(u32),
    /// start, stop and step
    Range(i64, i64, i64),
    /// name of the class, name of the member
    Enum(String, String),
    /// name of the class, names of its parts; their values follow
    Record(String, Vec<String>),
    /// name of the type
    Opaque(String),
    /// an object that stays in the worker: its number there, name of the type
    Handle(u64, String),
    /// a built-in type, by name
    Builtin(String),
}

impl Node {
    /// How many values follow that belong to it; none for a leaf.
    fn wanted(&self) -> Option<usize> {
        Some(match self {
            Node::Tuple(n) | Node::List(n) | Node::Set(n) | Node::Frozenset(n) => *n as usize,
            Node::Dict(n) => *n as usize * 2,
            Node::Record(_, names) => names.len(),
            _ => return None,
        })
    }
}

/// Puts a message into a frame.
pub fn frame<T: Serialize>(message: &T) -> Result<Vec<u8>, CodecError> {
    let body = serde_json::to_vec(message).map_err(|e| CodecError::Malformed(e.to_string()))?;
    let length = u32::try_from(body.len()).ok().filter(|n| *n as usize <= MAX_FRAME);
    let length = length.ok_or(CodecError::FrameTooLong(body.len()))?;
    let mut out = Vec::with_capacity(body.len() + 4);
    out.extend(length.to_be_bytes());
    out.extend(body);
    Ok(out)
}

/// Cuts a stream of bytes into frames.
#[derive(Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
}

impl FrameReader {
    /// Adds bytes as they arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The body of the next whole frame, or `None` until more bytes have come.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, CodecError> {
        let Some(header) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > MAX_FRAME {
            return Err(CodecError::FrameTooLong(length));
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        let rest = self.buffer.split_off(4 + length);
        let mut body = std::mem::replace(&mut self.buffer, rest);
        body.drain(..4);
        Ok(Some(body))
    }

    /// Whether bytes are left that no frame took.
    pub fn has_leftovers(&self) -> bool {
        !self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::tests::any_value;
    use proptest::prelude::*;

    #[test]
    fn hostile_nodes() {
        for (nodes, error) in [
            (vec![], CodecError::Shape("nodes are missing")),
            (vec![Node::None, Node::None], CodecError::Shape("nodes behind the end")),
            (vec![Node::List(2), Node::None], CodecError::Shape("nodes are missing")),
            (vec![Node::Record("P".into(), vec!["x".into()])], CodecError::Shape("nodes are missing")),
            (
                vec![Node::Record("P".into(), vec!["x".into(); 2]), Node::None, Node::None, Node::None],
                CodecError::Shape("nodes behind the end"),
            ),
            (vec![Node::Range(0, 1, 0)], CodecError::Shape("a range without a step")),
            (vec![Node::List(u32::MAX)], CodecError::Shape("a count larger than the frame")),
            (vec![Node::Dict(u32::MAX)], CodecError::Shape("a count larger than the frame")),
            (vec![Node::Int("1e5".into())], CodecError::Shape("not an integer")),
            (vec![Node::Bytes("é0".into())], CodecError::Shape("not hexadecimal")),
            (vec![Node::Float("0x1".into())], CodecError::Shape("not a float")),
            (vec![Node::List(1); MAX_DEPTH + 1], CodecError::TooLarge),
            (vec![Node::List(0); MAX_NODES + 1], CodecError::TooLarge),
        ] {
            assert_eq!(assemble(nodes), Err(error));
        }
        let mut deepest = vec![Node::Tuple(1); MAX_DEPTH];
        deepest.push(Node::None);
        assert!(assemble(deepest).is_ok());
    }

    #[test]
    fn nested_json_bomb_is_refused_by_the_parser() {
        let bomb = "[".repeat(1 << 20);
        assert!(serde_json::from_str::<Vec<Node>>(&bomb).is_err());
        let inside = format!(r#"[{{"t":"int","v":{}"#, "[".repeat(1 << 20));
        assert!(serde_json::from_str::<Vec<Node>>(&inside).is_err());
    }

    #[test]
    fn frames_are_cut_and_capped() {
        let whole = frame(&vec![Node::None, Node::Bool(true)]).unwrap();
        let mut reader = FrameReader::default();
        for byte in &whole[..whole.len() - 1] {
            reader.push(&[*byte]);
            assert_eq!(reader.take(), Ok(None));
        }
        reader.push(&[whole[whole.len() - 1], 9]);
        assert_eq!(reader.take().unwrap().unwrap(), &whole[4..]);
        assert!(reader.has_leftovers());
        let mut reader = FrameReader::default();
        reader.push(&[0xff; 4]);
        assert_eq!(reader.take(), Err(CodecError::FrameTooLong(0xffff_ffff)));
    }

    fn any_node() -> impl Strategy<Value = Node> {
        prop_oneof![
            Just(Node::None),
            any::<String>().prop_map(Node::Int),
            "-?[0-9.e]{0,5}".prop_map(Node::Float),
            "[0-9a-g]{0,6}".prop_map(Node::Bytes),
            (0u32..4).prop_map(Node::List),
            (0u32..4).prop_map(Node::Tuple),
            (0u32..3).prop_map(Node::Dict),
            any::<u32>().prop_map(Node::Set),
            prop::collection::vec(any::<String>(), 0..3).prop_map(|names| Node::Record("P".into(), names)),
            any::<(i64, i64, i64)>().prop_map(|(a, b, c)| Node::Range(a, b, c)),
            any::<(u64, String)>().prop_map(|(id, name)| Node::Handle(id, name)),
        ]
    }

    proptest! {
        #[test]
        fn there_and_back(value in any_value()) {
            let text = serde_json::to_string(&flatten(&value).unwrap()).unwrap();
            prop_assert_eq!(assemble(serde_json::from_str(&text).unwrap()).unwrap(), value);
        }

        #[test]
        fn no_bytes_panic(chunks in prop::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let mut reader = FrameReader::default();
            for chunk in chunks {
                reader.push(&chunk);
                while let Ok(Some(body)) = reader.take() {
                    if let Ok(nodes) = serde_json::from_slice(&body) {
                        let _ = assemble(nodes);
                    }
                }
            }
        }

        #[test]
        fn no_nodes_panic(nodes in prop::collection::vec(any_node(), 0..40)) {
            let value = assemble(nodes.clone());
            prop_assert_eq!(checked(nodes).is_ok(), value.is_ok());
            if let Ok(value) = value {
                let _ = (value.key(), value.to_literal(), value.truth(), value.elements());
            }
        }
    }
}
