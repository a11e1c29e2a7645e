//! The sweep for abandoned multipart uploads: their parts cost money and no listing of objects shows them.

use crate::fault::Fault;
use crate::{Bucket, BucketError};
use std::time::{Duration, SystemTime};

/// An upload that was started and neither completed nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The object it would have become: its full name in the bucket.
    pub key: String,
    /// Its id at the server.
    pub id: String,
    /// When it was started, by the server's clock.
    pub started: SystemTime,
}

/// Whether a sweep does anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweep {
    /// It only says what it would do.
    #[default]
    Dry,
    /// It aborts.
    Abort,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Uploads that were aborted, or would have been.
    pub aborted: usize,
    /// Uploads that were gone by then: completed, or aborted by others.
    pub gone: usize,
}

impl Bucket {
    /// Uploads below the run's prefix that were started at least `age` before `now`. A live worker whose upload is aborted
    /// fails and is run again, so choose an age above that of the longest upload.
    pub async fn abandoned_uploads(&self, age: Duration, now: SystemTime) -> Result<Vec<Upload>, BucketError> {
        let all = self.uploads().await.map_err(|fault| self.error(fault, "listing uploads"))?;
        Ok(all.into_iter().filter(|u| now.duration_since(u.started).is_ok_and(|passed| passed >= age)).collect())
    }

    /// Aborts `uploads`, or only counts them.
    pub async fn abort_uploads(&self, uploads: &[Upload], sweep: Sweep) -> Result<Swept, BucketError> {
        let mut swept = Swept::default();
        for upload in uploads {
            let aborted = match sweep {
                Sweep::Dry => Ok(()),
                Sweep::Abort => self.abort(&upload.key, &upload.id).await,
            };
            match aborted {
                Ok(()) => swept.aborted += 1,
                Err(Fault::Absent) => swept.gone += 1,
                Err(fault) => return Err(self.error(fault, &format!("aborting the upload of {}", upload.key))),
            }
        }
        Ok(swept)
    }

    pub(crate) async fn abort(&self, key: &str, id: &str) -> Result<(), Fault> {
        let asked = self.client.abort_multipart_upload().bucket(&self.name).key(key).upload_id(id);
        asked.send().await.map(|_| ()).map_err(|e| Fault::of(&e))
    }

    /// All incomplete uploads below the run's prefix. One without a date is left out: nothing is known of its age.
    pub(crate) async fn uploads(&self) -> Result<Vec<Upload>, Fault> {
        let (prefix, mut found, mut after) = (self.below(""), Vec::new(), (None, None));
        loop {
            let asked = self.client.list_multipart_uploads().bucket(&self.name).prefix(&prefix);
            let asked = asked.set_key_marker(after.0).set_upload_id_marker(after.1);
            let page = asked.send().await.map_err(|e| Fault::of(&e))?;
            found.extend(page.uploads().iter().filter_map(|u| {
                let (key, id) = (u.key()?.to_string(), u.upload_id()?.to_string());
                // A server that does not know the parameter lists the whole bucket.
                key.starts_with(&prefix).then_some(())?;
                Some(Upload { key, id, started: SystemTime::try_from(*u.initiated()?).ok()? })
            }));
            after = (page.next_key_marker().map(String::from), page.next_upload_id_marker().map(String::from));
            if page.is_truncated() != Some(true) || after.0.is_none() {
                return Ok(found);
            }
        }
    }
}
