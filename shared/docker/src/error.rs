//! What the client library says, as an error of a sandbox: retry, or stop the run.
use bollard::errors::Error;
use rollmill_sandbox::SandboxError;

/// Turns an error of a request into one of ours. `what` is said first: "make a container".
pub fn asked(what: &str) -> impl FnOnce(Error) -> SandboxError {
    let what = what.to_string();
    move |error| match error {
        // a container that vanished or is on its way out (a restarted daemon): another one may do
        Error::DockerResponseServerError { status_code: 404 | 409, message } => failed(&what, &message),
        // what else the daemon calls our fault stays wrong when repeated
        Error::DockerResponseServerError { status_code: 400..500, message } => {
            SandboxError::DaemonRefused { what: format!("{what}: {}", one_line(&message)) }
        }
        Error::DockerResponseServerError { message, .. } => failed(&what, &message),
        other => failed(&what, &other.to_string()),
    }
}

/// A failure of the daemon that may pass.
pub fn failed(what: &str, why: &str) -> SandboxError {
    SandboxError::DaemonFailed { what: format!("{what}: {}", one_line(why)) }
}

/// Whether the thing asked about is not there.
pub fn is_absent(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// Some daemons repeat the whole request.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_stops_and_a_failure_is_tried_again() {
        let said = |status_code| Error::DockerResponseServerError { status_code, message: "no\n such".into() };
        let refused = asked("make a container")(said(400));
        assert!(!refused.is_transient());
        assert!(refused.to_string().ends_with("make a container: no such"), "{refused}");
        assert!(asked("x")(said(500)).is_transient() && asked("x")(said(409)).is_transient());
        assert!(asked("x")(Error::RequestTimeoutError).is_transient());
        assert!(is_absent(&said(404)) && !is_absent(&said(500)));
    }
}
