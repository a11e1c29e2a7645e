//! `rollmill submit slurm`.

use super::{Asked, Wanted};
use crate::{init, model};
use rollmill_job::{Exit, JobError, Run};
use rollmill_submit::slurm::{self, Shared, Submission, Submitted};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill submit slurm --config my.toml --run s3://bucket/exp7 --dry-run\n  \
    rollmill submit slurm --config my.toml --run s3://bucket/exp7 --rounds 3 --begin 22:00")]
pub struct Args {
    #[command(flatten)]
    wanted: Wanted,
    /// Begin at this time, as sbatch takes it: 22:00, now+2hours
    #[arg(long, value_name = "TIME")]
    begin: Option<String>,
    /// Folder of scripts and logs, for all machines (default: slurm/<run> here)
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let wanted = &args.wanted;
    let asked = Asked::read(&wanted.config, wanted.rounds)?;
    let (run, max_array) = match wanted.dry_run {
        true => (wanted.existing(&asked.operations).await?, asked.settings.max_array),
        false => {
            // Before anything is made: this may be no machine of a cluster.
            let limit = slurm::max_array().await?;
            (Some(init::make(&wanted.config, wanted.run.as_deref()).await?), asked.settings.max_array.min(limit))
        }
    };
    // Two submissions at once would both find the same left, and the queue empty. The lock goes with the file.
    let _lock = match &run {
        Some(run) if !wanted.dry_run => lock(run)?,
        _ => None,
    };
    let (progress, facts) = asked.state(run.as_ref()).await?;
    if !asked.estimate(run.as_ref(), &progress, &facts, max_array).await? {
        return Ok(Exit::Complete);
    }
    let submission = Submission {
        chain: &asked.chain,
        progress: &progress,
        sizes: &asked.sizes,
        facts: &facts,
        settings: &asked.settings,
        shared: shared(args, &asked, run.as_ref())?,
        max_array,
        begin: args.begin.clone(),
    };
    if wanted.dry_run {
        for script in submission.scripts()? {
            println!("# {}.sh\n{}", script.name, script.text);
        }
        return Ok(Exit::Complete);
    }
    let submitted = submission.submit().await?;
    for (node, submitted) in asked.chain.nodes.iter().zip(&submitted) {
        match submitted {
            Submitted::Done => {}
            Submitted::Queued(id) => println!("{:<28} is in the queue already: {id}", node.step.name()),
            Submitted::New(id) => println!("{:<28} {id}", node.step.name()),
        }
    }
    println!(
        "Scripts and logs: {}\nFollow it: rollmill status --watch --run {}",
        submission.shared.logs, submission.shared.address
    );
    Ok(Exit::Complete)
}

/// Waits for a submission of the run that is under way, and holds off the next, on machines with the same home.
fn lock(run: &Run) -> Result<Option<File>, JobError> {
    let folder = model::cache().join("submit");
    let path = folder.join(format!("{}.lock", run.id));
    let failed = |e: std::io::Error| JobError::Config { place: path.display().to_string(), reason: e.to_string() };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let file = File::create(&path).map_err(failed)?;
    match file.lock() {
        Ok(()) => Ok(Some(file)),
        Err(e) => {
            eprintln!("submit: {} cannot be locked ({e}): do not submit the same run twice at once", path.display());
            Ok(None)
        }
    }
}

fn shared(args: &Args, asked: &Asked, run: Option<&Run>) -> Result<Shared, JobError> {
    let nowhere = |e: std::io::Error| JobError::Config { place: "submit".into(), reason: e.to_string() };
    let here = std::env::current_dir().map_err(nowhere)?;
    let program = match &asked.settings.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(nowhere)?.display().to_string(),
    };
    let run_id = run.map_or_else(|| "new".to_string(), |run| run.id.clone());
    let name = run_id.get(..8).unwrap_or(&run_id).to_string();
    let folder = args.folder.clone().unwrap_or_else(|| Path::new("slurm").join(name));
    Ok(Shared {
        run_id,
        address: asked.address(&args.wanted, run),
        program,
        logs: here.join(folder).display().to_string(),
        folder: here.display().to_string(),
        flags: asked.flags(),
    })
}
