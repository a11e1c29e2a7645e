//! Servers that lack a part of the interface: the real one behind a proxy that answers for it.

use crate::support::{fresh, lacking, server};
use rollmill_bucket::{Answer, Bucket, Report, Wishes, prepare};
use rollmill_store::S3Settings;

const NOT_IMPLEMENTED: (&str, &str) =
    ("501 Not Implemented", "<Error><Code>NotImplemented</Code><Message>we do not have this</Message></Error>");
/// As a gateway answers that knows no errors of S3.
const NOT_ALLOWED: (&str, &str) = ("405 Method Not Allowed", "");
const DENIED: (&str, &str) =
    ("403 Forbidden", "<Error><Code>AccessDenied</Code><Message>not you, sorry</Message></Error>");

async fn report(settings: &S3Settings, address: &str) -> Report {
    let wishes = Wishes { create: true, versioning: false, abort_uploads_days: Some(7) };
    prepare(&Bucket::open(address, settings).await.unwrap(), &wishes).await.unwrap()
}

#[tokio::test]
async fn settings_that_a_server_lacks_are_said_and_no_error() {
    let Some(settings) = server() else { return };
    for answer in [NOT_IMPLEMENTED, NOT_ALLOWED] {
        let settings = lacking(&settings, &["lifecycle", "versioning"], answer);
        let report = report(&settings, &format!("s3://{}/exp1", fresh())).await;
        assert!(report.refusal().is_none(), "{report}");
        for name in ["bucket settings", "upload rule", "versioning"] {
            assert_eq!(report.answer(name), Some(&Answer::Unsupported), "{report}");
        }
        assert_eq!(report.answer("create-only write"), Some(&Answer::Yes), "{report}");
    }
}

#[tokio::test]
async fn settings_that_are_not_allowed_are_said_and_no_error() {
    let Some(settings) = server() else { return };
    let report =
        report(&lacking(&settings, &["lifecycle", "versioning"], DENIED), &format!("s3://{}/exp1", fresh())).await;
    assert!(report.refusal().is_none(), "{report}");
    assert_eq!(report.answer("bucket settings"), Some(&Answer::No), "{report}");
    assert_eq!(report.answer("upload rule"), Some(&Answer::No), "{report}");
    assert_eq!(report.answer("versioning"), Some(&Answer::Unknown), "{report}");
}

#[tokio::test]
async fn a_run_without_multipart_is_refused() {
    let Some(settings) = server() else { return };
    let report = report(&lacking(&settings, &["uploads"], NOT_IMPLEMENTED), &format!("s3://{}/exp1", fresh())).await;
    assert_eq!(report.answer("multipart"), Some(&Answer::Unsupported), "{report}");
    assert!(report.refusal().unwrap().to_string().contains("multipart"));
    // Nothing was set in a bucket that cannot be used.
    assert_eq!(report.answer("upload rule"), None);
}
