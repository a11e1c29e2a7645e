//! Attacks that say themselves what they reached.
use rollmill_sandbox::Sandbox;

use crate::{Bait, Verdict, python, run, text};

/// What every source starts with: `attempt(f)` prints DONE, or DENIED and why. `call` is a raw system call, by its number on
/// x86-64 and on arm64. FILE, PORT, PATH, SOCKET and PID are the bait.
const PRELUDE: &str = r#"
import ctypes, os, socket, sys
FILE, PORT, PATH, SOCKET, PID = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == 'x86_64'
def call(x86, arm, *args):
    libc.syscall.restype = ctypes.c_long
    r = libc.syscall(ctypes.c_long(x86 if X86 else arm), *[ctypes.c_long(a) for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
def attempt(f):
    try:
        print('DONE', f())
    except BaseException as e:
        print('DENIED', type(e).__name__, e)
"#;

/// Mistakes of an attack's author, which are no denials.
const MISTAKES: [&str; 4] = ["NameError", "AttributeError", "SyntaxError", "TypeError"];

/// Runs a source that calls `attempt`.
pub fn ask(sandbox: &dyn Sandbox, bait: &Bait, source: &str) -> Verdict {
    let arguments = bait.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = run(sandbox, &python(&format!("{PRELUDE}{source}"), &arguments));
    let said = text(&done.stdout);
    if said.starts_with("DONE") {
        Verdict::Succeeded(said)
    } else if said.starts_with("DENIED") && !MISTAKES.iter().any(|m| said.contains(m)) {
        Verdict::Stopped
    } else {
        Verdict::Broken(format!("{said:?} {:?} {:?}", text(&done.stderr), done.facts))
    }
}
