//! What the credentials may do, found by doing it: with one small object and one empty upload of this process's own below
//! `control/probe/`, which are removed where that is allowed.

use crate::fault::Fault;
use crate::{Answer, Bucket, BucketError, Line};
use aws_sdk_s3::primitives::ByteStream;
use rollmill_store::Nonce;

/// Asks for every right a run needs. `listed` is what listing answered already.
pub(crate) async fn rights(bucket: &Bucket, listed: Result<(), Fault>) -> Result<Vec<Line>, BucketError> {
    let may_list = listed.is_ok();
    let list = line(bucket, "list", listed, "s3:ListBucket")?.required();
    let key = bucket.below(&format!("control/probe/{}", Nonce::fresh()));
    let (create, made) = create(bucket, &key).await?;
    let read = read(bucket, &key, made, may_list).await?;
    let delete = line(bucket, "delete", delete(bucket, &key).await, "s3:DeleteObject, which only a clean-up needs")?;
    let multipart = multipart(bucket, &key).await?;
    Ok(vec![list, read.required(), create.required(), delete, multipart.required()])
}

/// A right from the answer of one request; `todo` names what to ask the bucket's owner for.
pub(crate) fn line(
    bucket: &Bucket,
    name: &'static str,
    answer: Result<(), Fault>,
    todo: &str,
) -> Result<Line, BucketError> {
    Ok(match answer {
        Ok(()) => Line::new(name, Answer::Yes, ""),
        Err(Fault::Denied(_)) => Line::new(name, Answer::No, format!("denied; needs {todo}")),
        Err(Fault::Unsupported(said)) => Line::new(name, Answer::Unsupported, format!("the server says {said}")),
        Err(fault) => return Err(bucket.error(fault, name)),
    })
}

/// Creates the key twice; the second must find it taken. Also whether the key is there now.
async fn create(bucket: &Bucket, key: &str) -> Result<(Line, bool), BucketError> {
    const NAME: &str = "create-only write";
    let put = async |text: &'static [u8]| {
        let asked = bucket.client.put_object().bucket(&bucket.name).key(key).if_none_match("*");
        asked.body(ByteStream::from_static(text)).send().await.map(|_| ()).map_err(|e| Fault::of(&e))
    };
    match put(b"first").await {
        // Taken: by a try of ours whose answer was lost, the name is random.
        Ok(()) | Err(Fault::Taken) => (),
        refused => return Ok((line(bucket, NAME, refused, "s3:PutObject")?, false)),
    }
    let line = match put(b"second").await {
        Err(Fault::Taken) => Line::new(NAME, Answer::Yes, ""),
        Ok(()) => {
            Line::new(NAME, Answer::No, "the server ignores If-None-Match, rows could be lost; use another store")
        }
        Err(fault) => line(bucket, NAME, Err(fault), "s3:PutObject")?,
    };
    Ok((line, true))
}

/// Reads the key. One that is not there is "absent" to who may read, and "denied" to who may neither read nor list.
async fn read(bucket: &Bucket, key: &str, made: bool, may_list: bool) -> Result<Line, BucketError> {
    let asked = bucket.client.get_object().bucket(&bucket.name).key(key).send().await;
    match asked.map(|_| ()).map_err(|e| Fault::of(&e)) {
        Err(Fault::Absent) if !made => Ok(Line::new("read", Answer::Yes, "")),
        Err(Fault::Denied(_)) if !made && !may_list => {
            Ok(Line::new("read", Answer::Unknown, "with no right to list or write, the server does not say"))
        }
        answer => line(bucket, "read", answer, "s3:GetObject"),
    }
}

async fn delete(bucket: &Bucket, key: &str) -> Result<(), Fault> {
    let asked = bucket.client.delete_object().bucket(&bucket.name).key(key).send().await;
    match asked.map(|_| ()).map_err(|e| Fault::of(&e)) {
        Err(Fault::Absent) => Ok(()),
        answer => answer,
    }
}

/// Starts an upload, lists it and aborts it.
async fn multipart(bucket: &Bucket, key: &str) -> Result<Line, BucketError> {
    const NAME: &str = "multipart";
    let started = bucket.client.create_multipart_upload().bucket(&bucket.name).key(key).send().await;
    let id = match started.map_err(|e| Fault::of(&e)) {
        Ok(started) => started.upload_id().unwrap_or_default().to_string(),
        Err(fault) => return line(bucket, NAME, Err(fault), "s3:PutObject"),
    };
    let listed = bucket.uploads().await;
    if let Err(fault) = bucket.abort(key, &id).await {
        return line(bucket, NAME, Err(fault), "s3:AbortMultipartUpload");
    }
    match listed {
        Ok(_) => Ok(Line::new(NAME, Answer::Yes, "")),
        // Runs work without it.
        Err(Fault::Denied(_) | Fault::Unsupported(_)) => {
            Ok(Line::new(NAME, Answer::Yes, "but uploads cannot be listed, so abandoned ones cannot be swept"))
        }
        Err(fault) => Err(bucket.error(fault, "listing uploads")),
    }
}
