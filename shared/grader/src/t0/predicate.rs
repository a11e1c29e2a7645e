//! Predicates of a task: functions that say whether a returned value is right, asked in a sandbox of their own.
//!
//! In: a predicate's source, arguments and a returned value as data. Out: whether it accepts. What must hold: nothing of the
//! solution runs in that sandbox; what a predicate does not answer with yes is a no or the task's fault, never a yes.

use super::loader::{ASLEEP, STARVED};
use super::peer::Life;
use super::tester::{Order, Said, Tester};
use super::{GradeError, T0Options};
use crate::blame::{at_fault, overloaded};
use crate::codec::{self, Node};
use crate::value::Value;
use rollmill_sandbox::{Facts, Sandbox};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::Duration;

/// Whether it accepts, and what the verdict adds if not.
type Answer = Result<(), String>;

pub(super) struct Predicates<'a> {
    sandbox: &'a dyn Sandbox,
    opts: &'a T0Options,
    tester: Option<Tester>,
    /// CPU time of a process that took too long.
    seen: Duration,
    /// By case and returned value.
    known: HashMap<[u8; 32], Answer>,
}

impl<'a> Predicates<'a> {
    pub fn new(sandbox: &'a dyn Sandbox, opts: &'a T0Options) -> Predicates<'a> {
        Predicates { sandbox, opts, tester: None, seen: Duration::ZERO, known: HashMap::new() }
    }

    /// Whether the predicate of case `index` accepts a value. The same value is asked for once.
    pub fn accepts(&mut self, index: usize, source: &str, args: &[Node], got: &Value) -> Result<Answer, GradeError> {
        if got.has_opaque() {
            return Ok(Err(String::new()));
        }
        let got = codec::flatten(got).map_err(|e| GradeError::Task(e.to_string()))?;
        let key = key(index, &got)?;
        if let Some(answer) = self.known.get(&key) {
            return Ok(answer.clone());
        }
        let order = || Order::Accept { source, args, got: &got };
        let answer = match self.ask(order(), false)? {
            Some(answer) => answer,
            None => match self.ask(order(), true)? {
                Some(answer) => answer,
                None => Err(", and the predicate takes too long on it".to_owned()),
            },
        };
        self.known.insert(key, answer.clone());
        Ok(answer)
    }

    /// The answer; none if it took too long, which only the `last` try decides.
    fn ask(&mut self, order: Order<'_>, last: bool) -> Result<Option<Answer>, GradeError> {
        let mut tester = match self.tester.take().filter(|_| !last) {
            Some(tester) => tester,
            None => self.start(last)?,
        };
        let said = tester.order(order, self.opts.per_call)?;
        let answer = match said {
            Said::Accepted => Ok(()),
            Said::Refused(why) if why.is_empty() => Err(String::new()),
            Said::Refused(why) => Err(format!(", on which the predicate raises {why}")),
            Said::BadTests(why) => return Err(GradeError::Task(format!("the predicate cannot be loaded: {why}"))),
            Said::Late if !last => {
                self.seen = tester.finish()?.cpu;
                return Ok(None);
            }
            Said::Late => {
                let facts = tester.outlast()?;
                return if at_fault(&facts, self.opts.per_call) { Ok(None) } else { Err(overloaded(&facts)) };
            }
            Said::Ended => return self.ended(&tester.finish()?),
            _ => return Err(GradeError::Task("the predicate wrote something else than its answer".to_owned())),
        };
        self.tester = Some(tester);
        Ok(Some(answer))
    }

    fn ended(&self, facts: &Facts) -> Result<Option<Answer>, GradeError> {
        if facts.oom {
            return Ok(Some(Err(", on which the predicate needs too much memory".to_owned())));
        }
        if facts.timed_out {
            return if at_fault(facts, self.opts.per_call) { Ok(None) } else { Err(overloaded(facts)) };
        }
        Err(GradeError::Task("the predicate ended its process".to_owned()))
    }

    /// One that lives as long as the suite, or, to repeat an order, so long that its end tells whose fault it is.
    fn start(&self, last: bool) -> Result<Tester, GradeError> {
        let call = self.opts.per_call;
        let life = match last {
            true if self.seen >= call / 20 => Life { wall: STARVED * call, cpu: 2 * call },
            true => Life { wall: ASLEEP * call, cpu: 2 * call },
            false => Life { wall: MANY * (self.opts.total + call), cpu: self.opts.total + 2 * call },
        };
        Tester::start(self.sandbox, &self.opts.limits, life)
    }

    /// Ends the process, if there is one.
    pub fn finish(self) -> Result<(), GradeError> {
        if let Some(tester) = self.tester {
            tester.finish()?;
        }
        Ok(())
    }
}

/// The process mostly waits for the solution, which has its own limits: its wall clock only must not end it.
const MANY: u32 = 20;

fn key(index: usize, got: &[Node]) -> Result<[u8; 32], GradeError> {
    let body = serde_json::to_vec(got).map_err(|e| GradeError::Task(e.to_string()))?;
    Ok(Sha256::new().chain_update((index as u64).to_le_bytes()).chain_update(body).finalize().into())
}
