//! What an answer of the server means: its error code first, which S3-compatible servers share, then the HTTP status.

use crate::BucketError;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use rollmill_store::StoreError;

/// Why a request was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no such bucket.
    NoBucket,
    /// There is no such object, rule or upload.
    Absent,
    /// The key or its secret is wrong: nothing else will work either.
    Keys(String),
    /// The key is good and may not do this.
    Denied(String),
    /// The server does not have this API.
    Unsupported(String),
    /// The name is taken.
    Taken,
    /// The bucket name belongs to another account.
    Foreign,
    /// The bucket is in another region.
    Region(String),
    /// The request is not accepted, and would not be accepted later.
    Refused(String),
    /// Anything that may pass.
    Transient(String),
}

impl Fault {
    /// Reads an error of any operation.
    pub(crate) fn of<E>(error: &SdkError<E, HttpResponse>) -> Fault
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let status = error.raw_response().map(|r| r.status().as_u16());
        let code = error.code().unwrap_or_default();
        let said = match (error.message(), status) {
            (Some(message), _) if !message.is_empty() => one_line(&format!("{code}: {message}")),
            (_, Some(status)) if code.is_empty() => format!("HTTP status {status}"),
            (_, Some(_)) => code.to_string(),
            (_, None) => innermost(error),
        };
        Fault::read(code, status, said)
    }

    fn read(code: &str, status: Option<u16>, said: String) -> Fault {
        match (code, status) {
            ("NoSuchBucket", _) => Fault::NoBucket,
            (
                "InvalidAccessKeyId"
                | "SignatureDoesNotMatch"
                | "InvalidToken"
                | "ExpiredToken"
                | "TokenRefreshRequired"
                | "RequestTimeTooSkewed"
                | "InvalidClientTokenId",
                _,
            ) => Fault::Keys(said),
            ("BucketAlreadyExists", _) => Fault::Foreign,
            ("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException", _) => {
                Fault::Region(said)
            }
            ("NotImplemented" | "MethodNotAllowed", _) | (_, Some(405 | 501)) => Fault::Unsupported(said),
            ("AccessDenied" | "AllAccessDisabled" | "AccountProblem", _) | (_, Some(401 | 403)) => Fault::Denied(said),
            (_, Some(404)) => Fault::Absent,
            (_, Some(409 | 412)) => Fault::Taken,
            (_, Some(301 | 307)) => Fault::Region(said),
            ("SlowDown" | "RequestTimeout" | "InternalError", _) => Fault::Transient(said),
            (_, Some(400..=499)) => Fault::Refused(said),
            _ => Fault::Transient(said),
        }
    }

    /// As the error that ends the command.
    pub(crate) fn into_error(self, address: &str, bucket: &str, what: &str) -> BucketError {
        let (what, bucket) = (what.to_string(), bucket.to_string());
        let store = address.to_string();
        match self {
            Fault::NoBucket => BucketError::Missing { bucket },
            Fault::Foreign => BucketError::Taken { bucket },
            Fault::Region(reason) => BucketError::Region { what, reason },
            Fault::Keys(reason) | Fault::Denied(reason) => StoreError::Denied { store, what, reason }.into(),
            Fault::Absent => BucketError::Refused { what, reason: "it is not there".into() },
            Fault::Taken => BucketError::Refused { what, reason: "the name is taken".into() },
            Fault::Unsupported(reason) | Fault::Refused(reason) => BucketError::Refused { what, reason },
            Fault::Transient(reason) => StoreError::Transient { store, what, reason }.into(),
        }
    }
}

/// What the socket said, without the wrappers.
fn innermost<E: std::error::Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    let text = last.to_string();
    one_line(&if text.is_empty() { DisplayErrorContext(error).to_string() } else { text })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: &str, status: u16) -> Fault {
        Fault::read(code, Some(status), code.into())
    }

    #[test]
    fn codes_come_before_statuses() {
        assert_eq!(fault("NoSuchBucket", 404), Fault::NoBucket);
        assert_eq!(fault("NoSuchLifecycleConfiguration", 404), Fault::Absent);
        assert_eq!(fault("SignatureDoesNotMatch", 403), Fault::Keys("SignatureDoesNotMatch".into()));
        assert_eq!(fault("AccessDenied", 403), Fault::Denied("AccessDenied".into()));
        assert_eq!(fault("", 403), Fault::Denied(String::new()));
        assert_eq!(fault("NotImplemented", 501), Fault::Unsupported("NotImplemented".into()));
        assert_eq!(fault("XNotImplemented", 501), Fault::Unsupported("XNotImplemented".into()));
        assert_eq!(fault("PreconditionFailed", 412), Fault::Taken);
        assert_eq!(fault("BucketAlreadyExists", 409), Fault::Foreign);
        assert_eq!(fault("PermanentRedirect", 301), Fault::Region("PermanentRedirect".into()));
        assert_eq!(fault("InvalidBucketName", 400), Fault::Refused("InvalidBucketName".into()));
        assert_eq!(fault("SlowDown", 503), Fault::Transient("SlowDown".into()));
        assert_eq!(Fault::read("", None, "refused".into()), Fault::Transient("refused".into()));
    }
}
