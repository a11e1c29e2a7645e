//! `rollmill submit k8s`.

use super::conduct::said;
use super::{Asked, Wanted};
use crate::{checks, init};
use rollmill_job::inspect::{self, Left};
use rollmill_job::{Drain, Exit, JobError, Run, Stage};
use rollmill_submit::k8s::{Conduct, Conductor, Kubectl, Manifests, yaml};
use rollmill_submit::{Facts, Progress};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  rollmill submit k8s --config my.toml --run s3://bucket/exp7 --dry-run > run.yaml\n  \
    rollmill submit k8s --config my.toml --run s3://bucket/exp7 --rounds 3\n  \
    rollmill submit k8s --config my.toml --run s3://bucket/exp7 --schedule '0 22 * * *'"
)]
pub struct Args {
    #[command(flatten)]
    wanted: Wanted,
    /// Keep the order of steps from here, until all are done, instead of by a conductor in the cluster
    #[arg(long, conflicts_with_all = ["schedule", "argo"])]
    here: bool,
    /// Submit anew at these times, as cron writes them: '0 22 * * *'
    #[arg(long, value_name = "CRON", conflicts_with = "argo")]
    schedule: Option<String>,
    /// As an Argo Workflow, which keeps the order itself
    #[arg(long)]
    argo: bool,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let wanted = &args.wanted;
    let asked = Asked::read(&wanted.config, wanted.rounds)?;
    let kubectl = Kubectl::new(&asked.settings.k8s);
    asked.settings.k8s.check_address(&asked.address(wanted, None))?;
    let run = match wanted.dry_run {
        true => wanted.existing(&asked.operations).await?,
        false => Some(make(args, &kubectl).await?),
    };
    let (progress, facts) = asked.state(run.as_ref()).await?;
    if !asked.estimate(run.as_ref(), &progress, &facts, asked.settings.max_array).await? {
        return Ok(Exit::Complete);
    }
    let manifests = asked.manifests(run.as_ref(), asked.address(wanted, run.as_ref()));
    let conduct = Conduct {
        config: std::fs::read_to_string(&wanted.config).map_err(|e| JobError::Config {
            place: wanted.config.display().to_string(),
            reason: format!("cannot be read ({e})"),
        })?,
        rounds: asked.rounds,
        schedule: args.schedule.clone(),
    };
    let to = To { args, asked: &asked, manifests, conduct, kubectl };
    match run {
        Some(run) if !wanted.dry_run => to.submit(&run, &progress, &facts).await,
        _ => to.print(&progress, &facts),
    }
}

/// The run, with its candidates: the sources lie here, not in the cluster.
async fn make(args: &Args, kubectl: &Kubectl) -> Result<Run, JobError> {
    // Before anything is made: there may be no cluster to reach from here.
    kubectl.live("none").await?;
    let run = init::make(&args.wanted.config, args.wanted.run.as_deref()).await?;
    if inspect::left(&run, &Stage::synthesize()).await? != Left::Done {
        let program = checks::beside("rollmill").ok_or_else(|| JobError::Config {
            place: "submit".into(),
            reason: "this program does not know where it lies; run `rollmill synthesize` first".into(),
        })?;
        let status = tokio::process::Command::new(program).arg("synthesize").arg("--run").arg(run.address()).status();
        let code = status.await.ok().and_then(|status| status.code());
        match code.and_then(Exit::from_code) {
            Some(Exit::Complete) => {}
            Some(Exit::Again | Exit::Elsewhere) => {
                return Err(JobError::Unavailable { reason: "synthesize did not come to its end; see above".into() });
            }
            _ => {
                let reason = "was refused; mend what its message above says".into();
                return Err(JobError::Config { place: "synthesize".into(), reason });
            }
        }
    }
    Ok(run)
}

/// What is submitted, and where.
struct To<'a> {
    args: &'a Args,
    asked: &'a Asked,
    manifests: Manifests<'a>,
    conduct: Conduct,
    kubectl: Kubectl,
}

impl To<'_> {
    /// The manifests, for people and for programs that apply them.
    fn print(&self, progress: &Progress, facts: &Facts) -> Result<Exit, JobError> {
        let manifests = &self.manifests;
        if self.args.argo {
            let workflow = manifests.workflow(progress, facts)?;
            print!("{}{}", yaml(&manifests.ground())?, yaml(&[workflow])?);
            return Ok(Exit::Complete);
        }
        let mut objects = manifests.ground();
        if !self.args.here {
            objects.extend(manifests.conductor_ground(&self.conduct));
            objects.push(manifests.conductor(&self.conduct)?);
        }
        objects.extend(manifests.steps(progress, facts)?);
        print!("{}", yaml(&objects)?);
        Ok(Exit::Complete)
    }

    async fn submit(&self, run: &Run, progress: &Progress, facts: &Facts) -> Result<Exit, JobError> {
        let (manifests, kubectl) = (&self.manifests, &self.kubectl);
        if self.args.argo {
            let workflow = manifests.workflow(progress, facts)?;
            kubectl.apply(&manifests.ground()).await?;
            println!("{}", kubectl.create_workflow(&workflow, &run.id).await?);
            return Ok(Exit::Complete);
        }
        // Refused, if it is, before anything is there.
        let object = manifests.conductor(&self.conduct)?;
        kubectl.apply(&manifests.ground()).await?;
        let conductor = Conductor { manifests, kubectl, run };
        if self.args.here {
            let patient = Kubectl::patient(&self.asked.settings.k8s);
            let conductor = Conductor { kubectl: &patient, ..conductor };
            return said(conductor.conduct(&Drain::on_signals()?, true).await?);
        }
        conductor.clean().await?;
        kubectl.apply(&manifests.conductor_ground(&self.conduct)).await?;
        match self.args.schedule {
            Some(_) => kubectl.apply(&[object]).await?,
            None => conductor.begin(&object, &self.conduct.submission()).await?,
        }
        let name = manifests.conductor_name();
        println!("{name} keeps the order of steps. Follow it: rollmill status --watch --run {}", manifests.address);
        Ok(Exit::Complete)
    }
}
