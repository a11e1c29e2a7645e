//! `rollmill grade`: one solution of one task of any tier, graded as `score` would.

use rollmill_backend::Keep;
use rollmill_grader::{Preset, RewardConfig, T0Options};
use rollmill_job::config::SandboxSettings;
use rollmill_job::{Exit, JobError};
use rollmill_sandbox::{Level, SandboxError};
use rollmill_schema::Candidate;
use rollmill_score::{Graded, Suites, grade_solution};
use rollmill_synthesize::parse_task;
use std::path::PathBuf;
use std::sync::Arc;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill grade --tasks examples/tasks/list_sums.jsonl --task list_sums/sum_evens \
    --solution solution.py --format json")]
pub struct Args {
    /// Tasks as simple JSONL: task_id, question, test_cases, optional tests_b; a function's entry_point, or another kind
    #[arg(long, value_name = "FILE")]
    tasks: PathBuf,
    /// Id of the task
    #[arg(long, value_name = "ID")]
    task: String,
    /// The solution: a file, a folder with solution.py (a program: main.cpp and so on), or a repository's whole tree
    #[arg(long, value_name = "PATH")]
    solution: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// How counts become a reward
    #[arg(long, value_enum, default_value_t = PresetName::Pure)]
    preset: PresetName,
    /// Seconds one call, case or request may take; a test of a repository gets ten times as long
    #[arg(long, default_value_t = 5.0)]
    call_seconds: f64,
    /// Root file system with the tool chain, as `rollmill sandbox prepare` named it (default: this machine's Python)
    #[arg(long, value_name = "NAME")]
    root: Option<String>,
    /// Leave in this folder what went into each sandbox and what came out
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PresetName {
    Pure,
    Shaped,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let task = find(args)?;
    let bad = |place: &std::path::Path, reason: String| JobError::Config { place: place.display().to_string(), reason };
    if !(args.call_seconds > 0.0 && args.call_seconds <= 3600.0) {
        let reason = "give seconds above 0 and at most 3600".into();
        return Err(JobError::Config { place: "--call-seconds".into(), reason });
    }
    let suites = Suites::of(&task.entry_point, &task.tests_a, task.tests_b.as_deref());
    let suites = suites.map_err(|e| bad(&args.tasks, e.to_string()))?;
    let solution = suites.a.read_solution(&args.solution).map_err(|e| bad(&args.solution, e.to_string()))?;
    let preset = match args.preset {
        PresetName::Pure => Preset::Pure,
        PresetName::Shaped => Preset::Shaped,
    };
    let reward = RewardConfig { preset, ..RewardConfig::default() };
    let per_call = std::time::Duration::from_secs_f64(args.call_seconds);
    let options = T0Options { per_call, ..T0Options::default() };
    let settings = SandboxSettings { root: args.root.clone(), warm: false, ..SandboxSettings::default() };
    let keep = args.keep.clone();
    let graded = tokio::task::spawn_blocking(move || {
        let mut sandbox = rollmill_backend::from_settings(&settings, Level::Watched)?;
        let kept = |e: SandboxError| JobError::Config { place: "--keep".into(), reason: e.to_string() };
        if let Some(folder) = keep {
            sandbox = Arc::new(Keep::new(sandbox, &folder).map_err(kept)?);
        }
        Ok::<_, JobError>(grade_solution(sandbox.as_ref(), &solution, &suites, &reward, &options))
    });
    let graded = graded.await.map_err(|e| JobError::Unavailable { reason: format!("the grader died ({e})") })?;
    match graded? {
        Ok(graded) => print(args, &task, &graded),
        Err(error) => {
            let reason = error.to_string();
            // The third outcome: nothing is known about the solution.
            if args.format == Format::Json {
                println!(
                    "{}",
                    serde_json::json!({ "task_id": args.task, "status": "infrastructure", "error": reason })
                );
            }
            return Err(match error.is_transient() {
                true => JobError::Unavailable { reason },
                false => JobError::Config { place: args.tasks.display().to_string(), reason },
            });
        }
    }
    Ok(Exit::Complete)
}

fn find(args: &Args) -> Result<Candidate, JobError> {
    let place = args.tasks.display().to_string();
    let bad = |place: String, reason: String| JobError::Config { place, reason };
    let text = std::fs::read_to_string(&args.tasks).map_err(|e| bad(place.clone(), format!("cannot be read ({e})")))?;
    let mut names = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let at = format!("{place}:{}", number + 1);
        let object: serde_json::Map<String, serde_json::Value> = match serde_json::from_str(line) {
            Ok(object) => object,
            Err(e) => {
                eprintln!("{at}: no JSON object ({e}); the line is left out");
                continue;
            }
        };
        let id = match object.get("task_id") {
            Some(serde_json::Value::String(id)) => id.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        if id == args.task {
            return parse_task(object).map_err(|reason| bad(at, reason));
        }
        names.push(id);
    }
    names.truncate(5);
    Err(bad(place, format!("holds no task {:?}; it has {} ...", args.task, names.join(", "))))
}

fn print(args: &Args, task: &Candidate, graded: &Graded) {
    if args.format == Format::Json {
        let mut json = serde_json::json!(graded);
        json["task_id"] = args.task.clone().into();
        println!("{json}");
        return;
    }
    let name = if task.entry_point.is_empty() { &task.kind } else { &task.entry_point };
    let proven = if graded.proven { "" } else { ", unproven: no tests B at T0 or T1 stand behind it" };
    println!("task      {}  {name}", args.task);
    println!("tier      {}{proven}", graded.tier);
    println!("tests A   {} of {}", graded.tests_a.passed, graded.tests_a.total);
    if let Some(b) = graded.tests_b {
        println!("tests B   {} of {}", b.passed, b.total);
    }
    let c = graded.components;
    println!("compiles  {}   style {:.2}", if c.compiles > 0.0 { "yes" } else { "no" }, c.style);
    println!("reward    {}", graded.reward);
    if let Some(error) = &graded.error {
        println!("error     {error}");
    }
    for verdict in &graded.verdicts {
        let outcome = serde_json::json!(verdict.case.outcome);
        let outcome = outcome.as_str().unwrap_or_default();
        println!("  {} {:>3}  {outcome:<12} {}", verdict.suite, verdict.case.index, verdict.case.detail);
    }
}
