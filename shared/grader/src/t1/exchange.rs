//! Cases of a server: sessions of requests, each with the answer that is wanted.
//!
//! In: the public JSON form, an array of sessions, each an array of objects: `path`, optional `method` (`GET`), `headers`
//! (name to text), `body`; and of the answer `status` (200), `answer_headers` (name to text, only those that matter), `answer`
//! (the body; without it any body will do), `checker` ([`Checker`]'s spelling, `json` by default where the wanted body is
//! JSON, else `tokens`). Out: sessions. What must hold: an error names the session, the request in it and the field; a
//! session that asks for no body and no header is refused.

use super::checker::Checker;
use crate::cases::CasesError;
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A request and the answer that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// `GET`, `POST` ...
    pub method: String,
    /// Path and query, from `/`.
    pub path: String,
    /// Headers of the request.
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    pub body: String,
    /// What must come. It never enters the sandbox.
    pub answer: Answer,
}

/// What an answer must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers that must be there with this text; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, if it matters.
    pub body: Option<String>,
    /// How the body is held against it; never [`Checker::Custom`].
    pub checker: Checker,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default = "get")]
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    answer_headers: BTreeMap<String, String>,
    answer: Option<String>,
    checker: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

fn ok() -> u16 {
    200
}

/// Reads the public JSON form; fields beyond it are left to the caller.
pub fn parse_sessions(json: &str) -> Result<Vec<Vec<Exchange>>, CasesError> {
    let sessions: Vec<Vec<Json>> = serde_json::from_str(json)?;
    sessions.into_iter().enumerate().map(|(index, rows)| session(index, rows)).collect()
}

fn session(index: usize, rows: Vec<Json>) -> Result<Vec<Exchange>, CasesError> {
    let mut exchanges = Vec::with_capacity(rows.len());
    for (at, row) in rows.into_iter().enumerate() {
        let fail = |field: &str, what: String| {
            let what = format!("request {at}: {what}");
            CasesError::Field { index, field: field.to_owned(), what }
        };
        let row: Row = serde_json::from_value(row).map_err(|e| fail("requests", e.to_string()))?;
        exchanges.push(exchange(row).map_err(|(field, what)| fail(field, what))?);
    }
    if exchanges.iter().all(|e| e.answer.body.is_none() && e.answer.headers.is_empty()) {
        let what = "no body and no header is asked for in the whole session: any server would pass".to_owned();
        return Err(CasesError::Field { index, field: "answer".to_owned(), what });
    }
    Ok(exchanges)
}

fn exchange(row: Row) -> Result<Exchange, (&'static str, String)> {
    let token = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b':');
    let one_line = |text: &str| text.bytes().all(|b| (b' '..=b'~').contains(&b));
    if !token(&row.method) {
        return Err(("method", format!("{:?} is no method", row.method)));
    }
    if !row.path.starts_with('/') || !row.path.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(("path", format!("{:?} must begin with / and hold no spaces: percent-encode it", row.path)));
    }
    for (field, headers) in [("headers", &row.headers), ("answer_headers", &row.answer_headers)] {
        if let Some((name, _)) = headers.iter().find(|(name, text)| !token(name) || !one_line(text)) {
            return Err((field, format!("{name:?} is no header of one line of ascii")));
        }
    }
    if !(100..600).contains(&row.status) {
        return Err(("status", format!("{} is no status", row.status)));
    }
    let is_json = row.answer.as_deref().is_some_and(|body| serde_json::from_str::<Json>(body).is_ok());
    let checker = match row.checker {
        None if is_json => Checker::Json,
        None => Checker::Tokens,
        Some(name) => name.parse().map_err(|e: super::UnknownChecker| ("checker", e.to_string()))?,
    };
    if checker == Checker::Custom {
        return Err(("checker", "a server's answers have no custom checker".to_owned()));
    }
    let lower = |(name, text): (String, String)| (name.to_ascii_lowercase(), text);
    Ok(Exchange {
        method: row.method,
        path: row.path,
        headers: row.headers.into_iter().collect(),
        body: row.body,
        answer: Answer {
            status: row.status,
            headers: row.answer_headers.into_iter().map(lower).collect(),
            body: row.answer,
            checker,
        },
    })
}

