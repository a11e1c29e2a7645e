//! Lines of JSONL files, plain or gzipped, each with its place.

use flate2::read::GzDecoder;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest accepted line: nothing honest is larger, and a hostile file must not fill the memory.
const MAX_LINE: u64 = 16 << 20;

/// One line: where it stands and what it holds.
pub struct Line {
    /// `file:line`.
    pub place: String,
    /// The object, or why it is none.
    pub object: Result<Map<String, Value>, String>,
}

/// All files of a source, in order of name.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(path)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    let wanted = |p: &PathBuf| p.to_str().is_some_and(|p| p.ends_with(".jsonl") || p.ends_with(".jsonl.gz"));
    found.retain(wanted);
    found.sort();
    Ok(found)
}

/// Calls `each` for every non-empty line of `file`.
pub fn read(file: &Path, each: &mut impl FnMut(Line)) -> io::Result<()> {
    let raw = File::open(file)?;
    let gz = file.extension().is_some_and(|e| e == "gz");
    let reader: Box<dyn Read> = if gz { Box::new(GzDecoder::new(raw)) } else { Box::new(raw) };
    let mut reader = BufReader::new(reader);
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = format!("{}:{number}", file.display());
        let object = match serde_json::from_slice(&line) {
            _ if line.len() as u64 == MAX_LINE => Err(format!("the line is longer than {MAX_LINE} bytes")),
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err("the line is no JSON object".into()),
            Err(e) => Err(format!("no JSON ({e})")),
        };
        each(Line { place, object });
    }
}

/// Takes a text field out of an object.
pub fn take_text(object: &mut Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match object.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!("field {field:?} is no text")),
    }
}

/// Takes a text field that must be there.
pub fn need_text(object: &mut Map<String, Value>, field: &str) -> Result<String, String> {
    let text = take_text(object, field)?.filter(|t| !t.trim().is_empty());
    text.ok_or_else(|| format!("field {field:?} is missing"))
}

/// Takes a list of texts.
pub fn take_texts(object: &mut Map<String, Value>, field: &str) -> Result<Vec<String>, String> {
    let Some(value) = object.remove(field).filter(|v| !v.is_null()) else { return Ok(Vec::new()) };
    serde_json::from_value(value).map_err(|_| format!("field {field:?} is no list of texts"))
}
