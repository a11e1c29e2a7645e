//! Values into nodes.

use super::{CodecError, MAX_DEPTH, MAX_NODES, Node};
use crate::value::Value;

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
        Value::Range(start, stop, step) => (Node::Range(*start, *stop, *step), None),
        Value::Enum { type_name, member } => (Node::Enum(type_name.clone(), member.clone()), None),
        Value::Record { type_name, fields } => {
            (Node::Record(type_name.clone(), fields.iter().map(|(name, _)| name.clone()).collect()), None)
        }
        Value::Opaque { type_name } => return Err(CodecError::Opaque(type_name.clone())),
    };
    nodes.push(node);
    for item in items.into_iter().flatten() {
        flatten_into(item, depth + 1, nodes)?;
    }
    match value {
        Value::Dict(pairs) => pairs.iter().try_for_each(|(k, v)| {
            flatten_into(k, depth + 1, nodes)?;
            flatten_into(v, depth + 1, nodes)
        }),
        Value::Record { fields, .. } => fields.iter().try_for_each(|(_, v)| flatten_into(v, depth + 1, nodes)),
        _ => Ok(()),
    }
}

/// Python's spelling of a float, which reads back to the same bits.
fn float_text(x: f64) -> String {
    if x.is_nan() { "nan".to_owned() } else { format!("{x:?}") }
}
