//! Random identities. An attempt is 128 random bits per process, never a scheduler's id, so that two pods of one index,
//! or a requeued job beside its ghost, are two attempts.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// 128 fresh bits from the operating system, as 32 hex digits.
            pub fn fresh() -> $name {
                let mut bits = [0u8; 16];
                // Without the system's generator two attempts could share an identity: nothing after that would be right.
                getrandom::fill(&mut bits).expect("the operating system gives random bytes");
                $name(hex::encode(bits))
            }

            /// An identity from given text: for tests and for reading records back.
            pub fn from_text(text: impl Into<String>) -> $name {
                $name(text.into())
            }

            /// The 32 hex digits.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

random_id!(
    /// One process working on a run.
    AttemptId
);
random_id!(
    /// What makes a record unlike every other record, even with equal content.
    Nonce
);
