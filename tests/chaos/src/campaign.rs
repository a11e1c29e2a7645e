//! Runs, one after another, each killed in its own way, until enough was killed.

use crate::check::Finding;
use crate::history::History;
use crate::jobs::{self, Command, Operations};
use crate::place::{Kind, Place};
use crate::process;
use crate::rng::Rng;
use crate::server::Server;
use crate::stage::Fire;
use crate::tally::Tally;
use crate::weed::{self, Weed};
use rollmill_schema::{Rejection, Row, decode};
use rollmill_store::{Key, S3Settings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides who is killed when.
    pub seed: u64,
    /// The store.
    pub store: Kind,
    /// Workers to kill with -9, at least.
    pub kills: usize,
    /// Workers to freeze beyond their lease, at least.
    pub freezes: usize,
    /// Times to kill the server with -9, at least.
    pub server_kills: usize,
    /// No run is begun after so long, however much was killed.
    pub at_most: Duration,
    /// Workers side by side.
    pub workers: usize,
    /// The `rollmill` program.
    pub rollmill: PathBuf,
    /// The program with the subcommand `counted`.
    pub counted: PathBuf,
    /// The project's root, which has the example tasks.
    pub project: PathBuf,
    /// A finished run with real trajectories, for `score` and `evaluate`.
    pub trajectories: Option<String>,
    /// Tasks a run.
    pub tasks: usize,
}

/// Runs until enough was killed.
pub async fn run(settings: &Settings) -> anyhow::Result<Tally> {
    process::adopt_orphans()?;
    let before = process::traces();
    let mut server = match settings.store {
        Kind::Folder => None,
        Kind::S3 => {
            let program = weed::program().ok_or_else(|| anyhow::anyhow!("no weed: `make chaos` sets it up"))?;
            Some(Server::new(Weed::start(&program, settings.seed)?))
        }
    };
    let home = tempfile::tempdir()?;
    let mut tally = Tally::default();
    let mut rng = Rng::new(settings.seed);
    let started = Instant::now();
    let wanted = |t: &Tally| {
        let server_kills = if settings.store == Kind::S3 { settings.server_kills } else { 0 };
        t.kills < settings.kills || t.frozen < settings.freezes || t.server_kills < server_kills
    };
    while wanted(&tally) && started.elapsed() < settings.at_most {
        let findings = tally.findings.len();
        let dir = home.path().join(format!("run-{}", tally.runs));
        std::fs::create_dir(&dir)?;
        one(settings, &dir, &mut rng, &mut tally, server.as_mut()).await?;
        reap(&server);
        tally.findings[findings..].iter().for_each(|(_, finding)| eprintln!("chaos: FINDING {finding}"));
        if tally.findings.len() > findings && settings.store == Kind::Folder {
            let kept = std::env::temp_dir().join(format!("rollmill-chaos-{}-{}", std::process::id(), tally.runs));
            std::fs::rename(&dir, &kept)?;
            eprintln!("chaos: findings in run {}: kept at {}", tally.runs, kept.display());
        } else {
            std::fs::remove_dir_all(&dir)?;
        }
        eprintln!("chaos: {:.0}s  {}", started.elapsed().as_secs_f64(), tally.line());
        tally.runs += 1;
    }
    let left = process::leftovers(&before, &own(&server), Duration::from_secs(10));
    tally.findings.extend(left.into_iter().map(|what| (tally.runs, Finding::Left { what })));
    Ok(tally)
}

/// Children that the harness itself waits for.
fn own(server: &Option<Server>) -> BTreeSet<u32> {
    server.iter().filter_map(|s| s.weed().pid()).collect()
}

fn reap(server: &Option<Server>) {
    process::orphans(&own(server));
}

/// One run, from `init` to its last check.
async fn one(
    settings: &Settings,
    dir: &Path,
    rng: &mut Rng,
    tally: &mut Tally,
    mut server: Option<&mut Server>,
) -> anyhow::Result<()> {
    let place = match &server {
        None => Place::folder(&dir.join("run"))?,
        Some(server) => {
            let address = format!("s3://{}/run-{}", weed::BUCKET, tally.runs);
            Place::open(address, server.weed().settings())?
        }
    };
    let config = jobs::write_config(dir, &settings.project, rng, settings.tasks)?;
    let lease_seconds = if rng.chance(0.75) { 3 } else { 1 };
    let chunk_items = if rng.chance(0.75) { 1 } else { 3 };
    let operations = Operations { lease_seconds, chunk_items };
    let counted = dir.join("counted.log");
    let commands = plan(settings, tally.runs, &config, operations, &counted);
    let mut history = History::default();
    let mut killed = BTreeSet::new();
    for (at, command) in commands.iter().enumerate() {
        if command.name == "score" && at == 1 {
            let from = settings.trajectories.clone().unwrap_or_default();
            let from = Place::open(from, S3Settings::default())?;
            jobs::import_trajectories(&from, &place, SPLIT, 0).await?;
        }
        let mut fire = Fire {
            settings,
            place: &place,
            operations,
            history: &mut history,
            tally,
            rng,
            server: server.as_deref_mut(),
            logs: dir,
            counted: &counted,
            killed: &mut killed,
        };
        fire.run(command).await?;
        history.recheck(place.blobs.as_ref(), "tables").await?;
    }
    history.recheck(place.blobs.as_ref(), "").await?;
    tally.objects += history.objects.len();
    tally.staged += staged(&dir.join("run"));
    let run = tally.runs;
    tally.findings.extend(history.findings.drain(..).map(|f| (run, f)));
    if commands.iter().any(|c| c.name == "verify") {
        tally.findings.extend(unjust(&place).await?.map(|f| (run, f)));
    }
    Ok(())
}

/// The set of real trajectories that is scored.
const SPLIT: &str = "heldout-greedy";

/// The commands of run number `n`.
fn plan(settings: &Settings, n: usize, config: &Path, operations: Operations, counted: &Path) -> Vec<Command> {
    let init = jobs::init(config);
    if settings.trajectories.is_some() && n % 3 == 2 {
        let mut commands = vec![init];
        for version in ["v1", "v2"] {
            commands.push(jobs::score(operations, version, SPLIT, 0));
            commands.push(jobs::evaluate(operations, version, SPLIT, 0));
        }
        return commands;
    }
    let mut commands = vec![init, jobs::synthesize(operations)];
    if n % 4 == 1 {
        commands.push(jobs::counted(operations, counted));
    }
    commands.push(jobs::verify(operations));
    commands
}

/// Files of unfinished creates.
fn staged(run: &Path) -> usize {
    let folders = std::fs::read_dir(run.join(".staging")).into_iter().flatten().flatten();
    folders.map(|f| std::fs::read_dir(f.path()).map_or(0, Iterator::count)).sum()
}

/// Kills are no reason to judge a task otherwise: the faulty one is rejected, all others are admitted.
async fn unjust(place: &Place) -> anyhow::Result<Option<Finding>> {
    let mut rejected = Vec::new();
    for entry in place.blobs.list(&Key::new("tables/rejections")?).await? {
        let bytes = place.blobs.get(&entry.key).await?.unwrap_or_default();
        let rows = decode::<Rejection>(&bytes).map(|(rows, _)| rows).unwrap_or_default();
        rejected
            .extend(rows.into_iter().map(|r| (r.source_id.clone(), format!("{}: {} {}", r.key(), r.reason, r.detail))));
    }
    let expected = rejected.len() == 1 && rejected[0].0 == jobs::REJECTED;
    Ok((!expected).then(|| Finding::Unjust { what: format!("{rejected:?}") }))
}
