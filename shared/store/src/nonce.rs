//! Random identities. An attempt is 128 random bits per process, never a scheduler's id, so that two pods of one index,
//! or a requeued job beside its ghost, are two attempts.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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

impl Nonce {
    /// The nonce of the record `name` as `attempt` writes it. Nobody else has that attempt, so it is as unlike all others as
    /// the attempt is; and what an attempt sends again under one name is the same bytes, also after it forgot the first try.
    pub fn of(attempt: &AttemptId, name: impl fmt::Display) -> Nonce {
        let digest = Sha256::digest(format!("{attempt} {name}"));
        Nonce(hex::encode(&digest[..16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_follows_from_attempt_and_name() {
        let (a, b) = (AttemptId::fresh(), AttemptId::fresh());
        assert_eq!(Nonce::of(&a, "x"), Nonce::of(&a, "x"));
        assert_ne!(Nonce::of(&a, "x"), Nonce::of(&a, "y"));
        assert_ne!(Nonce::of(&a, "x"), Nonce::of(&b, "x"));
        assert_eq!(Nonce::of(&a, "x").as_str().len(), 32);
    }
}
