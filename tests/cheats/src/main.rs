//! Grades the whole corpus, or a part, and prints Markdown; or prints the corpus as JSON lines.

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use rollmill_cheats::cheat::{self, Baselines, Cheat, try_cheat};
use rollmill_cheats::class::{CLASSES, class_of};
use rollmill_cheats::honest::{self, try_honest};
use rollmill_cheats::label::{Grader, Unlabelled, or_unknown};
use rollmill_cheats::task::Task;
use rollmill_cheats::tier::Tier;
use rollmill_cheats::{Corpus, campaign, kinds, project, report, sandbox, sandbox_with_tools};
use rollmill_grader::Solution;
use rollmill_sandbox::{Limits, Spec};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum What {
    /// Everything below
    All,
    /// Cheats beside the same wrong solutions without the trick, and the naive grader
    Cheats,
    /// The same for programs in other languages, servers and suites of pytest
    Kinds,
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
    /// Only at this tier: T0, T0-written, T1 or T2
    #[arg(long)]
    tier: Option<String>,
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
    /// At T0 every form of a template on one task only, and all of these to the naive grader as well
    #[arg(long)]
    once: bool,
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
    if let Some(name) = args.tier.as_deref().filter(|name| Tier::ALL.iter().all(|t| t.name() != *name)) {
        bail!("no tier {name}: choose from {}", Tier::ALL.map(Tier::name).join(", "));
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
    for tier in Tier::ALL.into_iter().filter(|t| args.tier.as_deref().is_none_or(|name| name == t.name())) {
        if matches!(args.what, What::All | What::Cheats) {
            println!("\n{}", cheats(&args, tier, &corpus, &short)?);
        }
        if matches!(args.what, What::All | What::Honest) && args.class.is_none() {
            println!("\n{}", honests(&args, &project, tier, &corpus, &grader)?);
        }
    }
    if matches!(args.what, What::All | What::Kinds) {
        println!("\n{}", kinds(&args, &project)?);
    }
    if matches!(args.what, What::All | What::Time) {
        println!("\n{}", times(&corpus, &grader)?);
    }
    println!("\nasked again on an overloaded machine: {}", grader.asked_again() + short.asked_again());
    Ok(())
}

/// At T0 every template on every task in every form; elsewhere, where a grade takes longer, every form of a template twice.
fn chosen<'a>(args: &Args, tier: Tier, corpus: &'a Corpus) -> Vec<Cheat<'a>> {
    let (templates, tasks) = (&corpus.templates, &corpus.tasks);
    let mut cheats = match tier {
        Tier::Calls if args.once => cheat::once_each(templates, tasks, 0),
        Tier::Calls => cheat::all(templates, tasks),
        _ => (0..2).flat_map(|turn| cheat::once_each(templates, tasks, turn)).collect(),
    };
    cheats.retain(|c| args.class.as_deref().is_none_or(|class| c.template.class == class));
    campaign::sample(cheats, args.sample, args.seed)
}

/// The control is asked about every form of every template once at T0, and about all elsewhere.
fn cheats(args: &Args, tier: Tier, corpus: &Corpus, grader: &Grader<'_>) -> Result<String> {
    let chosen = chosen(args, tier, corpus);
    let once = cheat::once_each(&corpus.templates, &corpus.tasks, 0);
    let once: HashSet<String> = once.iter().map(Cheat::id).collect();
    let asked = |c: &Cheat<'_>| !args.no_control && (tier != Tier::Calls || once.contains(&c.id()));
    let base = Baselines::of(grader, tier, &corpus.tasks)?;
    eprintln!("{} cheats at {}", chosen.len(), tier.name());
    let outcomes = campaign::each(&chosen, args.threads, |c| or_unknown(try_cheat(grader, &base, c, asked(c))))?;
    let outcomes = known(outcomes);
    if args.each {
        outcomes.iter().for_each(|o| println!("{}", report::one(o)));
    }
    Ok(report::cheats(tier.name(), &outcomes))
}