impl Answer {
    /// Why an answer is not what is wanted; it tells what came, not what was wanted.
    pub(super) fn refuses(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> Option<String> {
        if status != self.status {
            return Some(format!("answered status {status}"));
        }
        for (name, wanted) in &self.headers {
            let mut values = headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, text)| text.trim());
            match values.next() {
                Some(text) if text == wanted.trim() && values.next().is_none() => {}
                Some(text) => return Some(format!("answered the header {name}: {text:?}")),
                None => return Some(format!("answered without the header {name}")),
            }
        }
        let wanted = self.body.as_ref()?;
        (!self.checker.accepts(wanted, body)).then(|| format!("answered {:?}", String::from_utf8_lossy(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_form() {
        let json = r#"[[{"path": "/a?x=1", "answer": "{\"n\": 1}"},
            {"method": "POST", "path": "/", "headers": {"X-A": "b"}, "body": "hi", "status": 201, "answer_headers": {"Location": "/1"}}],
            [{"path": "/", "answer": "hello", "checker": "exact"}]]"#;
        let sessions = parse_sessions(json).unwrap();
        assert_eq!((sessions.len(), sessions[0].len()), (2, 2));
        assert_eq!((sessions[0][0].method.as_str(), sessions[0][0].answer.checker), ("GET", Checker::Json));
        assert_eq!(sessions[0][1].answer.headers, [("location".to_owned(), "/1".to_owned())]);
        assert_eq!(sessions[1][0].answer.checker, Checker::Exact);
    }

    #[test]
    fn errors_name_session_request_and_field() {
        for (bad, want) in [
            (r#"{}"#, "test case 1, field \"requests\": request 1: missing field `path`"),
            (r#"{"path": "x"}"#, "test case 1, field \"path\": request 1: \"x\" must begin with /"),
            (r#"{"path": "/ HTTP/1.1\r\n"}"#, "test case 1, field \"path\""),
            (r#"{"path": "/", "headers": {"a": "b\r\nc: d"}}"#, "test case 1, field \"headers\""),
            (r#"{"path": "/", "status": 99}"#, "test case 1, field \"status\""),
            (r#"{"path": "/", "answer": "", "checker": "custom"}"#, "test case 1, field \"checker\""),
        ] {
            let good = r#"{"path": "/", "answer": "x"}"#;
            let error = parse_sessions(&format!("[[{good}], [{good}, {bad}]]")).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
        assert!(parse_sessions(r#"[[{"path": "/"}]]"#).unwrap_err().to_string().contains("any server would pass"));
    }

    #[test]
    fn answers_are_compared() {
        let json = r#"[[{"path": "/", "status": 404, "answer": "{\"a\": 1}", "answer_headers": {"Content-Type": "application/json"}}]]"#;
        let answer = &parse_sessions(json).unwrap()[0][0].answer;
        let typed = |text: &str| vec![("content-TYPE".to_owned(), text.to_owned())];
        let good = typed("application/json");
        assert_eq!(answer.refuses(404, &good, b"{\"a\": 1.0}"), None);
        assert_eq!(answer.refuses(200, &good, b"{\"a\": 1}").unwrap(), "answered status 200");
        assert_eq!(answer.refuses(404, &good, b"{\"a\": 2}").unwrap(), "answered \"{\\\"a\\\": 2}\"");
        assert!(answer.refuses(404, &typed("text/html"), b"{\"a\": 1}").is_some());
        assert!(answer.refuses(404, &[good.clone(), good].concat(), b"{\"a\": 1}").is_some(), "said twice");
        assert!(answer.refuses(404, &[], b"{\"a\": 1}").is_some());
    }
}
