//! The S3 API in memory: whole objects, create-only puts, listings in pages, bulk deletes, multipart uploads.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use object_store::client::{HttpResponse, HttpResponseBody};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What sets a server apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// It overwrites although it was asked to create only.
    pub ignores_if_none_match: bool,
    /// It answers the first so many create-only puts with 409, as a server does in the middle of a race.
    pub conflicts: usize,
    /// It answers puts with 200 and an ETag, and stores nothing.
    pub lies: bool,
}

/// A server of one bucket.
#[derive(Debug, Default)]
pub struct Server {
    habits: Habits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Bytes>,
    uploads: BTreeMap<String, BTreeMap<usize, Bytes>>,
    started: usize,
    conflicts: usize,
}

/// Objects a page, as on S3.
const PAGE: usize = 1000;

impl Server {
    /// A server with habits.
    pub fn new(habits: Habits) -> Server {
        Server { habits, state: Mutex::new(State { conflicts: habits.conflicts, ..State::default() }) }
    }

    // Objects stay whole whatever panicked beside them.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All objects, by their name in the bucket.
    pub fn objects(&self) -> BTreeMap<String, Bytes> {
        self.state().objects.clone()
    }

    /// Answers a request.
    pub fn handle(&self, request: &Request<Bytes>) -> HttpResponse {
        let query = query(request.uri().query().unwrap_or_default());
        let name = request.uri().path().strip_prefix("/bucket").unwrap_or_default().trim_start_matches('/').to_string();
        let mut state = self.state();
        match (request.method(), query.get("uploadId")) {
            (&Method::POST, _) if query.contains_key("delete") => delete_all(&mut state, request.body()),
            (&Method::POST, _) if query.contains_key("uploads") => {
                state.started += 1;
                let id = format!("upload-{}", state.started);
                state.uploads.insert(id.clone(), BTreeMap::new());
                let xml =
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
                reply(StatusCode::OK, Bytes::from(xml))
            }
            (&Method::PUT, Some(id)) => {
                let number = query.get("partNumber").and_then(|n| n.parse().ok()).unwrap_or(0);
                let Some(parts) = state.uploads.get_mut(id) else {
                    return error(StatusCode::NOT_FOUND, "NoSuchUpload");
                };
                parts.insert(number, request.body().clone());
                reply(StatusCode::OK, Bytes::new())
            }
            (&Method::POST, Some(id)) => {
                let Some(parts) = state.uploads.remove(id) else { return error(StatusCode::NOT_FOUND, "NoSuchUpload") };
                let whole: Vec<u8> = parts.into_values().flatten().collect();
                state.objects.insert(name, Bytes::from(whole));
                let xml = "<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>";
                reply(StatusCode::OK, Bytes::from_static(xml.as_bytes()))
            }
            (&Method::DELETE, Some(id)) => {
                state.uploads.remove(id);
                reply(StatusCode::NO_CONTENT, Bytes::new())
            }
            (&Method::PUT, None) => self.put(&mut state, name, request),
            (&Method::GET, None) if query.contains_key("list-type") => list(&state, &query),
            (&Method::GET | &Method::HEAD, None) => match state.objects.get(&name) {
                Some(bytes) => reply(StatusCode::OK, bytes.clone()),
                None => error(StatusCode::NOT_FOUND, "NoSuchKey"),
            },
            _ => error(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
        }
    }

    fn put(&self, state: &mut State, name: String, request: &Request<Bytes>) -> HttpResponse {
        let create_only = request.headers().contains_key("if-none-match");
        if create_only && state.conflicts > 0 {
            state.conflicts -= 1;
            return error(StatusCode::CONFLICT, "ConditionalRequestConflict");
        }
        if create_only && !self.habits.ignores_if_none_match && state.objects.contains_key(&name) {
            return error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        if !self.habits.lies {
            state.objects.insert(name, request.body().clone());
        }
        reply(StatusCode::OK, Bytes::new())
    }
}

fn delete_all(state: &mut State, body: &Bytes) -> HttpResponse {
    let text = String::from_utf8_lossy(body);
    let mut answer = "<DeleteResult>".to_string();
    for rest in text.split("<Key>").skip(1) {
        let name = rest.split("</Key>").next().unwrap_or_default();
        state.objects.remove(name);
        answer += &format!("<Deleted><Key>{name}</Key></Deleted>");
    }
    reply(StatusCode::OK, Bytes::from(answer + "</DeleteResult>"))
}

fn list(state: &State, query: &BTreeMap<String, String>) -> HttpResponse {
    let empty = String::new();
    let prefix = query.get("prefix").unwrap_or(&empty);
    let after = query.get("continuation-token").or(query.get("start-after")).unwrap_or(&empty);
    let mut found = state.objects.iter().filter(|(name, _)| name.starts_with(prefix) && *name > after);
    let page: Vec<_> = found.by_ref().take(PAGE).collect();
    let mut xml = "<ListBucketResult>".to_string();
    for (name, bytes) in &page {
        xml += &format!(
            "<Contents><Key>{name}</Key><Size>{}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
            bytes.len()
        );
    }
    if let (Some(_), Some((last, _))) = (found.next(), page.last()) {
        xml += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
    }
    reply(StatusCode::OK, Bytes::from(xml + "</ListBucketResult>"))
}

fn error(status: StatusCode, code: &str) -> HttpResponse {
    reply(status, Bytes::from(format!("<Error><Code>{code}</Code></Error>")))
}

fn reply(status: StatusCode, body: Bytes) -> HttpResponse {
    let etag = format!("\"{}\"", &hex::encode(Sha256::digest(&body))[..32]);
    let response = http::Response::builder()
        .status(status)
        .header("ETag", etag)
        .header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        .header("Content-Length", body.len());
    // Statuses and headers above are valid ones.
    response
        .body(HttpResponseBody::from(body))
        .unwrap_or_else(|_| HttpResponse::new(HttpResponseBody::from(Bytes::new())))
}

/// Query parameters, decoded.
fn query(text: &str) -> BTreeMap<String, String> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    };
    text.split('&').filter(|p| !p.is_empty()).map(pair).collect()
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
