//! `rollmill doctor`: what is there, what is missing, what to do.

use crate::checks::{self, Finding};
use crate::grade::Format;
use rollmill_job::{Exit, JobError, env};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill doctor --run s3://bucket/exp7 --endpoint http://gpu-node:8000")]
pub struct Args {
    /// A run, or an address for one
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: Option<String>,
    /// A policy endpoint
    #[arg(long, env = env::ENDPOINT)]
    endpoint: Option<String>,
    /// The base model
    #[arg(long, default_value = "smollm2-135m-instruct")]
    model: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command. Exit 2 if something that was asked for is missing.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let findings = vec![
        checks::store(args.run.as_deref()).await,
        checks::endpoint(args.endpoint.as_deref()).await,
        checks::tokenizer(&args.model),
        tokio::task::block_in_place(checks::sandbox),
        checks::libtorch(),
        checks::gpu(),
    ];
    match args.format {
        Format::Json => println!("{}", serde_json::json!(findings)),
        Format::Text => findings.iter().for_each(print),
    }
    Ok(if findings.iter().any(|f| f.ok == Some(false)) { Exit::Usage } else { Exit::Complete })
}

fn print(finding: &Finding) {
    let mark = match finding.ok {
        Some(true) => "ok",
        Some(false) => "MISSING",
        None => "-",
    };
    println!("{:<10} {mark:<8} {}", finding.name, finding.found);
    if !finding.todo.is_empty() {
        println!("{:<19} {}", "", finding.todo);
    }
}
