//! The command line of a step on any scheduler.
//!
//! In: a step, what a worker gets, the number of workers shards are dealt to. Out: the words after `rollmill`.

use crate::chain::Step;
use crate::settings::{EndpointSettings, Resources};

/// Flags that come from `[operations]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// Flags every job of the frame takes.
    pub jobs: Vec<String>,
    /// Flags of rollouts besides.
    pub rollouts: Vec<String>,
    /// Flags of `rollmill budget`; empty: there is none.
    pub budget: Vec<String>,
}

impl Flags {
    /// The words after `rollmill` of one worker of a step, whose shards are dealt to `fold` workers.
    pub fn command(&self, step: &Step, resources: &Resources, fold: u32, endpoint: &EndpointSettings) -> Vec<String> {
        let mut words = step.command();
        let mut flag = |name: &str, value: &str| words.extend([name.to_string(), value.to_string()]);
        match step {
            Step::Train { .. } => flag("--threads", &resources.cpus.to_string()),
            Step::Endpoint { .. } => {
                flag("--threads", &resources.cpus.to_string());
                let wanted = [
                    ("--command", &endpoint.command),
                    ("--host", &endpoint.host),
                    ("--advertise", &endpoint.advertise),
                ];
                wanted.into_iter().filter_map(|(n, v)| Some((n, v.as_ref()?))).for_each(|(n, v)| flag(n, v));
            }
            _ => {
                if step.is_array() {
                    flag("--fold", &fold.to_string());
                }
                words.extend(self.jobs.iter().cloned());
                if let Step::Rollout { .. } = step {
                    words.extend(self.rollouts.iter().cloned());
                }
            }
        }
        words.extend(resources.arguments.iter().cloned());
        words
    }
}
