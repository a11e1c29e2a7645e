//! Names and labels of a run's objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rollmill_schema::content_id;
use std::collections::BTreeMap;

/// Label of everything that belongs to a run.
pub const RUN: &str = "rollmill/run";
/// Label of a job's kind.
pub const JOB: &str = "rollmill/job";

/// Label of a conductor: what it was submitted with.
pub const SUBMISSION: &str = "rollmill/submission";

/// Letters of a name at most: an Indexed Job's pods add a dash and their index to it, and the whole is a host name of 63.
const LONGEST: usize = 52;

/// Whose objects they are.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Id of the run.
    pub run_id: &'a str,
    /// Their namespace.
    pub namespace: &'a str,
}

impl Names<'_> {
    /// A DNS label for a step: two steps never share one.
    pub fn name(&self, step: &str) -> String {
        let whole = format!("rm-{}-{step}", self.run_id.get(..8).unwrap_or(self.run_id));
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if whole.len() <= LONGEST && whole.bytes().all(plain) && !whole.ends_with('-') {
            return whole;
        }
        let told = content_id(&[&whole]);
        let lower = whole.to_lowercase();
        let kept = lower.bytes().map(|b| if plain(b) { b as char } else { '-' });
        format!("{}-{}", kept.take(LONGEST - 9).collect::<String>(), &told[..8])
    }

    /// Labels of a step's objects and pods.
    pub fn labels(&self, step: &str, job: &str) -> BTreeMap<String, String> {
        [
            ("app.kubernetes.io/name", "rollmill".to_string()),
            (RUN, self.run_id.to_string()),
            (JOB, job.to_string()),
            ("rollmill/step", self.name(step)),
        ]
        .map(|(k, v)| (k.to_string(), v))
        .into()
    }

    /// The same with name and namespace.
    pub fn meta(&self, step: &str, job: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name(step)),
            namespace: Some(self.namespace.into()),
            labels: Some(self.labels(step, job)),
            ..ObjectMeta::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_name_is_kept_and_others_are_told_apart() {
        let names = Names { run_id: "0123456789abcdef", namespace: "x" };
        assert_eq!(names.name("rollout-train-0001"), "rm-01234567-rollout-train-0001");
        assert_ne!(names.name("score-a_b-0001"), names.name("score-a-b-0001"));
        assert_ne!(names.name("score-A-0001"), names.name("score-a-0001"));
    }

    proptest! {
        #[test]
        fn every_name_is_a_label_for_all_of_its_pods(step in "[a-zA-Z0-9_.-]{1,80}") {
            let name = Names { run_id: "0123456789abcdef", namespace: "x" }.name(&step);
            prop_assert!(name.len() + "-1000000".len() <= 63);
            prop_assert!(name.starts_with("rm-") && !name.ends_with('-'));
            prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        }
    }
}
