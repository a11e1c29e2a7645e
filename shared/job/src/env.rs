//! Every environment variable Rollmill reads, in one place. Flags win over variables, variables over the file.

use rollmill_store::Role;

/// A run's address, instead of `--run`.
pub const RUN: &str = "ROLLMILL_RUN";
/// Address of the policy endpoint, instead of `--endpoint`.
pub const ENDPOINT: &str = "ROLLMILL_ENDPOINT";
/// How sandboxes are made, instead of `--sandbox`.
pub const SANDBOX: &str = "ROLLMILL_SANDBOX";
/// The shard of a worker in a Slurm array.
pub const SLURM_ARRAY_TASK_ID: &str = "SLURM_ARRAY_TASK_ID";
/// Cores Slurm gave each task.
pub const SLURM_CPUS_PER_TASK: &str = "SLURM_CPUS_PER_TASK";
/// Cores of this process, for the budget.
pub const CORES: &str = "ROLLMILL_CORES";
/// GPUs of this process, for the budget.
pub const GPUS: &str = "ROLLMILL_GPUS";
/// The shard of a pod of a Kubernetes Indexed Job.
pub const JOB_COMPLETION_INDEX: &str = "JOB_COMPLETION_INDEX";
/// The shard of a child of an AWS Batch array job.
pub const AWS_BATCH_JOB_ARRAY_INDEX: &str = "AWS_BATCH_JOB_ARRAY_INDEX";
/// Set in every pod of Kubernetes: there is no kubeconfig to take a context from.
pub const KUBERNETES_SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
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
/// File with a token to exchange for temporary keys; needs [`AWS_ROLE_ARN`].
pub const AWS_WEB_IDENTITY_TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
/// The role a web identity takes.
pub const AWS_ROLE_ARN: &str = "AWS_ROLE_ARN";
/// What a web identity calls its session.
pub const AWS_ROLE_SESSION_NAME: &str = "AWS_ROLE_SESSION_NAME";
/// Address of the token service; unset means AWS.
pub const AWS_ENDPOINT_URL_STS: &str = "AWS_ENDPOINT_URL_STS";
/// Path at the container agent of ECS that gives temporary keys.
pub const AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
/// Address of the pod agent of EKS that gives temporary keys; needs [`AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE`].
pub const AWS_CONTAINER_CREDENTIALS_FULL_URI: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
/// File with the token for the pod agent.
pub const AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
/// `1`: ask the metadata service of an EC2 instance for keys. Only then, because elsewhere it does not answer.
pub const INSTANCE_CREDENTIALS: &str = "ROLLMILL_INSTANCE_CREDENTIALS";
/// `1`: tag chunks `rollmill=chunk`, for a lifecycle rule of the bucket. Not every server knows tags.
pub const TAG_CHUNKS: &str = "ROLLMILL_TAG_CHUNKS";

/// A variable's value, if it is set and not empty.
pub fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The shard the scheduler gave this process, if one did.
pub fn scheduled_shard() -> Option<u32> {
    SCHEDULED.into_iter().find_map(|name| read(name)?.parse().ok())
}

/// Indexes of arrays, by which schedulers tell their workers apart.
const SCHEDULED: [&str; 3] = [SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX];

/// How to reach a bucket.
pub fn s3_settings() -> rollmill_store::S3Settings {
    rollmill_store::S3Settings {
        endpoint: read(AWS_ENDPOINT_URL),
        region: read(AWS_REGION),
        access_key: read(AWS_ACCESS_KEY_ID),
        secret_key: read(AWS_SECRET_ACCESS_KEY),
        session_token: read(AWS_SESSION_TOKEN),
        role: role(read),
        tag_chunks: read(TAG_CHUNKS).as_deref() == Some("1"),
    }
}

/// Who gives temporary keys, as the variables say.
fn role(read: impl Fn(&str) -> Option<String>) -> Option<Role> {
    if let (Some(token_file), Some(role_arn)) = (read(AWS_WEB_IDENTITY_TOKEN_FILE), read(AWS_ROLE_ARN)) {
        let (session_name, endpoint) = (read(AWS_ROLE_SESSION_NAME), read(AWS_ENDPOINT_URL_STS));
        return Some(Role::WebIdentity { token_file, role_arn, session_name, endpoint });
    }
    if let Some(path) = read(AWS_CONTAINER_CREDENTIALS_RELATIVE_URI) {
        return Some(Role::Task { path });
    }
    let pod = (read(AWS_CONTAINER_CREDENTIALS_FULL_URI), read(AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE));
    if let (Some(url), Some(token_file)) = pod {
        return Some(Role::Pod { url, token_file });
    }
    (read(INSTANCE_CREDENTIALS).as_deref() == Some("1")).then_some(Role::Instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_from_whole_sets_of_variables() {
        let with = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            role(move |name| set.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[(AWS_WEB_IDENTITY_TOKEN_FILE, "/token")]), None, "no role is named");
        assert!(matches!(
            with(&[(AWS_WEB_IDENTITY_TOKEN_FILE, "/token"), (AWS_ROLE_ARN, "arn")]),
            Some(Role::WebIdentity { .. })
        ));
        assert!(matches!(with(&[(AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, "/x")]), Some(Role::Task { .. })));
        let pod = [(AWS_CONTAINER_CREDENTIALS_FULL_URI, "http://x"), (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, "/t")];
        assert!(matches!(with(&pod), Some(Role::Pod { .. })));
        assert_eq!(with(&pod[..1]), None);
        assert_eq!(with(&[(INSTANCE_CREDENTIALS, "1")]), Some(Role::Instance));
        assert_eq!(with(&[(INSTANCE_CREDENTIALS, "0")]), None);
    }
}
