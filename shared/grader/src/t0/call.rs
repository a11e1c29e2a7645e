//! One case as requests to a worker: the call, and the steps on the object that it returns.
//!
//! In: a case and a worker with the solution loaded. Out: whether the case holds, or why there was no answer. What must hold:
//! everything that is sent was measured before the suite began; nothing that is expected is sent.

use super::GradeError;
use super::judge::{Judge, Wanted};
use super::loader::Loader;
use super::protocol::{Ask, How, With};
use super::worker::{Reply, Worker};
use crate::blame::Failure;
use crate::cases::{Action, Case};
use crate::codec::{self, CodecError, MAX_FRAME, Node};
use crate::value::Value;
use std::time::Duration;

/// What came of asking for a case.
pub(super) enum Asked {
    Judged(Result<(), Failure>),
    Protocol(&'static str),
    Ended,
    /// `before` was waited for this worker before the request that took too long, `begun` before the case.
    Late {
        limit: Duration,
        before: Duration,
        begun: Duration,
    },
}

struct Arguments {
    args: Vec<Node>,
    kwargs: Option<Vec<Node>>,
}

/// A case whose arguments can be sent.
pub(super) struct Call<'a> {
    case: &'a Case,
    index: usize,
    arguments: Arguments,
    steps: Vec<Arguments>,
}

impl<'a> Call<'a> {
    /// Checks the sizes of all arguments, so that no later send can fail for them.
    pub fn new(index: usize, case: &'a Case) -> Result<Call<'a>, GradeError> {
        let fail = |source| GradeError::Arguments { index, source };
        let arguments = flat(&case.args, &case.kwargs).map_err(fail)?;
        let of_step = |step: &crate::cases::Step| match &step.action {
            Action::Call { args, kwargs, .. } => flat(args, kwargs),
            Action::Get(_) => flat(&[], &[]),
        };
        let steps = case.steps.iter().map(of_step).collect::<Result<_, _>>().map_err(fail)?;
        Ok(Call { case, index, arguments, steps })
    }

    /// Asks a worker. Each request may take the time of one call, and, unless this is the `repeated` case, what is left of
    /// the time for all.
    pub fn ask(
        &self,
        loader: &mut Loader<'_>,
        judge: &mut Judge<'_>,
        worker: &mut Worker,
        repeated: bool,
    ) -> Result<Asked, GradeError> {
        let begun = worker.waited();
        let mut on = None;
        for number in 0..=self.steps.len() {
            let remaining = if repeated { Duration::MAX } else { loader.remaining(Some(worker)) };
            let limit = loader.opts.per_call.min(remaining);
            let before = worker.waited();
            if limit.is_zero() {
                return Ok(Asked::Late { limit, before, begun });
            }
            let (request, wanted) = self.request(number, on, loader.entry);
            let seq = loader.seq();
            let answer = match worker.ask(request, seq, limit)? {
                Reply::Answer(answer) => answer,
                Reply::Protocol(what) => return Ok(Asked::Protocol(what)),
                Reply::Ended => return Ok(Asked::Ended),
                Reply::Late => return Ok(Asked::Late { limit, before, begun }),
            };
            match judge.judge(&wanted, answer)? {
                Ok(handle) => on = on.or(handle),
                Err(failure) => return Ok(Asked::Judged(Err(self.placed(number, failure)))),
            }
        }
        Ok(Asked::Judged(Ok(())))
    }

    /// The n-th request of the case (0 is the call itself) and what must come of it.
    fn request<'b>(&'b self, number: usize, on: Option<u64>, entry: &'b str) -> (Ask<'b>, Wanted<'b>) {
        let Some(at) = number.checked_sub(1) else {
            let wanted = Wanted::of_case(self.index, self.case, &self.arguments.args);
            let with = self.arguments.with(&wanted, !self.case.steps.is_empty());
            return (Ask::Call { entry, with }, wanted);
        };
        let wanted = Wanted::of_step(&self.case.steps[at]);
        let with = self.steps[at].with(&wanted, false);
        let (how, name) = match &self.case.steps[at].action {
            Action::Call { method, .. } => (How::Method, method),
            Action::Get(attribute) => (How::Get, attribute),
        };
        (Ask::Use { how, on, name, with }, wanted)
    }

    fn placed(&self, number: usize, failure: Failure) -> Failure {
        match number.checked_sub(1).map(|at| &self.case.steps[at].action) {
            None => failure,
            Some(Action::Call { method: name, .. } | Action::Get(name)) => {
                Failure::new(failure.outcome, format!("step {number} ({name}): {}", failure.detail))
            }
        }
    }
}

impl Arguments {
    fn with(&self, wanted: &Wanted<'_>, handles: bool) -> With<'_> {
        let collect = wanted.comparator.wants_elements();
        With { args: &self.args, kwargs: self.kwargs.as_deref(), collect, handles, back: wanted.mutates.is_some() }
    }
}

fn flat(args: &[Value], kwargs: &[(String, Value)]) -> Result<Arguments, CodecError> {
    let nodes = codec::flatten(&Value::Tuple(args.to_vec()))?;
    let named = kwargs.iter().map(|(name, value)| (Value::str(name), value.clone())).collect();
    let named = if kwargs.is_empty() { None } else { Some(codec::flatten(&Value::Dict(named))?) };
    let bytes = codec::frame(&(&nodes, &named))?.len();
    if bytes > MAX_FRAME / 2 {
        return Err(CodecError::FrameTooLong(bytes));
    }
    Ok(Arguments { args: nodes, kwargs: named })
}
