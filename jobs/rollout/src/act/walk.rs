//! One walk through a task: plan, code, test, repair.
//!
//! In and out as in [`super`]. The order of the policy's tokens and the forced ones between them is decided here:
//!
//! ```text
//! [system, user] "Plan:" <plan> "```python\n" <code ```> { [test output as a user turn] "```python\n" <code ```> }
//! ```
//!
//! What is in angle brackets is sampled. The configured `code_prefix` follows each opening fence, which names
//! the language that is asked for.

use super::prompt::{self, Words};
use super::record::sha256;
use super::sequence::Sequence;
use super::{ActConfig, ActError, ActTask, Acted, Message, Phase, StepRecord, StopReason, Tested, Tester};
use rollmill_policy::grammar::{self, CODE_STOPS, FENCE, PLAN_STOPS, Segment, SegmentEnd};
use rollmill_policy::seed::segment_seed;
use rollmill_policy::{Chat, Completion, Finish, Policy, Tokenizer};

/// With less room than this in the context nothing is sampled: no code fits.
const MIN_ROOM: usize = 8;
/// Observation of an attempt without code.
const NO_CODE: &str = "There is no code.";

/// Lets the policy act on `task` until the visible tests pass or a limit is reached.
///
/// The same answers of policy and tester give the same trajectory; requests are seeded from `seed` alone.
pub async fn act(
    policy: &dyn Policy,
    tokenizer: &Tokenizer,
    chat: &Chat,
    config: &ActConfig,
    task: &ActTask<'_>,
    seed: u64,
    tester: &dyn Tester,
) -> Result<Acted, ActError> {
    config.check()?;
    let mut walk = Walk {
        policy,
        tokenizer,
        chat,
        config,
        seed,
        tester,
        words: Words::of(config, task),
        sequence: Sequence::default(),
        segments: 0,
        steps: Vec::new(),
        messages: Vec::new(),
        said: String::new(),
        last_was_cut: false,
    };
    walk.open()?;
    let prompt_tokens = walk.sequence.len();
    if !walk.has_room(0) {
        let (task_id, context) = (task.task_id.to_owned(), config.context);
        return Err(ActError::PromptTooLong { task_id, tokens: prompt_tokens, context });
    }
    let stop_reason = match walk.plan().await? {
        Some(stop_reason) => stop_reason,
        None => walk.code().await?,
    };
    Ok(walk.finish(stop_reason, prompt_tokens))
}

struct Walk<'a> {
    policy: &'a dyn Policy,
    tokenizer: &'a Tokenizer,
    chat: &'a Chat,
    config: &'a ActConfig,
    seed: u64,
    tester: &'a dyn Tester,
    words: Words,
    sequence: Sequence,
    segments: u32,
    steps: Vec<StepRecord>,
    messages: Vec<Message>,
    /// What the assistant has said in its current turn.
    said: String,
    /// The last sampled segment ended at a cap.
    last_was_cut: bool,
}

/// The text of a sampled segment, and how it ended if no mark stands in it.
struct Sampled {
    text: String,
    otherwise: SegmentEnd,
    cut_by_context: bool,
}

