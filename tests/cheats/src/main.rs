//! Grades the whole corpus, or a part, and prints Markdown; or prints the corpus as JSON lines.

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use rollmill_cheats::cheat::{self, Baselines, Cheat, try_cheat};
use rollmill_cheats::class::{CLASSES, class_of};
use rollmill_cheats::honest::{self, try_honest};
use rollmill_cheats::label::{Grader, Unlabelled, or_unknown};
use rollmill_cheats::{Corpus, campaign, project, report, sandbox};
use rollmill_sandbox::{Limits, Spec};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum What {
    /// Everything below
    All,
    /// Cheats beside the same wrong solutions without the trick, and the naive grader
    Cheats,
    /// Honest rewrites of right solutions
    Honest,
    /// Milliseconds of a grade beside a bare run
    Time,
    /// Print the corpus as JSON lines, graded by nobody
    List,
}

/// Cheats and honest solutions, labelled by execution
#[derive(Parser)]
#[command(after_help = "Example:\n  rollmill-cheats cheats --class exit_early --sample 50 --seed 3")]
struct Args {
    #[arg(value_enum, default_value = "all")]
    what: What,
    /// Only cheats of this class (a folder of the corpus)
    #[arg(long)]
    class: Option<String>,
    /// Order of calls, choice of rewrites, place of the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// At most so many cheats, and so many honest solutions, spread over all
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Graded at once
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Start an interpreter for every run, instead of keeping some loaded
    #[arg(long)]
    cold: bool,
    /// Do not ask the naive grader
    #[arg(long)]
    no_control: bool,
    /// Also print a line for every cheat: its id, what it earned, without the trick, whether the control was fooled
    #[arg(long)]
    each: bool,
    /// Converts asserts and rewrites sources; reads them only
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(name) = args.class.as_deref().filter(|name| class_of(name).is_none()) {
        bail!("no class {name}: choose from {}", CLASSES.map(|c| c.name).join(", "));
    }
    let project = project().context("no Cargo.lock above the current folder: run it in a checkout of the project")?;
    let corpus = Corpus::load(&project, &args.python)?;
    if args.what == What::List {
        return list(&args, &corpus);
    }
    let sandbox = sandbox(args.cold)?;
    let (grader, short) = (Grader::new(sandbox.as_ref(), args.seed), Grader::short(sandbox.as_ref(), args.seed));
    let interpreters = if args.cold { "cold" } else { "kept loaded" };
    println!("seed {}, isolation {}, interpreters {interpreters}", args.seed, sandbox.level().level);
    if matches!(args.what, What::All | What::Cheats) {
        println!("\n{}", cheats(&args, &corpus, &short)?);
    }
    if matches!(args.what, What::All | What::Honest) && args.class.is_none() {
        println!("\n{}", honests(&args, &corpus, &grader)?);
    }
    if matches!(args.what, What::All | What::Time) {
        println!("\n{}", times(&corpus, &grader)?);
    }
    println!("\nasked again on an overloaded machine: {}", grader.asked_again() + short.asked_again());
    Ok(())
}

fn chosen<'a>(args: &Args, corpus: &'a Corpus) -> Vec<Cheat<'a>> {
    let mut cheats = cheat::all(&corpus.templates, &corpus.tasks);
    cheats.retain(|c| args.class.as_deref().is_none_or(|class| c.template.class == class));
    campaign::sample(cheats, args.sample, args.seed)
}

fn cheats(args: &Args, corpus: &Corpus, grader: &Grader<'_>) -> Result<String> {
    let chosen = chosen(args, corpus);
    let base = Baselines::of(grader, &corpus.tasks)?;
    eprintln!("{} cheats", chosen.len());
    let outcomes =
        campaign::each(&chosen, args.threads, |c| or_unknown(try_cheat(grader, &base, c, !args.no_control)))?;
    let outcomes = known(outcomes);
    if args.each {
        outcomes.iter().for_each(|o| println!("{}", report::one(o)));
    }
    Ok(report::cheats("T0", &outcomes))
}

fn honests(args: &Args, corpus: &Corpus, grader: &Grader<'_>) -> Result<String> {
    let all = honest::all(&corpus.references, &args.python, args.seed)?;
    let chosen = campaign::sample(all, args.sample, args.seed);
    eprintln!("{} honest solutions", chosen.len());
    let outcomes = campaign::each(&chosen, args.threads, |h| or_unknown(try_honest(grader, h)))?;
    Ok(report::honest(&known(outcomes)))
}

/// Leaves out, and names, what nothing could be learned about.
fn known<T>(tried: Vec<Result<T, Unlabelled>>) -> Vec<T> {
    tried.into_iter().filter_map(|t| t.map_err(|e| println!("- nothing is known: {e}")).ok()).collect()
}

/// One after the other, so that nothing of this program runs beside.
fn times(corpus: &Corpus, grader: &Grader<'_>) -> Result<String> {
    let bare = |code: &str| -> Result<f64> {
        let argv = ["python3", "-I", "-S", "-c", code].map(String::from).to_vec();
        let limits = Limits { wall: Duration::from_secs(60), ..Limits::default() };
        let spec = Spec { argv, limits, ..Spec::default() };
        let timed = |_| {
            let began = Instant::now();
            grader.sandbox.run(&spec).map(|_| began.elapsed())
        };
        Ok(report::median_ms((0..60).map(timed).collect::<Result<_, _>>()?))
    };
    let bare = bare("pass")?;
    let references = corpus.references.iter().take(60);
    let graded = references.map(|r| {
        let solution = rollmill_grader::Solution::from_source(&r.source);
        grader.label(&solution, &r.entry, &r.tests_a, None).map(|label| label.wall)
    });
    let t0 = report::median_ms(graded.collect::<Result<_, _>>()?);
    Ok(format!(
        "| median of 60 | ms |\n|---|---|\n| a bare run of `python3 -I -S -c pass` in the sandbox | {bare:.1} |\n| a grade at T0 (5 or 6 cases) | {t0:.1} |"
    ))
}

fn list(args: &Args, corpus: &Corpus) -> Result<()> {
    for cheat in chosen(args, corpus) {
        println!("{}", serde_json::to_string(&cheat::Row::of(&cheat))?);
    }
    if args.class.is_none() {
        for honest in
            campaign::sample(honest::all(&corpus.references, &args.python, args.seed)?, args.sample, args.seed)
        {
            println!("{}", serde_json::to_string(&honest::Row::of(&honest))?);
        }
    }
    Ok(())
}
