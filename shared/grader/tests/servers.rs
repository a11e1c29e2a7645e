//! Tier T1 servers in a real sandbox: honest ones, broken ones, hostile ones beside the relay.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::{Died, Passed, SyntaxError, Timeout, Wrong};
use rollmill_grader::SuiteResult;
use rollmill_grader::t1::{Language, ServerOptions, grade_servers, parse_sessions};
use sandboxed::{outcomes, sandbox, settled};
use std::time::Duration;

/// A counter: POST adds, GET reads, anything else is not found.
const COUNTER: &str = r#"
import http.server, json, os
total = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path == "/total": self.reply(200, {"total": total, "who": self.headers.get("X-Who")})
        else: self.reply(404, {"error": "not found"})
    def do_POST(self):
        global total
        total += int(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(201, {"total": total})
class Server(http.server.HTTPServer):
    def server_bind(self):  # no look-up of a host name
        http.server.socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]
server = Server(("127.0.0.1", int(os.environ["PORT"])), Handler)
server.serve_forever()
"#;

const SESSIONS: &str = r#"[
  [{"path": "/total", "headers": {"X-Who": "me"}, "answer": "{\"who\": \"me\", \"total\": 0}", "answer_headers": {"content-type": "application/json"}},
   {"method": "POST", "path": "/", "body": "5", "status": 201, "answer": "{\"total\": 5}"},
   {"method": "POST", "path": "/", "body": "-2", "status": 201, "answer": "{\"total\": 3}"},
   {"path": "/total", "answer": "{\"who\": null, \"total\": 3}"}],
  [{"path": "/none", "status": 404, "answer": "{\"error\": \"not found\"}"},
   {"path": "/total", "answer": "{\"who\": null, \"total\": 0}"}]]"#;

fn options() -> ServerOptions {
    let seconds = Duration::from_secs;
    ServerOptions { start: seconds(5), per_request: seconds(2), cpu: seconds(4), ..ServerOptions::default() }
}

fn graded(source: &str) -> SuiteResult {
    graded_in(source, SESSIONS, &options())
}

fn graded_in(source: &str, sessions: &str, opts: &ServerOptions) -> SuiteResult {
    let sessions = parse_sessions(sessions).unwrap();
    let (sandbox, solution) = (sandbox(), Language::Python.solution(source));
    settled(|| grade_servers(sandbox, &solution, Language::Python, &sessions, opts)).unwrap()
}

#[test]
fn honest_servers_pass() {
    let result = graded(COUNTER);
    assert_eq!(outcomes(&result), [Passed, Passed], "{result:?}");
    let slow = format!("import time, sys\ntime.sleep(1)\nprint('listening')\nprint('log', file=sys.stderr)\n{COUNTER}");
    assert_eq!(graded(&slow).passed, 2);
    let forked = format!("import os\nif os.fork(): os.wait()\n{COUNTER}");
    assert_eq!(graded(&forked).passed, 2);
}

#[test]
fn wrong_servers_are_told_what_they_answered() {
    let result = graded(&COUNTER.replace("total += int", "total -= int"));
    assert_eq!(outcomes(&result), [Wrong, Passed]);
    assert_eq!(result.verdicts[0].detail, "request 2, POST /: answered \"{\\\"total\\\": -5}\"");
    assert_eq!(outcomes(&graded(&COUNTER.replace("application/json", "text/plain"))), [Wrong, Passed]);
    assert_eq!(outcomes(&graded(&COUNTER.replace("404", "200"))), [Passed, Wrong]);
    assert_eq!(outcomes(&graded("def f(:")), [SyntaxError; 2]);
}

