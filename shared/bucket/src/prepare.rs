//! Bucket set-up: look, make, ask for rights, set what was wished for, say all of it.

use crate::fault::Fault;
use crate::lifecycle::RuleState;
use crate::rights::{line, rights};
use crate::{Answer, Bucket, BucketError, Line, Report};

/// What may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Make the bucket if it is missing.
    pub create: bool,
    /// Turn versioning on.
    pub versioning: bool,
    /// Days after which incomplete uploads below the run's prefix are aborted; none adds no rule.
    pub abort_uploads_days: Option<u16>,
}

/// Prepares the bucket for a run. Fails where nothing can be said; what is not allowed is said in the report, and
/// [`Report::refusal`] tells whether a run can be made.
pub async fn prepare(bucket: &Bucket, wishes: &Wishes) -> Result<Report, BucketError> {
    let (there, listed) = exists(bucket, wishes.create).await?;
    let mut lines = vec![there];
    lines.extend(rights(bucket, listed).await?);
    let mut report = Report { lines };
    if report.refusal().is_some() {
        // Nothing is changed where no run can be made.
        report.lines.push(settings(bucket, None).await?.0);
        return Ok(report);
    }
    let (settings, rule) = settings(bucket, wishes.abort_uploads_days).await?;
    report.lines.extend([settings, rule, versioning(bucket, wishes.versioning).await?]);
    Ok(report)
}

/// Whether the bucket is there, and what listing it answered.
async fn exists(bucket: &Bucket, create: bool) -> Result<(Line, Result<(), Fault>), BucketError> {
    let there = |note: &str| Line::new("bucket", Answer::Yes, format!("{}{note}", bucket.name));
    match bucket.look().await {
        Ok(()) => Ok((there(""), Ok(()))),
        Err(Fault::NoBucket | Fault::Absent) if create => {
            bucket.create().await.map_err(|fault| bucket.error(fault, "making the bucket"))?;
            Ok((there(", made now"), bucket.look().await))
        }
        Err(Fault::NoBucket | Fault::Absent) => Err(bucket.error(Fault::NoBucket, "looking for the bucket")),
        // Whether it is there shows when something else is asked for.
        Err(fault @ Fault::Denied(_)) => {
            Ok((Line::new("bucket", Answer::Unknown, format!("{} may not be listed", bucket.name)), Err(fault)))
        }
        Err(fault) => Err(bucket.error(fault, "looking for the bucket")),
    }
}

/// Adds the rule for abandoned uploads, or only reads the rules: what that says of the right to do so, and of the rule.
async fn settings(bucket: &Bucket, days: Option<u16>) -> Result<(Line, Line), BucketError> {
    const RULE: &str = "upload rule";
    let what = |days: u16| format!("incomplete uploads below {} are aborted after {days} days", bucket.below(""));
    let asked = match days {
        Some(days) => bucket.abort_uploads_after(days.into()).await.map(|state| Some((days, state))),
        None => bucket.may_read_rules().await.map(|()| None),
    };
    let rule = match &asked {
        Ok(None) => Line::new(RULE, Answer::No, "none was asked for"),
        Ok(Some((days, RuleState::Added))) => Line::new(RULE, Answer::Yes, format!("{} (rule added)", what(*days))),
        Ok(Some((days, RuleState::Found(id)))) => {
            Line::new(RULE, Answer::Yes, format!("{}, or sooner (rule {id})", what(*days)))
        }
        Ok(Some((_, RuleState::Dropped))) => {
            Line::new(RULE, Answer::Unsupported, "the server takes the rule and does not keep it")
        }
        Err(Fault::Unsupported(said) | Fault::Refused(said)) => {
            Line::new(RULE, Answer::Unsupported, format!("the server says {said}"))
        }
        Err(_) => Line::new(RULE, Answer::No, "ask the bucket's owner for one that aborts incomplete uploads"),
    };
    let right = match asked {
        // Allowed, but not understood.
        Err(Fault::Refused(_)) => Ok(()),
        asked => asked.map(|_| ()),
    };
    let needs = "s3:GetLifecycleConfiguration and s3:PutLifecycleConfiguration";
    let mut right = line(bucket, "bucket settings", right, needs)?;
    if right.answer == Answer::Yes && days.is_none() {
        right.note = "may be read; changing them was not tried".into();
    }
    Ok((right, rule))
}

async fn versioning(bucket: &Bucket, wished: bool) -> Result<Line, BucketError> {
    const NAME: &str = "versioning";
    let on = match bucket.versioning().await {
        Ok(false) if wished => bucket.enable_versioning().await.map(|()| Some("on, turned on now")),
        Ok(true) => Ok(Some("on")),
        Ok(false) => Ok(None),
        Err(fault) => Err(fault),
    };
    Ok(match on {
        Ok(Some(note)) => Line::new(NAME, Answer::Yes, note),
        Ok(None) => {
            Line::new(NAME, Answer::No, "off; --versioning turns it on, so that a damaged object can be restored")
        }
        // Asked for by name, it is not left out silently.
        Err(fault @ Fault::Denied(_)) if wished => return Err(bucket.error(fault, "turning versioning on")),
        Err(Fault::Denied(_)) => Line::new(NAME, Answer::Unknown, "denied; needs s3:GetBucketVersioning"),
        Err(Fault::Unsupported(said) | Fault::Refused(said)) => {
            Line::new(NAME, Answer::Unsupported, format!("the server says {said}"))
        }
        Err(fault) => return Err(bucket.error(fault, NAME)),
    })
}
