//! Faults one layer below the store: an S3 server as an HTTP client of `object_store`, so that what `object_store` makes of
//! statuses, torn bodies and errors inside a 200 is in the picture.
//!
//! [`Server`] answers the part of the S3 API that is used here, from memory; it runs the same conformance suite as a real
//! server. [`Connector`] counts requests and answers the k-th wrongly.

mod server;

pub use server::{Habits, Server};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use rollmill_store::{Objects, S3Settings, StoreError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection.
    NoConnection,
    /// The request is answered, and the answer lost.
    AnswerLost,
    /// A status without an effect: 409, 429, 500, 503.
    Status(u16),
    /// A 500 although it happened.
    HappenedAnd500,
    /// 200, and the body is an error; nothing happened.
    ErrorInside200,
    /// The answer breaks off in the middle of its body.
    TornBody,
    /// A time-out; the request is carried out so many seconds later.
    LandsLater(u64),
}

/// All of them.
pub const FAULTS: [Fault; 11] = [
    Fault::NoConnection,
    Fault::AnswerLost,
    Fault::Status(409),
    Fault::Status(429),
    Fault::Status(500),
    Fault::Status(503),
    Fault::HappenedAnd500,
    Fault::ErrorInside200,
    Fault::TornBody,
    Fault::LandsLater(1),
    Fault::LandsLater(3600),
];

/// Which requests meet the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hits {
    Request(usize),
    All,
}

/// Hands `object_store` a client whose `k`-th request meets a fault.
#[derive(Clone, Debug)]
pub struct Connector {
    server: Arc<Server>,
    fault: Option<(Hits, Fault)>,
    count: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Connector {
    /// A connection to `server`.
    pub fn new(server: &Arc<Server>, fault: Option<(usize, Fault)>) -> Connector {
        let fault = fault.map(|(k, fault)| (Hits::Request(k), fault));
        Connector { server: server.clone(), fault, count: Arc::default(), seen: Arc::default() }
    }

    /// A connection on which every request meets the fault.
    pub fn always(server: &Arc<Server>, fault: Fault) -> Connector {
        Connector { fault: Some((Hits::All, fault)), ..Connector::new(server, None) }
    }

    /// A store over it.
    pub fn store(&self) -> Result<Objects, StoreError> {
        let key = || Some("key".to_string());
        let endpoint = Some("http://127.0.0.1:1".into());
        let settings = S3Settings { endpoint, access_key: key(), secret_key: key(), ..S3Settings::default() };
        Objects::s3_over("bucket", "run", &settings, Arc::new(self.clone()), 7)
    }

    /// Method and path of every request so far.
    pub fn requests(&self) -> Vec<String> {
        // The recording stays readable whatever panicked beside it.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[derive(Debug)]
struct Broken(&'static str);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Broken {}

fn fails(kind: HttpErrorKind, why: &'static str) -> HttpError {
    HttpError::new(kind, Broken(why))
}

fn answer(status: u16, body: &str) -> HttpResponse {
    let mut response = HttpResponse::new(HttpResponseBody::from(body.to_string()));
    // All statuses here are valid ones.
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let line = format!("{} {}", request.method(), request.uri());
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        let request = whole(request).await?;
        match self
            .fault
            .filter(|(hits, _)| *hits == Hits::All || *hits == Hits::Request(number))
            .map(|(_, fault)| fault)
        {
            None => Ok(self.server.handle(&request)),
            Some(Fault::NoConnection) => Err(fails(HttpErrorKind::Connect, "connection refused")),
            Some(Fault::AnswerLost) => {
                self.server.handle(&request);
                Err(fails(HttpErrorKind::Interrupted, "connection reset"))
            }
            Some(Fault::Status(status)) => Ok(answer(status, "<Error><Code>SlowDown</Code></Error>")),
            Some(Fault::HappenedAnd500) => {
                self.server.handle(&request);
                Ok(answer(500, "<Error><Code>InternalError</Code></Error>"))
            }
            Some(Fault::ErrorInside200) => Ok(answer(200, "<Error><Code>InternalError</Code></Error>")),
            Some(Fault::TornBody) => Ok(torn(self.server.handle(&request)).await),
            Some(Fault::LandsLater(seconds)) => {
                let server = self.server.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    server.handle(&request);
                });
                Err(fails(HttpErrorKind::Timeout, "timed out"))
            }
        }
    }
}

/// The request with its body as one piece.
async fn whole(request: HttpRequest) -> Result<http::Request<Bytes>, HttpError> {
    let (parts, body): (_, HttpRequestBody) = request.into_parts();
    Ok(http::Request::from_parts(parts, body.collect().await?.to_bytes()))
}

/// The same answer, broken off after half of its body.
async fn torn(response: HttpResponse) -> HttpResponse {
    let (parts, body) = response.into_parts();
    let whole = body.bytes().await.unwrap_or_default();
    let half = whole.slice(..whole.len() / 2);
    let pieces = [Ok(http_body::Frame::data(half)), Err(fails(HttpErrorKind::Interrupted, "connection reset"))];
    let body = HttpResponseBody::new(StreamBody::new(futures::stream::iter(pieces)));
    HttpResponse::from_parts(parts, body)
}
