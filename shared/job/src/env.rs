//! Every environment variable Rollmill reads, in one place. Flags win over variables, variables over the file.

/// A run's address, instead of `--run`.
pub const RUN: &str = "ROLLMILL_RUN";
/// Address of the policy endpoint, instead of `--endpoint`.
pub const ENDPOINT: &str = "ROLLMILL_ENDPOINT";
/// The shard of a worker in a Slurm array.
pub const SLURM_ARRAY_TASK_ID: &str = "SLURM_ARRAY_TASK_ID";
/// The shard of a pod of a Kubernetes Indexed Job.
pub const JOB_COMPLETION_INDEX: &str = "JOB_COMPLETION_INDEX";
/// The shard of a child of an AWS Batch array job.
pub const AWS_BATCH_JOB_ARRAY_INDEX: &str = "AWS_BATCH_JOB_ARRAY_INDEX";
/// Address of an S3-compatible server; unset means AWS.
pub const AWS_ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";
/// Region of the bucket.
pub const AWS_REGION: &str = "AWS_REGION";
/// Access key id.
pub const AWS_ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
/// Secret of the access key.
pub const AWS_SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
/// Session token of temporary credentials.
pub const AWS_SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";

/// A variable's value, if it is set and not empty.
pub fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The shard the scheduler gave this process, if one did.
pub fn scheduled_shard() -> Option<u32> {
    [SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX]
        .into_iter()
        .find_map(|name| read(name)?.parse().ok())
}

/// How to reach a bucket.
pub fn s3_settings() -> rollmill_store::S3Settings {
    rollmill_store::S3Settings {
        endpoint: read(AWS_ENDPOINT_URL),
        region: read(AWS_REGION),
        access_key: read(AWS_ACCESS_KEY_ID),
        secret_key: read(AWS_SECRET_ACCESS_KEY),
        session_token: read(AWS_SESSION_TOKEN),
    }
}