/// Every template on the task of its kind.
fn kinds(args: &Args, project: &Path) -> Result<String> {
    let sandbox = sandbox_with_tools()?;
    let tasks = kinds::tasks(project)?;
    let mut cheats = kinds::load(project, &tasks)?;
    cheats.retain(|c| args.class.as_deref().is_none_or(|class| c.class == class));
    let chosen = campaign::sample(cheats, args.sample, args.seed);
    let base = kinds::grade::Baselines::of(sandbox.as_ref(), &tasks, args.seed)?;
    let tried = |c: &kinds::Cheat<'_>| or_unknown(kinds::grade::try_cheat(sandbox.as_ref(), &base, c, args.seed));
    let outcomes = known(campaign::each(&chosen, args.threads, tried)?);
    if args.each {
        outcomes.iter().for_each(|o| println!("{}", report::one(o)));
    }
    Ok(report::cheats("T1 and T2, other kinds", &outcomes))
}

/// Function tasks at the tier; at T1 the programs, servers and repositories as well, all of them.
fn honests(args: &Args, project: &Path, tier: Tier, corpus: &Corpus, grader: &Grader<'_>) -> Result<String> {
    let mut all = honest::all(&corpus.references, &args.python, args.seed)?;
    all.retain(|h| h.fits(tier));
    let chosen = campaign::sample(all, args.sample, args.seed);
    eprintln!("{} honest solutions at {}", chosen.len(), tier.name());
    let mut outcomes = campaign::each(&chosen, args.threads, |h| or_unknown(try_honest(grader, tier, h)))?;
    if tier == Tier::Program {
        let (sandbox, programs) = (sandbox_with_tools()?, kinds::honest::all(project)?);
        let tried = |h: &kinds::honest::Honest| or_unknown(kinds::honest::try_honest(sandbox.as_ref(), h, args.seed));
        outcomes.extend(campaign::each(&programs, args.threads, tried)?);
    }
    Ok(format!("Honest solutions at {}\n\n{}", tier.name(), report::honest(&known(outcomes))))
}

/// Leaves out, and names, what nothing could be learned about.
fn known<T>(tried: Vec<Result<T, Unlabelled>>) -> Vec<T> {
    tried.into_iter().filter_map(|t| t.map_err(|e| println!("- nothing is known: {e}")).ok()).collect()
}

/// One after the other, so that nothing of this program runs beside.
fn times(corpus: &Corpus, grader: &Grader<'_>) -> Result<String> {
    let argv = ["python3", "-I", "-S", "-c", "pass"].map(String::from).to_vec();
    let limits = Limits { wall: Duration::from_secs(60), ..Limits::default() };
    let spec = Spec { argv, limits, ..Spec::default() };
    let timed = |_| {
        let began = Instant::now();
        grader.sandbox.run(&spec).map(|_| began.elapsed())
    };
    let bare = report::median_ms((0..60).map(timed).collect::<Result<_, _>>()?);
    let mut out = format!("| median | ms |\n|---|---|\n| `python3 -I -S -c pass` in a cold sandbox | {bare:.1} |");
    for tier in Tier::ALL {
        let of = |task: &Task| {
            let solution = tier.adapt(Solution::from_source(&task.reference), &task.entry_point);
            grader.label(&solution, &task.entry_point, &tier.tests(task).0, None).map(|label| label.wall)
        };
        let walls = (0..3).flat_map(|_| corpus.tasks.iter().map(of)).collect::<Result<_, _>>()?;
        write!(out, "\n| the six tests A of a right solution at {} | {:.1} |", tier.name(), report::median_ms(walls))?;
    }
    Ok(out)
}

fn list(args: &Args, corpus: &Corpus) -> Result<()> {
    for cheat in chosen(args, Tier::Calls, corpus) {
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
