//! One lifecycle rule of ours: incomplete multipart uploads below the run's prefix are aborted after some days. The server
//! knows only "replace all rules", so rules are read, merged, written and read back, and those of others stay as they are.

use crate::Bucket;
use crate::fault::Fault;
use aws_sdk_s3::types::{
    AbortIncompleteMultipartUpload, BucketLifecycleConfiguration, ExpirationStatus, LifecycleRule, LifecycleRuleFilter,
    TransitionDefaultMinimumObjectSize,
};
use sha2::{Digest, Sha256};

/// What has to be done so that uploads are aborted.
#[derive(Debug, PartialEq)]
enum Merge {
    /// Nothing: this rule does it.
    Covered(String),
    /// These are all rules now.
    Write(Vec<LifecycleRule>),
}

/// How the rule came to be there, or why not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RuleState {
    /// It, or a wider one of others, was there.
    Found(String),
    /// It was added.
    Added,
    /// The server took the rule and does not show it.
    Dropped,
}

/// The name of our rule for a prefix; rule names are limited to 255 characters, prefixes are not.
fn rule_id(prefix: &str) -> String {
    format!("rollmill-uploads-{}", &hex::encode(Sha256::digest(prefix))[..16])
}

/// The prefix a rule is for, if it is for all objects there.
// Old configurations carry the prefix outside the filter, and are not to be lost.
#[allow(deprecated)]
fn scope(rule: &LifecycleRule) -> Option<&str> {
    let Some(filter) = rule.filter() else { return Some(rule.prefix().unwrap_or_default()) };
    let narrowed = filter.tag().is_some()
        || filter.and().is_some()
        || filter.object_size_greater_than().is_some()
        || filter.object_size_less_than().is_some();
    (!narrowed).then(|| filter.prefix().unwrap_or_default())
}

fn aborts_within(rule: &LifecycleRule, prefix: &str, days: i32) -> bool {
    let after = rule.abort_incomplete_multipart_upload().and_then(|a| a.days_after_initiation());
    rule.status() == &ExpirationStatus::Enabled
        && after.is_some_and(|after| after > 0 && after <= days)
        && scope(rule).is_some_and(|scope| prefix.starts_with(scope))
}

/// Our rule. Servers refuse rules of the old form beside rules of the new one, so it takes the form of its neighbours.
#[allow(deprecated)]
fn our_rule(prefix: &str, days: i32, old_form: bool) -> LifecycleRule {
    let abort = AbortIncompleteMultipartUpload::builder().days_after_initiation(days).build();
    let rule = LifecycleRule::builder().id(rule_id(prefix)).status(ExpirationStatus::Enabled);
    let rule = rule.abort_incomplete_multipart_upload(abort);
    let rule =
        if old_form { rule.prefix(prefix) } else { rule.filter(LifecycleRuleFilter::builder().prefix(prefix).build()) };
    rule.build().expect("the only required field, the status, is set")
}

/// `rules` with ours, which replaces an earlier one of the same name.
#[allow(deprecated)]
fn merge(mut rules: Vec<LifecycleRule>, prefix: &str, days: i32) -> Merge {
    let id = rule_id(prefix);
    let own = |rule: &LifecycleRule| rule.id() == Some(&id);
    // One of ours with fewer days was asked for by an earlier command: the newer wish holds.
    let done = |r: &&LifecycleRule| {
        aborts_within(r, prefix, days)
            && (!own(r) || r.abort_incomplete_multipart_upload().and_then(|a| a.days_after_initiation()) == Some(days))
    };
    if let Some(rule) = rules.iter().find(done) {
        return Merge::Covered(rule.id().unwrap_or("without a name").to_string());
    }
    let old_form = rules.iter().any(|r| r.filter().is_none() && r.prefix().is_some() && !own(r));
    let ours = our_rule(prefix, days, old_form);
    match rules.iter().position(own) {
        Some(at) => rules[at] = ours,
        None => rules.push(ours),
    }
    Merge::Write(rules)
}

impl Bucket {
    /// All rules of the bucket, and a setting that goes with them.
    async fn rules(&self) -> Result<(Vec<LifecycleRule>, Option<TransitionDefaultMinimumObjectSize>), Fault> {
        match self.client.get_bucket_lifecycle_configuration().bucket(&self.name).send().await {
            Ok(found) => Ok((found.rules().to_vec(), found.transition_default_minimum_object_size().cloned())),
            Err(e) => match Fault::of(&e) {
                Fault::Absent => Ok((Vec::new(), None)),
                fault => Err(fault),
            },
        }
    }

    /// Whether the bucket's settings may be read.
    pub(crate) async fn may_read_rules(&self) -> Result<(), Fault> {
        self.rules().await.map(|_| ())
    }

