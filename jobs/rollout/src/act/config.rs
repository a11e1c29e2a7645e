//! How a policy acts: caps, sampling and wording. Part of the experiment's fingerprint.

use super::ActError;
use serde::{Deserialize, Serialize};

/// Settings of [`super::act`].
///
/// The wording is kept as short as possible: every prompt token is computed again in each training pass. The two prefixes
/// are there for small models. SmolLM2-135M-Instruct at temperature .8 passed the visible tests of trivial example tasks at
/// the first attempt in 12 of 48 cases with both, 3 of 32 without the one of code (it misspells the function's name), and
/// 0 of 16 with a bare "Plan:" (nearly half of its plans were malformed).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActConfig {
    /// Pieces of code sampled at most, the first one included.
    pub max_attempts: u32,
    /// Cap of sampled tokens of the plan.
    pub plan_tokens: u32,
    /// Cap of sampled tokens of one piece of code.
    pub code_tokens: u32,
    /// Sampling temperature.
    pub temperature: f64,
    /// Nucleus; rows to train on need 1.
    pub top_p: f64,
    /// Longest sequence in tokens, prompt included. At most what the endpoint's health tells.
    pub context: usize,
    /// Test output shown to the policy is cut to this many characters; the record keeps it whole.
    pub observation_chars: usize,
    /// System message.
    pub system: String,
    /// First user message; `{question}`, `{tests}` and `{entry_point}` are filled in.
    pub user: String,
    /// Start of the assistant's turn, before the sampled plan. What follows its colon is part of the plan.
    pub plan_prefix: String,
    /// Start of each piece of code, before what is sampled; `{entry_point}` is filled in. Empty: nothing is forced.
    pub code_prefix: String,
    /// User message after failed tests; `{observation}` is filled in.
    pub repair: String,
    /// User message where the policy ended its turn before any code.
    pub nudge: String,
    /// What is said instead where a program is asked for.
    pub program: ProgramWording,
}

/// Wording for programs, whose code begins with nothing forced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramWording {
    /// System message.
    pub system: String,
    /// First user message; `{question}`, `{language}`, `{file}` and `{tests}` are filled in.
    pub user: String,
    /// Start of the assistant's turn, as for functions.
    pub plan_prefix: String,
}

impl Default for ProgramWording {
    fn default() -> Self {
        Self {
            system: "You write short, correct programs.".into(),
            user: "{question}\nLanguage: {language}. Write one file, {file}.\n{tests}".into(),
            plan_prefix: "Plan:".into(),
        }
    }
}

impl Default for ActConfig {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            plan_tokens: 32,
            code_tokens: 96,
            temperature: 0.8,
            top_p: 1.0,
            context: 1024,
            observation_chars: 300,
            system: "You write short, correct Python functions.".into(),
            user: "{question}\n{tests}".into(),
            plan_prefix: "Plan: Return".into(),
            code_prefix: "def {entry_point}".into(),
            repair: "{observation}\nFix the code.".into(),
            nudge: "Write the code.".into(),
            program: ProgramWording::default(),
        }
    }
}

impl ActConfig {
    /// Refuses settings no trajectory can come out of.
    pub fn check(&self) -> Result<(), ActError> {
        let positive = self.max_attempts > 0 && self.plan_tokens > 0 && self.code_tokens > 0;
        let refusal = if !positive {
            "max_attempts, plan_tokens and code_tokens must be above 0"
        } else if !self.temperature.is_finite() || self.temperature < 0.0 {
            "temperature must be 0 or more"
        } else if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            "top_p must be above 0 and at most 1"
        } else if ![&self.user, &self.program.user].into_iter().all(|user| user.contains("{question}")) {
            "user must contain {question}, program.user as well"
        } else {
            return Ok(());
        };
        Err(ActError::Config(refusal.into()))
    }
}
