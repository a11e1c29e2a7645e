//! Against the real SeaweedFS server that `infra/setup/weed.sh` starts; without it, skips by name.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod lacking;
mod support;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_s3::types::{
    BucketLifecycleConfiguration, ExpirationStatus, LifecycleExpiration, LifecycleRule, LifecycleRuleFilter,
};
use rollmill_bucket::{Answer, Bucket, BucketError, Report, Sweep, Swept, Wishes, prepare};
use rollmill_store::{S3Settings, StoreError};
use std::time::{Duration, SystemTime};
use support::{fresh, server};

/// A key of the same server that may only read and list.
fn reader(settings: &S3Settings) -> S3Settings {
    let pair = std::env::var("ROLLMILL_TEST_S3_READER").expect("weed.sh names a reader");
    let (id, secret) = pair.split_once(':').expect("the reader is id:secret");
    S3Settings { access_key: Some(id.into()), secret_key: Some(secret.into()), ..settings.clone() }
}

/// A client beside ours, for what others do to a bucket.
fn others(settings: &S3Settings) -> Client {
    let given = |value: &Option<String>| value.clone().expect("weed.sh sets it");
    let keys = Credentials::new(given(&settings.access_key), given(&settings.secret_key), None, None, "test");
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(keys)
        .endpoint_url(given(&settings.endpoint))
        .force_path_style(true);
    Client::from_conf(config.build())
}

const WISHES: Wishes = Wishes { create: true, versioning: false, abort_uploads_days: Some(7) };

async fn prepared(settings: &S3Settings, address: &str, wishes: &Wishes) -> Result<Report, BucketError> {
    prepare(&Bucket::open(address, settings).await?, wishes).await
}

fn note<'a>(report: &'a Report, name: &str) -> &'a str {
    &report.lines.iter().find(|l| l.name == name).expect("the line is in every report").note
}

#[tokio::test]
async fn a_bucket_is_made_only_when_asked_for_and_set_up_once() {
    let Some(settings) = server() else { return };
    let address = format!("s3://{}/exp1", fresh());
    let refused = prepared(&settings, &address, &Wishes { create: false, ..WISHES }).await.unwrap_err();
    assert!(matches!(refused, BucketError::Missing { .. }), "{refused}");
    assert!(matches!(
        prepared(&settings, &address, &Wishes { create: false, ..WISHES }).await,
        Err(BucketError::Missing { .. })
    ));
    let report = prepared(&settings, &address, &WISHES).await.unwrap();
    assert!(report.refusal().is_none(), "{report}");
    assert!(note(&report, "bucket").ends_with("made now"), "{report}");
    for right in ["list", "read", "create-only write", "delete", "multipart", "bucket settings"] {
        assert_eq!(report.answer(right), Some(&Answer::Yes), "{right}\n{report}");
    }
    let again = prepared(&settings, &address, &WISHES).await.unwrap();
    assert!(!note(&again, "bucket").contains("made"), "{again}");
    assert!(!note(&again, "upload rule").contains("added"), "{again}");
    // Nothing of the questions is left.
    let left = others(&settings).list_objects_v2().bucket(address.split('/').nth(2).unwrap()).send().await.unwrap();
    assert_eq!(left.key_count(), Some(0), "{left:?}");
}

#[tokio::test]
async fn versioning_is_turned_on_only_when_asked_for() {
    let Some(settings) = server() else { return };
    let address = format!("s3://{}/exp1", fresh());
    let report = prepared(&settings, &address, &WISHES).await.unwrap();
    assert_eq!(report.answer("versioning"), Some(&Answer::No), "{report}");
    let report = prepared(&settings, &address, &Wishes { versioning: true, ..WISHES }).await.unwrap();
    assert_eq!(report.answer("versioning"), Some(&Answer::Yes), "{report}");
    let report = prepared(&settings, &address, &WISHES).await.unwrap();
    assert_eq!(report.answer("versioning"), Some(&Answer::Yes), "it stays on: {report}");
}

#[tokio::test]
async fn rules_of_others_are_kept() {
    let Some(settings) = server() else { return };
    let (bucket, client) = (fresh(), others(&settings));
    client.create_bucket().bucket(&bucket).send().await.unwrap();
    let foreign = LifecycleRule::builder()
        .id("logs")
        .status(ExpirationStatus::Enabled)
        .filter(LifecycleRuleFilter::builder().prefix("logs/").build())
        .expiration(LifecycleExpiration::builder().days(30).build())
        .build()
        .unwrap();
    let rules = BucketLifecycleConfiguration::builder().rules(foreign).build().unwrap();
    client.put_bucket_lifecycle_configuration().bucket(&bucket).lifecycle_configuration(rules).send().await.unwrap();
    let read = async || {
        let found = client.get_bucket_lifecycle_configuration().bucket(&bucket).send().await.unwrap();
        found.rules().to_vec()
    };
    let before = read().await;
    assert_eq!(before.len(), 1);
    let report = prepared(&settings, &format!("s3://{bucket}/exp1"), &WISHES).await.unwrap();
    let after = read().await;
    assert!(before.iter().all(|rule| after.contains(rule)), "{before:?} {after:?}");
    let ours = after.iter().filter(|r| r.abort_incomplete_multipart_upload().is_some()).count();
    assert_eq!(ours == 1, report.answer("upload rule") == Some(&Answer::Yes), "{report} {after:?}");
    let none = Wishes { abort_uploads_days: None, ..WISHES };
    prepared(&settings, &format!("s3://{bucket}/exp2"), &none).await.unwrap();
    assert_eq!(read().await.len(), after.len());
}

