//! `rollmill sandbox`: what this machine can isolate, and the root file systems that programs see.

use crate::grade::Format;
use rollmill_job::{Exit, JobError};
use rollmill_sandbox::{Check, NamespacesOptions, RootSource, SandboxError, State, check, prepare, prepared};
use serde_json::json;
use std::path::PathBuf;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Say in a table what this machine can isolate, why something is missing and what to do
    #[command(after_help = "Example:\n  rollmill sandbox check --format json")]
    Check {
        /// How to print
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Make a root file system once, to be kept read-only
    #[command(after_help = "Examples:\n  rollmill sandbox prepare cpp --profile cpp\n  \
        rollmill sandbox prepare tools --packages gcc,python3-pytest\n  \
        docker export CONTAINER > image.tar; rollmill sandbox prepare mine --image image.tar")]
    Prepare(Prepare),
    /// List the root file systems that were made, with their digests
    #[command(after_help = "Example:\n  rollmill sandbox list")]
    List,
}

#[derive(Clone, Debug, clap::Args)]
struct Prepare {
    /// Its name: what `root` in [operations.sandbox] and `grade --root` say
    name: String,
    /// Tool chains from Debian packages: cpp, rust, go, javascript, shell, python, or all
    #[arg(long, group = "source")]
    profile: Option<String>,
    /// Debian packages, with all they need (Debian or Ubuntu, no root)
    #[arg(long, value_delimiter = ',', group = "source")]
    packages: Option<Vec<String>>,
    /// A tar of `docker export` or `docker save`, or an unpacked folder
    #[arg(long, group = "source")]
    image: Option<PathBuf>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    tokio::task::block_in_place(|| match &args.command {
        Command::Check { format } => Ok(report(*format)),
        Command::Prepare(args) => make(args),
        Command::List => {
            for (name, root) in prepared(&NamespacesOptions::default().cache_dir) {
                println!("{name:<12} {}  {}", &root.digest[..16], root.made_of);
            }
            Ok(Exit::Complete)
        }
    })
}

/// Exit 2 if no sandbox can be opened here.
fn report(format: Format) -> Exit {
    let mut rows = check(&NamespacesOptions::default());
    rows.push(rollmill_backend::check_docker());
    match format {
        Format::Json => {
            let row = |r: &Check| json!({ "name": r.name, "state": r.state.to_string(), "why": r.why, "todo": r.todo });
            println!("{}", json!(rows.iter().map(row).collect::<Vec<_>>()));
        }
        Format::Text => rows.iter().for_each(print),
    }
    let reached = rows.iter().find(|row| row.name == "level").is_none_or(|row| row.state != State::No);
    if reached { Exit::Complete } else { Exit::Usage }
}

fn print(row: &Check) {
    println!("{:<18} {:<8} {}", row.name, row.state.to_string(), row.why);
    if !row.todo.is_empty() {
        println!("{:<27} {}", "", row.todo);
    }
}

fn make(args: &Prepare) -> Result<Exit, JobError> {
    let wrong = |place: &str, reason: String| JobError::Config { place: place.into(), reason };
    let source = match (&args.profile, &args.packages, &args.image) {
        (Some(profile), ..) => RootSource::profile(profile).ok_or_else(|| {
            wrong("--profile", format!("{profile:?} is unknown: cpp, rust, go, javascript, shell, python or all"))
        })?,
        (_, Some(packages), _) => RootSource::Packages(packages.clone()),
        (.., Some(image)) => RootSource::Image(image.clone()),
        _ => return Err(wrong("prepare", "say --profile, --packages or --image".into())),
    };
    eprintln!("sandbox: making {} of {source}", args.name);
    let root = prepare(&args.name, &source, &NamespacesOptions::default().cache_dir).map_err(refused)?;
    println!("{}  {}", args.name, root.digest);
    Ok(Exit::Complete)
}

fn refused(e: SandboxError) -> JobError {
    match e.is_transient() {
        true => JobError::Unavailable { reason: e.to_string() },
        false => JobError::Config { place: "sandbox".into(), reason: e.to_string() },
    }
}
