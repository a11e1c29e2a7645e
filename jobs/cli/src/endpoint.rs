//! `rollmill endpoint`: serve the checkpoint of a round to workers on other machines, as a job of its own.
//!
//! In: a committed checkpoint, and the stages that need it. Out: a server, and its address in the store until those stages are
//! done. What must hold: the address is published after the server answers and closed before it ends; a server that dies ends
//! this process, so that a scheduler starts both anew.

use crate::sections::ServeConfig;
use crate::serving::{self, Serving, Setup};
use crate::{model, run};
use rollmill_job::inspect::{self, Left};
use rollmill_job::{Drain, Exit, JobError, Run, Stage, checkpoint, env, peak_memory_of, service, write_report};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Pause between two looks at what is done.
const LOOK: Duration = Duration::from_secs(2);

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  rollmill endpoint --run s3://bucket/exp7 --round 2 --until rollout/train/round-0003\n  \
    rollmill endpoint --run s3://bucket/exp7 --round 0 \\\n    \
    --command 'vllm serve {model} --host {host} --port {port} --logprobs-mode processed_logprobs'"
)]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Serve the last checkpoint of this round
    #[arg(long)]
    round: u32,
    /// End when this stage is done; may be given more than once. Without it, serve until a signal comes
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    until: Vec<Stage>,
    /// Address to listen on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    host: IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Name or address by which workers reach this machine (default: --host, or this machine's name where that is any)
    #[arg(long, value_name = "NAME")]
    advertise: Option<String>,
    /// Start this shell command instead of rollmill-serve; {model}, {checkpoint}, {host} and {port} are filled in
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Threads of rollmill-serve (default: all cores)
    #[arg(long)]
    threads: Option<u32>,
}

/// A stage by its name.
pub fn stage(name: &str) -> Result<Stage, String> {
    Stage::of_name(name).ok_or_else(|| "no such stage; one is rollout/train/round-0001".into())
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let mut run = Run::open(&args.run).await?;
    run.drain = Drain::on_signals()?;
    if all_done(&run, &args.until).await? {
        return Ok(Exit::Complete);
    }
    let manifest = checkpoint::of_round(&run, args.round).await?;
    let config: ServeConfig = run.config.section("serve")?;
    let folder = model::cache().join("serve").join(format!("{}-{}", run.id, run.attempt));
    let setup = Setup {
        config,
        threads: args.threads,
        host: args.host,
        port: args.port,
        command: args.command.clone(),
        folder: folder.clone(),
    };
    let served = match serving::start(&run, &manifest, &setup).await {
        Ok(serving) => serve(&run, &manifest, args, serving).await,
        Err(e) => Err(e),
    };
    let _ = std::fs::remove_dir_all(&folder); // a copy that is left costs only room
    served
}

/// Publishes the server, and ends it when it is needed no longer.
async fn serve(
    run: &Run,
    manifest: &rollmill_job::checkpoint::Manifest,
    args: &Args,
    mut serving: Serving,
) -> Result<Exit, JobError> {
    let url = format!("http://{}:{}", advertised(args)?, serving.port);
    let since = Instant::now();
    let service = service::publish(run, manifest, &url).await?;
    eprintln!("endpoint: round {} is served at {url}", args.round);
    let ended = watch(run, args, &mut serving).await;
    let peak = serving.child.id().map_or(0, peak_memory_of);
    service::close(run, &service).await?;
    run::terminate(&serving.child);
    let _ = serving.child.wait().await;
    // For people only: that it could not be written changes nothing.
    let _ = write_report(run, "serve", since.elapsed().as_secs_f64(), peak).await;
    ended
}

/// Until the stages are done, a signal comes or the server dies.
async fn watch(run: &Run, args: &Args, serving: &mut Serving) -> Result<Exit, JobError> {
    loop {
        tokio::select! {
            status = serving.child.wait() => {
                let said = status.map_or_else(|e| e.to_string(), |s| s.to_string());
                return Err(JobError::Unavailable { reason: format!("the server ended by itself ({said})") });
            }
            () = run.drain.raised() => {
                return Ok(if args.until.is_empty() { Exit::Complete } else { Exit::Again });
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        match all_done(run, &args.until).await {
            Ok(true) => return Ok(Exit::Complete),
            Ok(false) => {}
            // A store that is away for a moment is no reason to take the policy from everybody.
            Err(JobError::Store(e)) if e.is_transient() => {}
            Err(e) => return Err(e),
        }
    }
}

/// Whether there are stages to wait for, and all are done.
async fn all_done(run: &Run, until: &[Stage]) -> Result<bool, JobError> {
    for stage in until {
        if inspect::left(run, stage).await? != Left::Done {
            return Ok(false);
        }
    }
    Ok(!until.is_empty())
}

/// How others reach this machine.
fn advertised(args: &Args) -> Result<String, JobError> {
    if let Some(name) = &args.advertise {
        return Ok(name.clone());
    }
    if !args.host.is_unspecified() {
        return Ok(match args.host {
            IpAddr::V4(host) => host.to_string(),
            IpAddr::V6(host) => format!("[{host}]"),
        });
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let nameless = || JobError::Config {
        place: "--advertise".into(),
        reason: "this machine has no name; say how workers reach it".into(),
    };
    if name.is_empty() { Err(nameless()) } else { Ok(name.into()) }
}
