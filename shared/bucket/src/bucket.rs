//! An open bucket: the client, and what is asked of the bucket itself.

use crate::BucketError;
use crate::fault::Fault;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Config, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration, VersioningConfiguration,
};
use rollmill_store::{S3Settings, StoreError, bucket_of};
use std::time::Duration;

/// One bucket and the run's prefix in it.
pub struct Bucket {
    pub(crate) client: Client,
    pub(crate) name: String,
    /// Without slashes at its ends.
    pub(crate) prefix: String,
    /// The run's address, for people.
    pub(crate) address: String,
    /// Where a bucket is made; none where the server's default will do.
    location: Option<String>,
}

impl Bucket {
    /// A client for the bucket of `address`. Asks for credentials where a role gives them, and nothing else.
    pub async fn open(address: &str, settings: &S3Settings) -> Result<Bucket, BucketError> {
        let Some((name, prefix)) = bucket_of(address)? else {
            let reason = "give s3://bucket/prefix".into();
            return Err(StoreError::BadAddress { address: address.into(), reason }.into());
        };
        let address = format!("s3://{name}/{prefix}");
        let keys = settings.keys(&address).await?;
        let mut config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(settings.region().to_string()))
            .credentials_provider(Credentials::new(keys.id, keys.secret, keys.token, None, "rollmill"))
            // Other servers seldom have a name per bucket, and many know no checksums in trailers.
            .force_path_style(settings.endpoint.is_some())
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .retry_config(RetryConfig::standard().with_max_attempts(3))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(Duration::from_secs(5))
                    .operation_timeout(Duration::from_secs(60))
                    .build(),
            );
        if let Some(endpoint) = &settings.endpoint {
            config = config.endpoint_url(endpoint);
        }
        Ok(Bucket {
            client: Client::from_conf(config.build()),
            name: name.into(),
            prefix: prefix.into(),
            address,
            location: settings.region.clone().filter(|r| r != "us-east-1"),
        })
    }

    /// Whether the bucket is there. Listing it is asked for, because a `HEAD` has no body to say what is wrong.
    pub(crate) async fn look(&self) -> Result<(), Fault> {
        let asked = self.client.list_objects_v2().bucket(&self.name).prefix(self.below("")).max_keys(1);
        asked.send().await.map(|_| ()).map_err(|e| Fault::of(&e))
    }

    /// Makes the bucket; one that is there and ours is no error.
    pub(crate) async fn create(&self) -> Result<(), Fault> {
        let place = self.location.as_deref().map(|region| {
            CreateBucketConfiguration::builder().location_constraint(BucketLocationConstraint::from(region)).build()
        });
        let asked = self.client.create_bucket().bucket(&self.name).set_create_bucket_configuration(place);
        match asked.send().await {
            Ok(_) => Ok(()),
            Err(e) => match Fault::of(&e) {
                // BucketAlreadyOwnedByYou: another init was first.
                Fault::Taken => Ok(()),
                fault => Err(fault),
            },
        }
    }

    /// Whether the bucket keeps old versions.
    pub(crate) async fn versioning(&self) -> Result<bool, Fault> {
        let found = self.client.get_bucket_versioning().bucket(&self.name).send().await.map_err(|e| Fault::of(&e))?;
        Ok(found.status() == Some(&BucketVersioningStatus::Enabled))
    }

    /// Makes the bucket keep old versions.
    pub(crate) async fn enable_versioning(&self) -> Result<(), Fault> {
        let on = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let asked = self.client.put_bucket_versioning().bucket(&self.name).versioning_configuration(on);
        asked.send().await.map(|_| ()).map_err(|e| Fault::of(&e))
    }

    /// The full name of a key of the run.
    pub(crate) fn below(&self, key: &str) -> String {
        format!("{}/{key}", self.prefix)
    }

    pub(crate) fn error(&self, fault: Fault, what: &str) -> BucketError {
        fault.into_error(&self.address, &self.name, what)
    }
}
