//! A run as Slurm jobs: one script a step, in a chain of dependencies over all rounds.
//!
//! In: a chain, its state, sizes and settings. Out: scripts, and jobs in the queue. What must hold: what is done is not submitted,
//! and what waits or runs already is depended on, not submitted again; what depends on a step that failed is taken from the
//! queue; an endpoint does not outlive those that need it.

mod queue;
mod script;

pub use queue::max_array;
pub use script::Shared;

use script::Batch;

use crate::chain::{Chain, Step};
use crate::estimate::{Elements, Facts, Sizes};
use crate::progress::{Progress, State};
use crate::settings::ClusterSettings;
use rollmill_job::JobError;
use std::path::Path;

/// What is submitted, and how.
pub struct Submission<'a> {
    /// The steps.
    pub chain: &'a Chain,
    /// Their state.
    pub progress: &'a Progress,
    /// Sizes of steps that nobody has planned.
    pub sizes: &'a Sizes,
    /// What is known of the run.
    pub facts: &'a Facts,
    /// `[cluster]`.
    pub settings: &'a ClusterSettings,
    /// What all scripts share.
    pub shared: Shared,
    /// Elements of an array, at most.
    pub max_array: u32,
    /// Not before this time, as `sbatch --begin` takes it.
    pub begin: Option<String>,
}

/// A step that is left, and its script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its place in the chain.
    pub node: usize,
    /// Name in the queue.
    pub name: String,
    /// The text.
    pub text: String,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It was done.
    Done,
    /// It waits or runs already.
    Queued(u64),
    /// It was put into the queue.
    New(u64),
}

impl Submitted {
    /// Its job, unless it is done.
    pub fn id(&self) -> Option<u64> {
        match self {
            Submitted::Done => None,
            Submitted::Queued(id) | Submitted::New(id) => Some(*id),
        }
    }
}

impl Submission<'_> {
    /// The scripts of all steps that are left.
    pub fn scripts(&self) -> Result<Vec<Script>, JobError> {
        let mut scripts = Vec::new();
        for (at, (node, state)) in self.chain.nodes.iter().zip(&self.progress.0).enumerate() {
            if *state == State::Done {
                continue;
            }
            let resources = self.settings.resources(node.step.job())?;
            let size = self.sizes.of(&node.step, self.facts);
            let elements = Elements::of(state, &size, &resources, self.max_array);
            let (shared, settings, step) = (&self.shared, self.settings, &node.step);
            let batch = Batch { shared, settings, step, resources: &resources, elements: &elements };
            let text = script::script(&batch);
            scripts.push(Script { node: at, name: self.shared.job_name(&node.step.name()), text });
        }
        Ok(scripts)
    }

    /// Puts what is left and not yet there into the queue; says what became of each step, in the order of the chain.
    pub async fn submit(&self) -> Result<Vec<Submitted>, JobError> {
        let scripts = self.scripts()?;
        write_scripts(Path::new(&self.shared.logs), &scripts)?;
        let queued = queue::queued().await?;
        let mut all = vec![Submitted::Done; self.chain.nodes.len()];
        for script in &scripts {
            all[script.node] = match queued.get(&script.name) {
                Some(id) => Submitted::Queued(*id),
                None => {
                    let options = self.options(script.node, &all);
                    Submitted::New(queue::submit(&script.text, &options).await?)
                }
            };
        }
        self.close_endpoints(&all, &queued).await?;
        Ok(all)
    }

    /// Options that depend on what was submitted before.
    fn options(&self, node: usize, all: &[Submitted]) -> Vec<String> {
        let node = &self.chain.nodes[node];
        let ids = |nodes: &mut dyn Iterator<Item = usize>| {
            nodes.filter_map(|at| all[at].id()).map(|id| format!(":{id}")).collect::<String>()
        };
        let (after, beside) = (ids(&mut node.after.iter().copied()), ids(&mut node.beside.into_iter()));
        let conditions: Vec<String> = [("afterok", after), ("after", beside)]
            .into_iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(when, ids)| format!("{when}{ids}"))
            .collect();
        let mut options = Vec::new();
        if !conditions.is_empty() {
            options.push(format!("--dependency={}", conditions.join(",")));
        } else if let Some(begin) = &self.begin {
            options.push(format!("--begin={begin}"));
        }
        options
    }

    /// A small job after all that need an endpoint, whatever became of them: it takes the endpoint from the queue, after a
    /// moment in which one whose stages are done ends by itself.
    async fn close_endpoints(
        &self,
        all: &[Submitted],
        queued: &std::collections::BTreeMap<String, u64>,
    ) -> Result<(), JobError> {
        for (at, node) in self.chain.nodes.iter().enumerate() {
            let (Step::Endpoint { round, .. }, Some(endpoint)) = (&node.step, all[at].id()) else { continue };
            let users = self.chain.nodes.iter().enumerate().filter(|(_, user)| user.beside == Some(at));
            let users: String = users.filter_map(|(user, _)| all[user].id()).map(|id| format!(":{id}")).collect();
            let name = self.shared.job_name(&format!("close-{round:04}"));
            if users.is_empty() || queued.contains_key(&name) {
                continue;
            }
            let text = self.close_script(&name, endpoint);
            queue::submit(&text, &[format!("--dependency=afterany{users}")]).await?;
        }
        Ok(())
    }

    fn close_script(&self, name: &str, endpoint: u64) -> String {
        let logs = &self.shared.logs;
        let place = |option: &str, value: &Option<String>| {
            value.as_ref().map_or(String::new(), |value| format!("#SBATCH --{option}={value}\n"))
        };
        let partition = self.settings.resources("evaluate").ok().and_then(|resources| resources.partition);
        format!(
            "#!/bin/bash\n#SBATCH --job-name={name}\n#SBATCH --output={logs}/%x-%j.log\n#SBATCH --time=00:05:00\n\
             #SBATCH --ntasks=1\n#SBATCH --cpus-per-task=1\n#SBATCH --mem=100M\n{}{}sleep 20\nscancel --quiet {endpoint} || true\n",
            place("partition", &partition),
            place("account", &self.settings.account)
        )
    }
}

/// Keeps the scripts beside the logs, for people.
fn write_scripts(folder: &Path, scripts: &[Script]) -> Result<(), JobError> {
    let failed = |e: std::io::Error| JobError::Config {
        place: folder.display().to_string(),
        reason: format!("scripts cannot be written there ({e})"),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    for script in scripts {
        std::fs::write(folder.join(format!("{}.sh", script.name)), &script.text).map_err(failed)?;
    }
    Ok(())
}
