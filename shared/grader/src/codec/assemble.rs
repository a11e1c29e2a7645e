//! Nodes back into values.

use super::{CodecError, MAX_DEPTH, MAX_NODES, Node};
use crate::int::Int;
use crate::value::Value;

/// A container that waits for elements.
struct Open {
    kind: Node,
    wanted: usize,
    items: Vec<Value>,
}

impl Open {
    fn close(self) -> Value {
        let mut items = self.items.into_iter();
        match self.kind {
            Node::Tuple(_) => Value::Tuple(items.collect()),
            Node::List(_) => Value::List(items.collect()),
            Node::Set(_) => Value::Set(items.collect()),
            Node::Frozenset(_) => Value::FrozenSet(items.collect()),
            Node::Record(type_name, names) => {
                Value::Record { type_name, fields: names.into_iter().zip(items).collect() }
            }
            _ => {
                let mut pairs = Vec::with_capacity(items.len() / 2);
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
        let mut complete = if let Some(wanted) = node.wanted() {
            if wanted > total {
                return Err(CodecError::Shape("a count larger than the frame"));
            }
            if stack.len() >= MAX_DEPTH {
                return Err(CodecError::TooLarge);
            }
            let open = Open { kind: node, wanted, items: Vec::new() };
            if wanted > 0 {
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
        Node::Range(_, _, 0) => return Err(CodecError::Shape("a range without a step")),
        Node::Range(start, stop, step) => Value::Range(start, stop, step),
        Node::Enum(type_name, member) => Value::Enum { type_name, member },
        Node::Opaque(type_name) | Node::Handle(_, type_name) => Value::Opaque { type_name },
        Node::Builtin(_) => Value::Opaque { type_name: "type".to_owned() },
        Node::Tuple(_) | Node::List(_) | Node::Set(_) | Node::Frozenset(_) | Node::Dict(_) | Node::Record(..) => {
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

/// The same nodes once it is sure that they form one value, integers in decimal: what is passed on from one sandbox to the
/// other without being understood here.
pub fn checked(mut nodes: Vec<Node>) -> Result<Vec<Node>, CodecError> {
    assemble(nodes.clone())?;
    for node in &mut nodes {
        if let Node::Int(text) = node {
            *text = Int::parse(text).ok_or(CodecError::Shape("not an integer"))?.as_str().to_owned();
        }
    }
    Ok(nodes)
}
