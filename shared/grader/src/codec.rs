//! Typed values on the wire between the trusted side and a worker in the sandbox.
//!
//! A value is a flat list of nodes in preorder (`[{"t":"list","v":2},{"t":"int","v":"1"},{"t":"none"}]`), so a frame's JSON
//! is never deeper than four levels whatever the value is, and [`assemble`] needs no recursion. A frame is a 4-byte
//! big-endian length and that many bytes of JSON.
//!
//! In: bytes that a hostile process wrote. Out: values within the caps, or an error. What must hold: no panic, no stack
//! overflow, memory bounded by a small multiple of the frame's length.

use crate::int::Int;
use crate::value::Value;
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
    /// name of the type
    Opaque(String),
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

/// A value as nodes in preorder.
pub fn flatten(value: &Value) -> Result<Vec<Node>, CodecError> {
    let mut nodes = Vec::new();
    flatten_into(value, 0, &mut nodes)?;
    Ok(nodes)
}

fn flatten_into(value: &Value, depth: usize, nodes: &mut Vec<Node>) -> Result<(), CodecError> {
    if depth > MAX_DEPTH || nodes.len() >= MAX_NODES {
        return Err(CodecError::TooLarge);
    }
    let count = |n: usize| u32::try_from(n).map_err(|_| CodecError::TooLarge);
    let (node, items) = match value {
        Value::None => (Node::None, None),
        Value::Bool(b) => (Node::Bool(*b), None),
        Value::Int(n) => (Node::Int(n.as_str().to_owned()), None),
        Value::Float(x) => (Node::Float(float_text(*x)), None),
        Value::Complex(re, im) => (Node::Complex(float_text(*re), float_text(*im)), None),
        Value::Str(s) => (Node::Str(s.clone()), None),
        Value::Bytes(b) => (Node::Bytes(b.iter().map(|b| format!("{b:02x}")).collect()), None),
        Value::Tuple(items) => (Node::Tuple(count(items.len())?), Some(items)),
        Value::List(items) => (Node::List(count(items.len())?), Some(items)),
        Value::Set(items) => (Node::Set(count(items.len())?), Some(items)),
        Value::FrozenSet(items) => (Node::Frozenset(count(items.len())?), Some(items)),
        Value::Dict(pairs) => (Node::Dict(count(pairs.len())?), None),
        Value::Opaque { type_name } => return Err(CodecError::Opaque(type_name.clone())),
    };
    nodes.push(node);
    for item in items.into_iter().flatten() {
        flatten_into(item, depth + 1, nodes)?;
    }
    if let Value::Dict(pairs) = value {
        for (k, v) in pairs {
            flatten_into(k, depth + 1, nodes)?;
            flatten_into(v, depth + 1, nodes)?;
        }
    }
    Ok(())
}

/// Python's spelling of a float, which reads back to the same bits.
fn float_text(x: f64) -> String {
    if x.is_nan() { "nan".to_owned() } else { format!("{x:?}") }
}

/// A container that waits for elements.
struct Open {
    kind: Node,
    wanted: usize,
    items: Vec<Value>,
}

impl Open {
    fn new(kind: Node) -> Option<Open> {
        let wanted = match kind {
            Node::Tuple(n) | Node::List(n) | Node::Set(n) | Node::Frozenset(n) => n as usize,
            Node::Dict(n) => n as usize * 2,
            _ => return None,
        };
        Some(Open { kind, wanted, items: Vec::new() })
    }

    fn close(self) -> Value {
        match self.kind {
            Node::Tuple(_) => Value::Tuple(self.items),
            Node::List(_) => Value::List(self.items),
            Node::Set(_) => Value::Set(self.items),
            Node::Frozenset(_) => Value::FrozenSet(self.items),
            _ => {
                let mut pairs = Vec::with_capacity(self.items.len() / 2);
                let mut items = self.items.into_iter();
                while let (Some(k), Some(v)) = (items.next(), items.next()) {
                    pairs.push((k, v));
                }
                Value::Dict(pairs)
            }
        }
    }
}

/// The value that a list of nodes stands for. Iterative: hostile nesting meets [`MAX_DEPTH`], not the stack's end.
pub fn assemble(nodes: Vec<Node>) -> Result<Value, CodecError> {
    if nodes.len() > MAX_NODES {
        return Err(CodecError::TooLarge);
    }
    let total = nodes.len();
    let mut stack: Vec<Open> = Vec::new();
    let mut done: Option<Value> = None;
    for node in nodes {
        if done.is_some() {
            return Err(CodecError::Shape("nodes behind the end"));
        }
        let mut complete = if let Some(open) = Open::new(node.clone()) {
            if open.wanted > total {
                return Err(CodecError::Shape("a count larger than the frame"));
            }
            if stack.len() >= MAX_DEPTH {
                return Err(CodecError::TooLarge);
            }
            if open.wanted > 0 {
                stack.push(open);
                continue;
            }
            open.close()
        } else {
            leaf(node)?
        };
        // Hand the value to the container that waits, and close every container that this fills.
        done = loop {
            let Some(mut top) = stack.pop() else { break Some(complete) };
            top.items.push(complete);
            if top.items.len() < top.wanted {
                stack.push(top);
                break None;
            }
            complete = top.close();
        };
    }
    done.ok_or(CodecError::Shape("nodes are missing"))
}

fn leaf(node: Node) -> Result<Value, CodecError> {
    Ok(match node {
        Node::None => Value::None,
        Node::Bool(b) => Value::Bool(b),
        Node::Int(text) => Value::Int(Int::parse(&text).ok_or(CodecError::Shape("not an integer"))?),
        Node::Float(text) => Value::Float(float(&text)?),
        Node::Complex(re, im) => Value::Complex(float(&re)?, float(&im)?),
        Node::Str(text) => Value::Str(text),
        Node::Bytes(text) => Value::Bytes(unhex(&text).ok_or(CodecError::Shape("not hexadecimal"))?),
        Node::Opaque(type_name) => Value::Opaque { type_name },
        Node::Tuple(_) | Node::List(_) | Node::Set(_) | Node::Frozenset(_) | Node::Dict(_) => {
            return Err(CodecError::Shape("a container is no leaf"));
        }
    })
}

fn float(text: &str) -> Result<f64, CodecError> {
    if text.len() > 64 {
        return Err(CodecError::Shape("not a float"));
    }
    text.parse().map_err(|_| CodecError::Shape("not a float"))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
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
            let _ = assemble(nodes);
        }
    }
}
