//! How to reach a bucket: endpoint, region and credentials. Where neither keys nor a role are given the store is refused at
//! once: `object_store` would ask the machine's metadata service, which elsewhere only times out.

use crate::StoreError;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::{ClientOptions, RetryConfig};
use std::time::Duration;

/// How to reach a bucket. The frame fills it from the usual `AWS_*` variables.
#[derive(Clone, Default)]
pub struct S3Settings {
    /// Address of an S3-compatible server; none means AWS.
    pub endpoint: Option<String>,
    /// Region; S3-compatible servers mostly ignore it.
    pub region: Option<String>,
    /// Access key id.
    pub access_key: Option<String>,
    /// Its secret.
    pub secret_key: Option<String>,
    /// A session token, with temporary credentials.
    pub session_token: Option<String>,
    /// Who gives temporary keys, where no access key is given.
    pub role: Option<Role>,
    /// Tags chunks, so that the bucket's lifecycle can tell them from what stays. Not every server knows tags.
    pub tag_chunks: bool,
}

/// Who gives temporary keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A token file, exchanged at the token service: service accounts of Kubernetes.
    WebIdentity {
        /// The file.
        token_file: String,
        /// The role to take.
        role_arn: String,
        /// The session's name.
        session_name: Option<String>,
        /// Address of the token service; none means AWS.
        endpoint: Option<String>,
    },
    /// The container agent of ECS and AWS Batch, by a path on its fixed address.
    Task {
        /// The path.
        path: String,
    },
    /// The pod agent of EKS.
    Pod {
        /// Its address.
        url: String,
        /// The file with the token it wants to see.
        token_file: String,
    },
    /// The metadata service of an EC2 instance.
    Instance,
}

/// Keys as a second client of the same bucket needs them.
#[derive(Clone)]
pub struct Keys {
    /// Access key id.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// The session token of temporary keys.
    pub token: Option<String>,
}

impl S3Settings {
    /// The region, which every request names.
    pub fn region(&self) -> &str {
        self.region.as_deref().unwrap_or("us-east-1")
    }

    /// The keys: those given, or what the role gives now. `address` names the store in errors.
    pub async fn keys(&self, address: &str) -> Result<Keys, StoreError> {
        // The provider knows of no bucket; the builder wants a name.
        let store = self.builder(address)?.with_bucket_name("any").with_retry(retry(2)).build();
        let store = store.map_err(|e| StoreError::BadAddress { address: address.into(), reason: e.to_string() })?;
        let given = store.credentials().get_credential().await.map_err(|e| StoreError::Transient {
            store: address.into(),
            what: "asking for credentials".into(),
            reason: crate::objects::root_cause(&e),
        })?;
        Ok(Keys { id: given.key_id.clone(), secret: given.secret_key.clone(), token: given.token.clone() })
    }

    /// Everything but the bucket's name and the retries.
    pub(crate) fn builder(&self, address: &str) -> Result<AmazonS3Builder, StoreError> {
        let client = ClientOptions::new()
            .with_connect_timeout(Duration::from_secs(5))
            .with_timeout(Duration::from_secs(120))
            .with_allow_http(true);
        let mut builder = AmazonS3Builder::new().with_region(self.region()).with_client_options(client);
        if let Some(endpoint) = &self.endpoint {
            if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                let reason = "an endpoint (AWS_ENDPOINT_URL) starts with http:// or https://".into();
                return Err(StoreError::BadAddress { address: endpoint.clone(), reason });
            }
            builder = builder.with_endpoint(endpoint);
        }
        builder = match (&self.access_key, &self.secret_key, &self.role) {
            (Some(id), Some(secret), _) => builder.with_access_key_id(id).with_secret_access_key(secret),
            (None, None, Some(role)) => with_role(builder, role),
            (None, None, None) => return Err(StoreError::NoCredentials { store: address.into() }),
            (id, _, _) => {
                return Err(StoreError::HalfCredentials {
                    store: address.into(),
                    missing: if id.is_none() {
                        "access key (AWS_ACCESS_KEY_ID)"
                    } else {
                        "secret (AWS_SECRET_ACCESS_KEY)"
                    },
                });
            }
        };
        Ok(match &self.session_token {
            Some(token) => builder.with_token(token),
            None => builder,
        })
    }
}

/// `object_store`'s retries, for everything that may be repeated blindly.
pub(crate) fn retry(max_retries: usize) -> RetryConfig {
    RetryConfig { max_retries, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() }
}

fn with_role(builder: AmazonS3Builder, role: &Role) -> AmazonS3Builder {
    let settings: Vec<(Key, Option<&String>)> = match role {
        Role::WebIdentity { token_file, role_arn, session_name, endpoint } => vec![
            (Key::WebIdentityTokenFile, Some(token_file)),
            (Key::RoleArn, Some(role_arn)),
            (Key::RoleSessionName, session_name.as_ref()),
            (Key::StsEndpoint, endpoint.as_ref()),
        ],
        Role::Task { path } => vec![(Key::ContainerCredentialsRelativeUri, Some(path))],
        Role::Pod { url, token_file } => {
            vec![
                (Key::ContainerCredentialsFullUri, Some(url)),
                (Key::ContainerAuthorizationTokenFile, Some(token_file)),
            ]
        }
        // What `object_store` does when nothing else is set.
        Role::Instance => vec![],
    };
    settings.into_iter().fold(builder, |builder, (key, value)| match value {
        Some(value) => builder.with_config(key, value),
        None => builder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: S3Settings) -> String {
        settings.builder("s3://b/p").unwrap_err().to_string()
    }

    #[test]
    fn missing_credentials_are_refused_before_anything_is_asked() {
        assert!(refused(S3Settings::default()).contains("AWS_ACCESS_KEY_ID"));
        let half = S3Settings { secret_key: Some("s".into()), ..S3Settings::default() };
        assert!(refused(half).contains("access key (AWS_ACCESS_KEY_ID) is missing"));
        let half = S3Settings { access_key: Some("k".into()), role: Some(Role::Instance), ..S3Settings::default() };
        assert!(refused(half).contains("secret (AWS_SECRET_ACCESS_KEY) is missing"));
        let endpoint = S3Settings { endpoint: Some("localhost:9000".into()), ..S3Settings::default() };
        assert!(refused(endpoint).contains("http://"));
    }

    #[test]
    fn a_role_is_handed_on() {
        let role = Role::WebIdentity {
            token_file: "/token".into(),
            role_arn: "arn".into(),
            session_name: None,
            endpoint: Some("https://sts".into()),
        };
        let settings = S3Settings { role: Some(role), ..S3Settings::default() };
        let builder = settings.builder("s3://b/p").unwrap();
        let value = |key| builder.get_config_value(&key);
        assert_eq!(value(Key::WebIdentityTokenFile).as_deref(), Some("/token"));
        assert_eq!(value(Key::StsEndpoint).as_deref(), Some("https://sts"));
        assert_eq!(value(Key::RoleSessionName), None);
    }
}
