//! What the frame and the format cost, as Markdown tables.

mod counting;
mod format;
mod frame;

use crate::place::{Kind, Place};
use crate::process;
use crate::weed::{self, Weed};
use std::process::Command;

/// Flags of `bench`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill-chaos bench --rows runs/demo")]
pub struct Args {
    /// A run whose trajectories are written and read; rows made of the example tasks if absent
    #[arg(long, value_name = "FOLDER")]
    rows: Option<std::path::PathBuf>,
    /// Measure the frame on this store only, whose variables are set (started by `bench`)
    #[arg(long, hide = true)]
    frame_at: Option<String>,
}

/// Runs the measurements.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(address) = &args.frame_at {
        return frame::run(address).await;
    }
    println!("## Frame overhead\n");
    println!("{}", frame::HEAD);
    for kind in [Kind::Folder, Kind::S3] {
        frame_on(kind)?;
    }
    println!("\n## Parquet beside gzipped JSONL\n");
    format::run(args.rows.as_deref())
}

/// Measures the frame in a process that sees the store's variables.
fn frame_on(kind: Kind) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = None;
    let place = match kind {
        Kind::Folder => Place::folder(&dir.path().join("run"))?,
        Kind::S3 => {
            let Some(program) = weed::program() else {
                eprintln!("bench: no weed, the frame is measured on a folder alone");
                return Ok(());
            };
            let weed = server.insert(Weed::start(&program, 1)?);
            Place::open(format!("s3://{}/bench", weed::BUCKET), weed.settings())?
        }
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "--frame-at", &place.address]);
    place.tell(&mut command);
    let status = process::start(&mut command)?.wait()?;
    anyhow::ensure!(status.success(), "the measurement ended with {status}");
    Ok(())
}
