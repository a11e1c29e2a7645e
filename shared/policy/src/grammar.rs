//! The action grammar: what of sampled text is the plan and what is the code.
//!
//! In: the text of one sampled segment and how its sampling ended. Out: the plan or the code in it, and whether the
//! segment is well formed or why not. Must hold: any text is accepted (the policy writes what it likes); nothing is
//! repaired beyond trimming, so that the code graded is the code sampled.

use serde::{Deserialize, Serialize};

/// What opens and closes a block of code.
pub const FENCE: &str = "```";
/// What opens a block of Python.
pub const PYTHON_FENCE: &str = "```python\n";
/// Where sampling of a plan stops: at the end of its line, or where it runs into code.
pub const PLAN_STOPS: [&str; 2] = ["\n", FENCE];
/// Where sampling of code stops: at the closing fence.
pub const CODE_STOPS: [&str; 1] = [FENCE];

/// How the sampling of a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentEnd {
    /// The plan's line was finished.
    Newline,
    /// A fence was written: the end of code, a fault in a plan.
    Fence,
    /// The policy ended its turn (an end-of-sequence token).
    EndOfTurn,
    /// The token cap was reached.
    Cap,
}

/// Why a segment is not well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Malformed {
    /// Nothing but white space before the end of the plan.
    #[error("the plan is empty")]
    EmptyPlan,
    /// The plan did not end with its line.
    #[error("the plan does not end with its line")]
    PlanNotEnded,
    /// Nothing but white space before the end of the code.
    #[error("the code is empty")]
    EmptyCode,
    /// The code was not closed by a fence.
    #[error("the code is not closed by a fence")]
    FenceNotClosed,
}

/// A plan or a block of code, pulled out of one sampled segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The plan or the code, trimmed; code keeps its first line's indentation.
    pub text: String,
    /// How it ended.
    pub end: SegmentEnd,
    /// What of the sampled text follows the newline or the fence within the same token.
    pub rest: String,
    /// Why the segment is not well formed, if it is not.
    pub fault: Option<Malformed>,
}

/// The plan in `text` (sampled after "Plan:"); `otherwise` is how sampling ended where no newline and no fence stands in it.
///
/// White space before the plan's first word is skipped, a leading newline is not: it ends an empty plan.
pub fn plan(text: &str, otherwise: SegmentEnd) -> Segment {
    let newline = text.find('\n').map(|at| (at, 1, SegmentEnd::Newline));
    let fence = text.find(FENCE).map(|at| (at, FENCE.len(), SegmentEnd::Fence));
    let mut segment = cut(text, newline.into_iter().chain(fence).min_by_key(|(at, ..)| *at), otherwise);
    segment.text = segment.text.trim().to_owned();
    segment.fault = match segment.end {
        _ if segment.text.is_empty() => Some(Malformed::EmptyPlan),
        SegmentEnd::Newline => None,
        _ => Some(Malformed::PlanNotEnded),
    };
    segment
}

/// The code in `text` (sampled after an opening fence), up to the closing fence; `otherwise` as for [`plan`].
pub fn code(text: &str, otherwise: SegmentEnd) -> Segment {
    let fence = text.find(FENCE).map(|at| (at, FENCE.len(), SegmentEnd::Fence));
    let mut segment = cut(text, fence, otherwise);
    let trimmed = segment.text.trim_end().trim_start_matches(['\n', '\r']);
    segment.text = if trimmed.trim().is_empty() { String::new() } else { format!("{trimmed}\n") };
    segment.fault = match segment.end {
        _ if segment.text.is_empty() => Some(Malformed::EmptyCode),
        SegmentEnd::Fence => None,
        _ => Some(Malformed::FenceNotClosed),
    };
    segment
}

fn cut(text: &str, mark: Option<(usize, usize, SegmentEnd)>, otherwise: SegmentEnd) -> Segment {
    let (head, rest, end) = match mark {
        Some((at, width, end)) => (&text[..at], &text[at + width..], end),
        None => (text, "", otherwise),
    };
    Segment { text: head.to_owned(), end, rest: rest.to_owned(), fault: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plans() {
        let cases = [
            (" loop and add.\n", SegmentEnd::Cap, "loop and add.", SegmentEnd::Newline, "", None),
            (" loop\n\n", SegmentEnd::Cap, "loop", SegmentEnd::Newline, "\n", None),
            ("\n", SegmentEnd::Cap, "", SegmentEnd::Newline, "", Some(Malformed::EmptyPlan)),
            (" use sum ```py", SegmentEnd::Cap, "use sum", SegmentEnd::Fence, "py", Some(Malformed::PlanNotEnded)),
            (" use", SegmentEnd::Cap, "use", SegmentEnd::Cap, "", Some(Malformed::PlanNotEnded)),
            (" use", SegmentEnd::EndOfTurn, "use", SegmentEnd::EndOfTurn, "", Some(Malformed::PlanNotEnded)),
            ("", SegmentEnd::EndOfTurn, "", SegmentEnd::EndOfTurn, "", Some(Malformed::EmptyPlan)),
        ];
        for (text, otherwise, want, end, rest, fault) in cases {
            let got = plan(text, otherwise);
            assert_eq!(got, Segment { text: want.into(), end, rest: rest.into(), fault }, "{text:?}");
        }
    }

    #[test]
    fn codes() {
        let f = "def f(x):\n    return x\n";
        let cases = [
            (format!("{f}```"), SegmentEnd::Cap, f, SegmentEnd::Fence, "", None),
            (format!("\n{f}\n\n```\nThis"), SegmentEnd::Cap, f, SegmentEnd::Fence, "\nThis", None),
            (f.to_owned(), SegmentEnd::Cap, f, SegmentEnd::Cap, "", Some(Malformed::FenceNotClosed)),
            (f.to_owned(), SegmentEnd::EndOfTurn, f, SegmentEnd::EndOfTurn, "", Some(Malformed::FenceNotClosed)),
            ("\n```".into(), SegmentEnd::Cap, "", SegmentEnd::Fence, "", Some(Malformed::EmptyCode)),
            ("    x = 1```".into(), SegmentEnd::Cap, "    x = 1\n", SegmentEnd::Fence, "", None),
        ];
        for (text, otherwise, want, end, rest, fault) in cases {
            let got = code(&text, otherwise);
            assert_eq!(got, Segment { text: want.into(), end, rest: rest.into(), fault }, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_where_it_says(text in "[a`\\n é]{0,40}") {
            let code = code(&text, SegmentEnd::Cap);
            prop_assert!(!code.text.contains(FENCE));
            prop_assert_eq!(code.end == SegmentEnd::Fence, text.contains(FENCE));
            let plan = plan(&text, SegmentEnd::Cap);
            prop_assert!(!plan.text.contains('\n') && !plan.text.contains(FENCE));
            prop_assert!(text.ends_with(&plan.rest));
        }
    }
}
