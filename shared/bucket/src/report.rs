//! What was found, as lines for people.

use std::fmt;

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is so.
    Yes,
    /// It is not.
    No,
    /// The server lacks the API.
    Unsupported,
    /// It cannot be told from what the server says.
    Unknown,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unsupported => "unsupported",
            Answer::Unknown => "unknown",
        })
    }
}

/// One question with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What was asked.
    pub name: &'static str,
    /// The answer.
    pub answer: Answer,
    /// What was seen, and what to do.
    pub note: String,
    /// Whether a run can be made without it.
    pub required: bool,
}

impl Line {
    pub(crate) fn new(name: &'static str, answer: Answer, note: impl Into<String>) -> Line {
        Line { name, answer, note: note.into(), required: false }
    }

    pub(crate) fn required(self) -> Line {
        Line { required: true, ..self }
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The lines, in the order they were asked.
    pub lines: Vec<Line>,
}

impl Report {
    /// The answer on a line.
    pub fn answer(&self, name: &str) -> Option<&Answer> {
        self.lines.iter().find(|l| l.name == name).map(|l| &l.answer)
    }

    /// Why no run can be made, or none if one can.
    pub fn refusal(&self) -> Option<crate::BucketError> {
        let lacks = |l: &&Line| l.required && matches!(l.answer, Answer::No | Answer::Unsupported);
        let missing: Vec<String> =
            self.lines.iter().filter(lacks).map(|l| format!("{} ({})", l.name, l.note)).collect();
        (!missing.is_empty()).then(|| crate::BucketError::Rights { missing: missing.join(", ") })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let text = format!("{:<18} {:<12} {}", line.name, line.answer, line.note);
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}