#[tokio::test]
async fn keys_that_only_read_are_refused_and_wrong_ones_said() {
    let Some(settings) = server() else { return };
    let address = format!("s3://{}/exp1", fresh());
    prepared(&settings, &address, &WISHES).await.unwrap();
    let report = prepared(&reader(&settings), &address, &WISHES).await.unwrap();
    for (right, answer) in [
        ("list", Answer::Yes),
        ("read", Answer::Yes),
        ("create-only write", Answer::No),
        ("delete", Answer::No),
        ("multipart", Answer::No),
    ] {
        assert_eq!(report.answer(right), Some(&answer), "{right}\n{report}");
    }
    let refusal = report.refusal().unwrap().to_string();
    assert!(refusal.contains("create-only write") && refusal.contains("multipart") && !refusal.contains("delete"));
    let wrong = S3Settings { secret_key: Some("wrong".into()), ..settings.clone() };
    let said = prepared(&wrong, &address, &WISHES).await.unwrap_err();
    assert!(matches!(said, BucketError::Store(StoreError::Denied { .. })), "{said}");
    let said = prepared(&S3Settings { access_key: None, secret_key: None, ..settings }, &address, &WISHES).await;
    assert!(matches!(said, Err(BucketError::Store(StoreError::NoCredentials { .. }))));
}

#[tokio::test]
async fn abandoned_uploads_are_found_and_aborted() {
    let Some(settings) = server() else { return };
    let name = fresh();
    let address = format!("s3://{name}/exp1");
    prepared(&settings, &address, &WISHES).await.unwrap();
    let client = others(&settings);
    let start = async |key: &str| {
        let started = client.create_multipart_upload().bucket(&name).key(key).send().await.unwrap();
        let id = started.upload_id().unwrap().to_string();
        let part = client.upload_part().bucket(&name).key(key).upload_id(&id).part_number(1);
        part.body(aws_sdk_s3::primitives::ByteStream::from_static(b"part")).send().await.unwrap();
        id
    };
    let (a, b) = (start("exp1/checkpoints/a").await, start("exp1/checkpoints/b").await);
    // A sibling whose name begins alike is another run.
    start("exp10/checkpoints/c").await;
    let bucket = Bucket::open(&address, &settings).await.unwrap();
    // The year 2100: all are old.
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    let day = Duration::from_secs(86_400);
    let found = bucket.abandoned_uploads(day, later).await.unwrap();
    let mut ids: Vec<&str> = found.iter().map(|u| u.id.as_str()).collect();
    ids.sort_unstable();
    let mut expected = [a.as_str(), b.as_str()];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    // Before they were started none is old; and an age of a century spares them.
    assert!(bucket.abandoned_uploads(day, SystemTime::UNIX_EPOCH).await.unwrap().is_empty());
    assert!(bucket.abandoned_uploads(day * 36_500, later).await.unwrap().is_empty());
    assert_eq!(bucket.abort_uploads(&found, Sweep::default()).await.unwrap(), Swept { aborted: 2, gone: 0 });
    assert_eq!(bucket.abandoned_uploads(day, later).await.unwrap().len(), 2, "a dry sweep aborts nothing");
    assert_eq!(bucket.abort_uploads(&found, Sweep::Abort).await.unwrap(), Swept { aborted: 2, gone: 0 });
    assert!(bucket.abandoned_uploads(day, later).await.unwrap().is_empty());
    let left = client.list_multipart_uploads().bucket(&name).send().await.unwrap();
    assert_eq!(left.uploads().len(), 1, "the sibling's stays");
}

#[tokio::test]
async fn chunks_are_tagged_where_it_is_asked_for_and_nothing_else_is() {
    let Some(settings) = server() else { return };
    let bucket = fresh();
    let address = format!("s3://{bucket}/exp1");
    prepared(&settings, &address, &WISHES).await.unwrap();
    let client = others(&settings);
    for (tag_chunks, expected) in [(false, 0), (true, 1)] {
        let store = rollmill_store::open(&address, &S3Settings { tag_chunks, ..settings.clone() }).unwrap();
        for (name, tags) in [("control/verify/chunks/00001/x", expected), ("control/verify/plan", 0)] {
            let key = rollmill_store::Key::new(format!("{name}-{tag_chunks}")).unwrap();
            store.create(&key, "x".into()).await.unwrap();
            let found = client.get_object_tagging().bucket(&bucket).key(format!("exp1/{key}")).send().await.unwrap();
            assert_eq!(found.tag_set.len(), tags, "{key}");
            assert!(found.tag_set.iter().all(|tag| (tag.key(), tag.value()) == ("rollmill", "chunk")));
        }
    }
}
