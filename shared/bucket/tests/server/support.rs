//! The server and keys of a test, and a proxy before it that lacks some of its interfaces.

use rollmill_store::{Nonce, S3Settings};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The server and its keys; none skips the test, or fails it where `ROLLMILL_REQUIRE` names s3.
pub fn server() -> Option<S3Settings> {
    let read = |name: &str| std::env::var(name).ok();
    if read("ROLLMILL_TEST_S3").is_none() {
        let required = read("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|s| s == "s3");
        assert!(!required, "ROLLMILL_REQUIRE names s3, but ROLLMILL_TEST_S3 gives no bucket");
        eprintln!("skipped: no S3 server (ROLLMILL_TEST_S3 is not set)");
        return None;
    }
    Some(S3Settings {
        endpoint: read("AWS_ENDPOINT_URL"),
        access_key: read("AWS_ACCESS_KEY_ID"),
        secret_key: read("AWS_SECRET_ACCESS_KEY"),
        ..S3Settings::default()
    })
}

/// The name of a bucket that nobody has made.
pub fn fresh() -> String {
    format!("bucket-{}", Nonce::fresh())
}

/// The same server behind a proxy that answers requests naming one of `lacking` in their first line with the status and
/// body of `answer`.
pub fn lacking(settings: &S3Settings, lacking: &'static [&'static str], answer: (&str, &str)) -> S3Settings {
    let upstream = settings.endpoint.as_deref().unwrap().strip_prefix("http://").unwrap().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    let (status, body) = answer;
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nConnection: close\r\n");
    let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (upstream, answer) = (upstream.clone(), answer.clone());
            std::thread::spawn(move || pass(client.unwrap(), &upstream, lacking, &answer));
        }
    });
    S3Settings { endpoint, ..settings.clone() }
}

/// One request a connection. The signature holds: it is over the host the client knows, and that header goes through.
fn pass(mut client: TcpStream, upstream: &str, lacking: &[&str], answer: &str) {
    let (mut head, mut byte) = (Vec::new(), [0u8; 1]);
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let length =
        head.lines().filter_map(|l| l.split_once(": ")).find(|(k, _)| k.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0u8; length.map_or(0, |(_, v)| v.parse().unwrap())];
    client.read_exact(&mut body).unwrap();
    let (first, rest) = head.split_once("\r\n").unwrap();
    if lacking.iter().any(|name| first.contains(name)) {
        let _ = client.write_all(answer.as_bytes());
        return;
    }
    let mut server = TcpStream::connect(upstream).unwrap();
    server.write_all(format!("{first}\r\nConnection: close\r\n{rest}").as_bytes()).unwrap();
    server.write_all(&body).unwrap();
    let _ = std::io::copy(&mut server, &mut client);
}