#[test]
fn servers_that_do_not_answer() {
    let raw = |reply: &str| {
        format!(
            "import os, socket, time\ns = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\ns.bind(('127.0.0.1', int(os.environ['PORT']))); s.listen(50)\nwhile True:\n    c, _ = s.accept()\n    c.settimeout(0.5)\n    try:\n        if not c.recv(65536): continue\n        {reply}\n    except OSError: pass\n    c.close()\n"
        )
    };
    let quick = ServerOptions {
        start: Duration::from_secs(3),
        per_request: Duration::from_secs(1),
        cpu: Duration::from_secs(2),
        ..options()
    };
    for (name, source, want) in [
        ("ends", "import os; os._exit(0)".to_owned(), Died),
        ("raises", "raise ValueError('x')".to_owned(), Died),
        ("never listens", "import time; time.sleep(1000)".to_owned(), Timeout),
        ("spins", "while True: pass".to_owned(), Timeout),
        ("hangs", raw("time.sleep(1000)"), Timeout),
        ("drips", raw("c.settimeout(None)\n        while True: c.sendall(b'x'); time.sleep(0.1)"), Timeout),
        ("closes", raw("c.close()"), Wrong),
        ("talks nonsense", raw("c.sendall(b'hello\\r\\n\\r\\n')"), Wrong),
        ("floods", raw("[c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n' + b'x' * 60000) for _ in range(200)]"), Wrong),
        ("floods headers", raw("c.sendall(b'HTTP/1.1 200 OK\\r\\n' + b'a: b\\r\\n' * 60000)"), Wrong),
        (
            "lies about length",
            raw("c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 99999999999\\r\\n\\r\\nx')"),
            Wrong,
        ),
    ] {
        let result = graded_in(&source, r#"[[{"path": "/total", "answer": "{}"}]]"#, &quick);
        assert_eq!(outcomes(&result), [want], "{name}: {result:?}");
    }
}

/// What a server could do to the relay beside it. None may pass a session that its answers do not pass; those that leave it
/// alone in the second session may pass that one.
const HOSTILE: &[(&str, &str)] = &[
    ("kills everything", "import os\nos.kill(-1, 9)\n"),
    ("stops the relay", "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n"),
    (
        "writes frames to whatever it can open",
        "import glob, json, os\nfor seq in range(3):\n    b = json.dumps({'seq': seq, 'kind': 'response', 'status': 200, 'headers': [], 'body': '{\"total\": 0}'}).encode()\n    for p in glob.glob('/proc/[0-9]*/fd/*') + ['/dev/stdout', '/dev/stderr']:\n        try: os.write(os.open(p, os.O_WRONLY | os.O_NONBLOCK), len(b).to_bytes(4, 'big') + b)\n        except OSError: pass\n",
    ),
    (
        "looks into the relay for what is wanted",
        "import glob, os\nfound = []\nfor p in glob.glob('/proc/[0-9]*/mem') + glob.glob('/proc/[0-9]*/environ') + glob.glob('/pristine/**', recursive=True):\n    try: found.append(open(p, 'rb').read(1 << 16))\n    except OSError: pass\nassert not any(b'\"total\": 3' in f for f in found)\n",
    ),
];

#[test]
fn hostile_servers_earn_what_their_answers_earn() {
    let wrong = COUNTER.replace("total += int", "total -= int");
    let plain = graded(&wrong);
    assert_eq!(outcomes(&plain), [Wrong, Passed]);
    for (name, attack) in HOSTILE {
        let result = graded(&format!("{attack}\n{wrong}"));
        assert_ne!(result.verdicts[0].outcome, Passed, "{name}: {result:?}");
    }
    let looks = graded(&format!("{}\n{wrong}", HOSTILE[3].1));
    assert_eq!(outcomes(&looks), [Wrong, Passed], "it found nothing: {looks:?}");
}

#[test]
fn sessions_share_nothing() {
    let keeps = COUNTER
        .replace("total = 0\n", "total = 1 if os.path.exists('/tmp/seen') else 0\nopen('/tmp/seen', 'w').close()\n");
    assert_eq!(graded(&keeps).passed, 2);
}
