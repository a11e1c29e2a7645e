//! The container: header, metadata, tensor table (GGUF specification, version 3, little-endian).
//!
//! What must hold: no read leaves the file, whatever it claims; strings and arrays are never longer than the file.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::dequantize::Quant;
use crate::ModelError;

/// A metadata value; integers of every width become one.
#[derive(Debug, Clone)]
pub enum Value {
    Int(i128),
    Float(f64),
    Bool,
    Text(String),
    Array(Vec<Value>),
}

impl Value {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(n) => i64::try_from(*n).ok(),
            _ => None,
        }
    }
}

/// Where a tensor lies.
#[derive(Debug)]
pub struct Info {
    /// Rows first, as in Hugging Face (GGUF stores columns first).
    pub shape: Vec<usize>,
    pub kind: Quant,
    offset: usize,
}

/// A line of the tensor table: name, shape, ggml type, offset.
type Row = (String, Vec<usize>, u32, usize);

/// A parsed file over its bytes.
pub struct Gguf<'a> {
    pub path: &'a Path,
    metadata: HashMap<String, Value>,
    pub tensors: BTreeMap<String, Info>,
    data: &'a [u8],
}

impl<'a> Gguf<'a> {
    pub fn parse(path: &'a Path, bytes: &'a [u8]) -> Result<Gguf<'a>, ModelError> {
        let broken = |detail: &str| ModelError::bad(path, format!("{detail}; fetch the file again"));
        let mut cursor = Cursor { rest: bytes };
        if cursor.take(4) != Some(b"GGUF") {
            return Err(broken("is no GGUF file"));
        }
        if cursor.u32() != Some(3) {
            return Err(ModelError::bad(path, "is not GGUF version 3; convert it with a current llama.cpp"));
        }
        let mut parse = || -> Option<(HashMap<String, Value>, Vec<Row>)> {
            let (tensors, entries) = (cursor.u64()?, cursor.u64()?);
            let metadata = (0..entries).map(|_| cursor.entry()).collect::<Option<_>>()?;
            let tensors = (0..tensors).map(|_| cursor.tensor()).collect::<Option<_>>()?;
            Some((metadata, tensors))
        };
        let (metadata, table) = parse().ok_or_else(|| broken("is cut off or malformed"))?;
        let alignment = metadata.get("general.alignment").and_then(Value::as_i64).unwrap_or(32).clamp(1, 1 << 20);
        let start = (bytes.len() - cursor.rest.len()).next_multiple_of(alignment as usize);
        let data = bytes.get(start..).ok_or_else(|| broken("is cut off before its data"))?;
        let mut tensors = BTreeMap::new();
        for (name, shape, code, offset) in table {
            let unknown = || format!("{name} has ggml type {code}; use a file in F32, F16, BF16, Q8_0 or Q4_1");
            let kind = Quant::of(code).ok_or_else(|| ModelError::bad(path, unknown()))?;
            tensors.insert(name, Info { shape, kind, offset });
        }
        Ok(Gguf { path, metadata, tensors, data })
    }

    /// The raw bytes of a tensor, exactly as many as its shape needs.
    pub fn bytes_of(&self, name: &str, info: &Info) -> Result<&'a [u8], ModelError> {
        let count = info.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let size = count.and_then(|n| info.kind.bytes(n));
        let end = size.and_then(|size| info.offset.checked_add(size));
        let bytes = end.and_then(|end| self.data.get(info.offset..end));
        bytes.ok_or_else(|| self.bad(format!("ends inside the tensor {name}; fetch the file again")))
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    pub fn string(&self, key: &str) -> Result<&str, ModelError> {
        self.get(key).and_then(Value::as_str).ok_or_else(|| self.lacks(key, "text"))
    }

    pub fn integer(&self, key: &str) -> Result<i64, ModelError> {
        self.get(key).and_then(Value::as_i64).ok_or_else(|| self.lacks(key, "integer"))
    }

    pub fn float(&self, key: &str) -> Result<f64, ModelError> {
        match self.get(key) {
            Some(Value::Float(x)) => Ok(*x),
            _ => Err(self.lacks(key, "number")),
        }
    }

    pub fn array(&self, key: &str) -> Result<&[Value], ModelError> {
        match self.get(key) {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(self.lacks(key, "list")),
        }
    }

    pub fn bad(&self, detail: String) -> ModelError {
        ModelError::bad(self.path, detail)
    }

    fn lacks(&self, key: &str, what: &str) -> ModelError {
        self.bad(format!("lacks the {what} {key}; convert the model again with a current llama.cpp"))
    }
}

/// Reads forward; None at the end of the bytes.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.number().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u64()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn entry(&mut self) -> Option<(String, Value)> {
        let (key, kind) = (self.text()?, self.u32()?);
        Some((key, self.value(kind, 0)?))
    }

    fn value(&mut self, kind: u32, depth: u32) -> Option<Value> {
        Some(match kind {
            0 => Value::Int(u8::from_le_bytes(self.number()?).into()),
            1 => Value::Int(i8::from_le_bytes(self.number()?).into()),
            2 => Value::Int(u16::from_le_bytes(self.number()?).into()),
            3 => Value::Int(i16::from_le_bytes(self.number()?).into()),
            4 => Value::Int(self.u32()?.into()),
            5 => Value::Int(i32::from_le_bytes(self.number()?).into()),
            6 => Value::Float(shortest(f32::from_le_bytes(self.number()?))),
            7 => self.number::<1>().map(|_| Value::Bool)?,
            8 => Value::Text(self.text()?),
            9 if depth < 2 => {
                let (kind, count) = (self.u32()?, self.u64()?);
                Value::Array((0..count).map(|_| self.value(kind, depth + 1)).collect::<Option<_>>()?)
            }
            10 => Value::Int(self.u64()?.into()),
            11 => Value::Int(i64::from_le_bytes(self.number()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.number()?)),
            _ => return None,
        })
    }

    fn tensor(&mut self) -> Option<Row> {
        let (name, dimensions) = (self.text()?, self.u32()?);
        if dimensions > 4 {
            return None;
        }
        let shape: Option<Vec<usize>> = (0..dimensions).map(|_| usize::try_from(self.u64()?).ok()).collect();
        let mut shape = shape?;
        shape.reverse();
        Some((name, shape, self.u32()?, usize::try_from(self.u64()?).ok()?))
    }
}

/// The decimal a person wrote: 1e-5 stored as f32 comes back as 1e-5, not 9.99999974e-6.
fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}
