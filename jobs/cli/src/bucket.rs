//! The bucket part of `rollmill init` and `rollmill gc`: flags, the report, uploads that nobody completed.

use rollmill_bucket::{Bucket, BucketError, Sweep, Wishes, prepare};
use rollmill_job::Clock;
use rollmill_job::{JobError, env};
use rollmill_store::bucket_of;
use std::time::{Duration, UNIX_EPOCH};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
pub struct BucketArgs {
    /// Make the bucket if it is missing
    #[arg(long)]
    create_bucket: bool,
    /// Turn on the bucket's versioning
    #[arg(long)]
    versioning: bool,
    /// Let the bucket abort incomplete uploads below the run's prefix after so many days; 0 adds no rule
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u16).range(0..=3650))]
    abort_uploads_days: u16,
}

/// Prepares the bucket of `address` and prints what was found. A folder needs nothing.
pub async fn set_up(address: &str, args: &BucketArgs) -> Result<(), JobError> {
    if bucket_of(address)?.is_none() {
        return match args.create_bucket || args.versioning {
            false => Ok(()),
            true => Err(JobError::Config {
                place: address.into(),
                reason: "is a folder; --create-bucket and --versioning are for s3:// addresses".into(),
            }),
        };
    }
    let wishes = Wishes {
        create: args.create_bucket,
        versioning: args.versioning,
        abort_uploads_days: (args.abort_uploads_days > 0).then_some(args.abort_uploads_days),
    };
    let bucket = Bucket::open(address, &env::s3_settings()).await.map_err(|e| failed(address, e))?;
    let report = prepare(&bucket, &wishes).await.map_err(|e| failed(address, e))?;
    print!("{report}");
    report.refusal().map_or(Ok(()), |refusal| Err(failed(address, refusal)))
}

/// Names of uploads below the run's prefix that are older than `age`; aborts them if `apply`. A folder has none.
pub async fn abandoned_uploads(
    address: &str,
    clock: &dyn Clock,
    age: Duration,
    apply: bool,
) -> Result<Vec<String>, JobError> {
    if bucket_of(address)?.is_none() {
        return Ok(Vec::new());
    }
    let bucket = Bucket::open(address, &env::s3_settings()).await.map_err(|e| failed(address, e))?;
    let now = UNIX_EPOCH + clock.wall();
    let uploads = bucket.abandoned_uploads(age, now).await.map_err(|e| failed(address, e))?;
    let sweep = if apply { Sweep::Abort } else { Sweep::Dry };
    bucket.abort_uploads(&uploads, sweep).await.map_err(|e| failed(address, e))?;
    Ok(uploads.into_iter().map(|upload| upload.key).collect())
}

fn failed(address: &str, error: BucketError) -> JobError {
    match error {
        BucketError::Store(e) => JobError::Store(e),
        // The address or the rights are wrong: running the same command again changes nothing.
        other => JobError::Config { place: address.into(), reason: other.to_string() },
    }
}
