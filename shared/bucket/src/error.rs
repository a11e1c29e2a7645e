//! Why a bucket cannot be used. Each message is one line that says what to do; whoever prints it puts the address before it.

use rollmill_store::StoreError;

/// What can go wrong with a bucket.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The bucket is not there.
    #[error("there is no bucket {bucket:?}; correct the address, or add --create-bucket to make it")]
    Missing {
        /// The bucket.
        bucket: String,
    },
    /// Somebody else has the name.
    #[error("the bucket name {bucket:?} is taken by another account; choose another name")]
    Taken {
        /// The bucket.
        bucket: String,
    },
    /// The bucket is in another region than the one requests are signed for.
    #[error("{what} was refused ({reason}); set AWS_REGION to the bucket's region")]
    Region {
        /// The operation.
        what: String,
        /// What the server said.
        reason: String,
    },
    /// The server does not take the request, and will not take it again.
    #[error("{what} was refused ({reason}); check the bucket's name and the endpoint")]
    Refused {
        /// The operation.
        what: String,
        /// What the server said.
        reason: String,
    },
    /// The credentials are good, but do not allow what a run needs.
    #[error("a run cannot be made there: {missing}; ask the bucket's owner for these rights")]
    Rights {
        /// Which rights are missing.
        missing: String,
    },
    /// What the store itself says: no credentials, denied, unreachable, transient.
    #[error(transparent)]
    Store(#[from] StoreError),
}