    /// Sees to it that uploads below the run's prefix are aborted after `days`. Another command that writes rules at the same
    /// time may win, so it is done again until the rule is seen, a few times.
    pub(crate) async fn abort_uploads_after(&self, days: i32) -> Result<RuleState, Fault> {
        let prefix = self.below("");
        let mut written = false;
        for _ in 0..3 {
            let (rules, minimum) = self.rules().await?;
            let rules = match merge(rules, &prefix, days) {
                Merge::Covered(_) if written => return Ok(RuleState::Added),
                Merge::Covered(id) => return Ok(RuleState::Found(id)),
                Merge::Write(rules) => rules,
            };
            let all = BucketLifecycleConfiguration::builder().set_rules(Some(rules)).build();
            let asked = self
                .client
                .put_bucket_lifecycle_configuration()
                .bucket(&self.name)
                .lifecycle_configuration(all.expect("the only required field, the rules, is set"))
                .set_transition_default_minimum_object_size(minimum);
            asked.send().await.map_err(|e| Fault::of(&e))?;
            written = true;
        }
        Ok(RuleState::Dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_s3::types::{LifecycleExpiration, Tag};

    fn foreign(id: &str) -> LifecycleRule {
        LifecycleRule::builder()
            .id(id)
            .status(ExpirationStatus::Enabled)
            .filter(LifecycleRuleFilter::builder().prefix("logs/").build())
            .expiration(LifecycleExpiration::builder().days(30).build())
            .build()
            .unwrap()
    }

    fn aborting(id: &str, prefix: &str, days: i32, status: ExpirationStatus) -> LifecycleRule {
        LifecycleRule::builder()
            .id(id)
            .status(status)
            .filter(LifecycleRuleFilter::builder().prefix(prefix).build())
            .abort_incomplete_multipart_upload(
                AbortIncompleteMultipartUpload::builder().days_after_initiation(days).build(),
            )
            .build()
            .unwrap()
    }

    fn written(merge: Merge) -> Vec<LifecycleRule> {
        match merge {
            Merge::Write(rules) => rules,
            covered => panic!("{covered:?}"),
        }
    }

    #[test]
    fn foreign_rules_stay_and_a_second_merge_adds_nothing() {
        let before = vec![foreign("a"), foreign("b")];
        let rules = written(merge(before.clone(), "exp1/", 7));
        assert_eq!(rules[..2], before[..]);
        assert_eq!(scope(&rules[2]), Some("exp1/"));
        assert_eq!(merge(rules.clone(), "exp1/", 7), Merge::Covered(rule_id("exp1/")));
        // Another run of the bucket gets a rule of its own.
        assert_eq!(written(merge(rules.clone(), "exp10/", 7)).len(), 4);
        // Another number of days, more or fewer, replaces ours in its place.
        for days in [3, 14] {
            let changed = written(merge(rules.clone(), "exp1/", days));
            assert_eq!(changed.len(), 3);
            assert_eq!(changed[2].abort_incomplete_multipart_upload().unwrap().days_after_initiation(), Some(days));
        }
    }

    #[test]
    fn a_wider_rule_of_others_is_enough_and_a_weaker_one_is_not() {
        let enabled = ExpirationStatus::Enabled;
        let whole = aborting("whole", "", 3, enabled.clone());
        assert_eq!(merge(vec![whole], "exp1/", 7), Merge::Covered("whole".into()));
        for weak in [
            aborting("later", "", 30, enabled.clone()),
            aborting("elsewhere", "exp10/", 1, enabled),
            aborting("off", "", 3, ExpirationStatus::Disabled),
        ] {
            assert_eq!(written(merge(vec![weak.clone()], "exp1/", 7))[0], weak);
        }
        let mut tagged = aborting("tagged", "", 3, ExpirationStatus::Enabled);
        let tag = Tag::builder().key("k").value("v").build().unwrap();
        tagged.filter = Some(LifecycleRuleFilter::builder().tag(tag).build());
        assert_eq!(written(merge(vec![tagged], "exp1/", 7)).len(), 2);
    }

    #[test]
    #[allow(deprecated)]
    fn beside_rules_of_the_old_form_ours_has_it_too() {
        let old = LifecycleRule::builder()
            .id("old")
            .status(ExpirationStatus::Enabled)
            .prefix("logs/")
            .expiration(LifecycleExpiration::builder().days(1).build())
            .build()
            .unwrap();
        let rules = written(merge(vec![old.clone()], "exp1/", 7));
        assert_eq!(rules[0], old);
        assert_eq!((rules[1].prefix(), rules[1].filter()), (Some("exp1/"), None));
        assert_eq!(merge(rules, "exp1/", 7), Merge::Covered(rule_id("exp1/")));
    }
}