impl Walk<'_> {
    fn open(&mut self) -> Result<(), ActError> {
        let Words { system, user, plan_prefix, .. } = self.words.clone();
        let ids = self.chat.open(self.tokenizer, &system, &user)?;
        self.sequence.force(&ids);
        self.messages = vec![Message::new("system", system), Message::new("user", user)];
        self.say(&plan_prefix)
    }

    /// Samples the plan and opens the code; `Some` where the walk ends here.
    async fn plan(&mut self) -> Result<Option<StopReason>, ActError> {
        let sampled = self.sample(self.config.plan_tokens, &PLAN_STOPS).await?;
        let mut plan = grammar::plan(&sampled.text, sampled.otherwise);
        self.last_was_cut = plan.end == SegmentEnd::Cap;
        let lead = self.words.plan_prefix.rsplit_once(':').map_or("", |(_, lead)| lead);
        plan.text = grammar::plan(&(lead.to_owned() + &sampled.text), sampled.otherwise).text;
        let opened = match plan.end {
            SegmentEnd::EndOfTurn => self.next_turn("", &self.config.nudge)?,
            _ => self.try_say(&(code_opening(&sampled.text, &self.words.fence) + &self.words.code_prefix))?,
        };
        self.record(Phase::Plan, &plan, None);
        Ok((!opened).then_some(StopReason::Context))
    }

    /// Samples code and tests it, until one passes or a limit is reached.
    async fn code(&mut self) -> Result<StopReason, ActError> {
        let mut previous: Option<String> = None;
        for attempt in 1..=self.config.max_attempts {
            let sampled = self.sample(self.config.code_tokens, &CODE_STOPS).await?;
            let code = grammar::code(&(self.words.code_prefix.clone() + &sampled.text), sampled.otherwise);
            let cut = code.end == SegmentEnd::Cap;
            self.last_was_cut = cut;
            let phase = if attempt == 1 { Phase::Act } else { Phase::Repair };
            if previous.as_ref() == Some(&code.text) {
                self.record(phase, &code, None);
                return Ok(StopReason::Repeated);
            }
            let tested = self.test(&code.text).await?;
            let observation = tested.text.clone();
            let passed = tested.passed;
            self.record(phase, &code, Some(tested));
            if passed {
                return Ok(StopReason::Passed);
            }
            if cut && sampled.cut_by_context {
                return Ok(StopReason::Context);
            }
            if attempt == self.config.max_attempts {
                return Ok(if cut { StopReason::Length } else { StopReason::AttemptsSpent });
            }
            let close = if cut { "\n```" } else { "" };
            if !self.next_turn(close, &prompt::repair(self.config, &observation))? {
                return Ok(StopReason::Context);
            }
            previous = Some(code.text);
        }
        Ok(StopReason::AttemptsSpent)
    }

    /// Asks the policy to go on with the sequence and appends its answer. The caller has made sure of room.
    async fn sample(&mut self, cap: u32, stops: &[&str]) -> Result<Sampled, ActError> {
        let room = u32::try_from(self.config.context.saturating_sub(self.sequence.len())).unwrap_or(u32::MAX);
        let completion = Completion {
            prompt: self.sequence.tokens.clone(),
            max_tokens: cap.min(room),
            temperature: self.config.temperature,
            top_p: self.config.top_p,
            seed: segment_seed(self.seed, self.segments),
            stop: stops.iter().map(|&stop| stop.to_owned()).collect(),
        };
        let completed = self.policy.complete(&completion).await?;
        self.segments += 1;
        self.sequence.sampled(&completed);
        let eos = self.tokenizer.eos_ids();
        let ids = completed.token_ids.as_slice();
        let ended_turn = ids.last().is_some_and(|last| eos.contains(last));
        let ids = if ended_turn { &ids[..ids.len() - 1] } else { ids };
        let text = self.tokenizer.decode(ids)?;
        self.said.push_str(&text);
        let is_cap = completed.finish == Finish::Length && !ended_turn;
        let otherwise = if is_cap { SegmentEnd::Cap } else { SegmentEnd::EndOfTurn };
        Ok(Sampled { text, otherwise, cut_by_context: room < cap })
    }

    async fn test(&self, code: &str) -> Result<Tested, ActError> {
        if code.is_empty() {
            return Ok(Tested { passed: false, text: NO_CODE.into(), ms: 0, facts: serde_json::Value::Null });
        }
        Ok(self.tester.test(code).await?)
    }

    /// Ends the assistant's turn (after `close`), says `user` and opens code; false, and nothing done, without room.
    fn next_turn(&mut self, close: &str, user: &str) -> Result<bool, ActError> {
        let mut ids = self.tokenizer.encode_untrusted(close)?;
        let turn = self.chat.next_user(self.tokenizer, user)?;
        let ended = self.sequence.tokens.last().copied().filter(|last| self.tokenizer.eos_ids().contains(last));
        let is_said = ids.is_empty() && ended.is_some() && ended == self.chat.end_of_turn();
        ids.extend(&turn[usize::from(is_said)..]);
        let opening = self.words.fence.clone() + &self.words.code_prefix;
        ids.extend(self.tokenizer.encode_untrusted(&opening)?);
        if !self.has_room(ids.len()) {
            return Ok(false);
        }
        self.sequence.force(&ids);
        self.said.push_str(close);
        self.end_message();
        self.messages.push(Message::new("user", user));
        self.said.push_str(&opening);
        Ok(true)
    }

    /// Puts words into the assistant's mouth.
    fn say(&mut self, text: &str) -> Result<(), ActError> {
        let ids = self.tokenizer.encode_untrusted(text)?;
        self.sequence.force(&ids);
        self.said.push_str(text);
        Ok(())
    }

    /// As [`Walk::say`]; false, and nothing done, where no room would be left to sample.
    fn try_say(&mut self, text: &str) -> Result<bool, ActError> {
        let has_room = self.has_room(self.tokenizer.encode_untrusted(text)?.len());
        if has_room {
            self.say(text)?;
        }
        Ok(has_room)
    }

    fn has_room(&self, forced: usize) -> bool {
        self.sequence.len() + forced + MIN_ROOM <= self.config.context
    }

    fn record(&mut self, phase: Phase, segment: &Segment, tested: Option<Tested>) {
        let plan = self.steps.first().map_or("", |step| &step.reasoning);
        let (reasoning, action) = match phase {
            Phase::Plan => (segment.text.clone(), String::new()),
            Phase::Act => (plan.to_owned(), segment.text.clone()),
            Phase::Repair => (String::new(), segment.text.clone()),
        };
        let nothing = Tested { passed: false, text: String::new(), ms: 0, facts: serde_json::Value::Null };
        let Tested { passed, text: observation, ms, facts } = tested.unwrap_or(nothing);
        let ok = if phase == Phase::Plan { segment.fault.is_none() } else { passed };
        let observation_sha256 = sha256(&observation);
        let (stop, fault) = (segment.end, segment.fault);
        let step = StepRecord { phase, reasoning, action, observation, observation_sha256, ok, stop, fault, ms, facts };
        self.steps.push(step);
    }

    fn end_message(&mut self) {
        let said = std::mem::take(&mut self.said);
        self.messages.push(Message::new("assistant", said));
    }

    fn finish(mut self, stop_reason: StopReason, prompt_tokens: usize) -> Acted {
        if !self.said.is_empty() {
            self.end_message();
        }
        let code_steps = || self.steps.iter().filter(|step| step.phase != Phase::Plan);
        let passed_visible = stop_reason == StopReason::Passed;
        Acted {
            plan: self.steps.first().map(|step| step.reasoning.clone()).unwrap_or_default(),
            final_code: code_steps().next_back().map(|step| step.action.clone()).unwrap_or_default(),
            attempts: code_steps().count() as u32,
            passed_visible,
            well_formed: code_steps().count() > 0 && self.steps.iter().all(|step| step.fault.is_none()),
            stop_reason,
            truncated: stop_reason == StopReason::Context || (self.last_was_cut && !passed_visible),
            prompt_tokens: prompt_tokens as u32,
            sampled_tokens: self.sequence.trainable.iter().filter(|sampled| **sampled).count() as u32,
            tokens: self.sequence.tokens,
            trainable: self.sequence.trainable,
            log_probs: self.sequence.log_probs,
            steps: self.steps,
            messages: self.messages,
        }
    }
}

/// What has to follow a plan's sampled text, so that a block of the language of `fence` stands open at a line's start.
fn code_opening(plan: &str, fence: &str) -> String {
    let after_fence = plan.find(FENCE).map(|at| &plan[at + FENCE.len()..]);
    let language = &fence[FENCE.len()..];
    match after_fence {
        Some(tail) if language.starts_with(tail) => language[tail.len()..].to_owned(),
        Some(_) => format!("\n{FENCE}\n{fence}"),
        None if plan.ends_with('\n') => fence.to_owned(),
        None => format!("\n{fence}"),
    }
}
