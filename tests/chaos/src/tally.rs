//! What a campaign counted, and how it is told.

use crate::check::Finding;
use crate::phase::Phase;
use std::collections::BTreeMap;
use std::fmt;

/// A mean and a maximum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    /// How many.
    pub count: usize,
    /// Their sum.
    pub sum: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.max = self.max.max(value);
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.sum / self.count.max(1) as f64;
        write!(f, "mean {mean:.3}, most {:.3} (over {})", self.max, self.count)
    }
}

/// The counts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs made.
    pub runs: usize,
    /// Stages finished.
    pub stages: usize,
    /// Worker processes started.
    pub workers: usize,
    /// Workers killed with -9.
    pub kills: usize,
    /// Of those, all workers of a stage at once.
    pub cuts: usize,
    /// Workers that were stopped for longer than their lease and let go again.
    pub frozen: usize,
    /// Of those, the ones whose shard another worker had claimed or finished meanwhile.
    pub robbed: usize,
    /// The server was killed with -9 and started again.
    pub server_kills: usize,
    /// Kills by command and phase.
    pub phases: BTreeMap<(&'static str, Phase), usize>,
    /// Exits by command and code, of workers that were not killed.
    pub exits: BTreeMap<(&'static str, i32), usize>,
    /// Items planned.
    pub items: usize,
    /// Rows found in parts.
    pub rows: usize,
    /// Parts read, projections included.
    pub parts: usize,
    /// Objects whose hash was kept and compared.
    pub objects: usize,
    /// Rows of final parts that a worker made which was killed later.
    pub kept: usize,
    /// Rows that are in more than one chunk, and all rows in chunks.
    pub overlap: (usize, usize),
    /// Per kill of a worker that held a shard: saved rows that were done again.
    pub redone_saved: Spread,
    /// Per kill of a worker that held an open shard: seconds since its claim or its last saved chunk.
    pub seconds_lost: Spread,
    /// Per kill in the job that counts: finished rows that were saved nowhere.
    pub lost_finished: Spread,
    /// Per kill in the job that counts: items in flight.
    pub lost_in_flight: Spread,
    /// In the job that counts: items begun beyond once each, and kills and freezes there.
    pub redone: (usize, usize),
    /// Files of unfinished creates that killed workers left in a folder's staging area.
    pub staged: usize,
    /// What was wrong.
    pub findings: Vec<(usize, Finding)>,
}

impl Tally {
    /// How many rows were lost.
    pub fn lost(&self) -> usize {
        self.findings.iter().filter(|(_, f)| matches!(f, Finding::Lost { .. })).count()
    }

    /// How many rows were there more than once.
    pub fn doubled(&self) -> usize {
        self.findings.iter().filter(|(_, f)| matches!(f, Finding::Doubled { .. })).count()
    }

    /// One line on the way.
    pub fn line(&self) -> String {
        format!(
            "run {}: {} kills, {} server kills, {} frozen, {} rows checked, {} lost, {} doubled, {} findings",
            self.runs,
            self.kills,
            self.server_kills,
            self.frozen,
            self.rows,
            self.lost(),
            self.doubled(),
            self.findings.len()
        )
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "runs {}, stages finished {}, worker processes {}", self.runs, self.stages, self.workers)?;
        writeln!(f, "kill -9 of workers        {} ({} of them in cuts of all workers at once)", self.kills, self.cuts)?;
        writeln!(f, "kill -9 of the server     {}", self.server_kills)?;
        writeln!(f, "frozen beyond the lease   {} ({} found their shard taken or done)", self.frozen, self.robbed)?;
        writeln!(f, "rows planned / found      {} / {} in {} parts", self.items, self.rows, self.parts)?;
        writeln!(f, "rows lost                 {}", self.lost())?;
        writeln!(f, "rows doubled              {}", self.doubled())?;
        writeln!(f, "objects compared          {}", self.objects)?;
        writeln!(f, "findings                  {}", self.findings.len())?;
        writeln!(f, "rows of killed workers that are in the tables   {}", self.kept)?;
        writeln!(f, "rows in more than one chunk                     {} of {}", self.overlap.0, self.overlap.1)?;
        writeln!(f, "saved rows done again, per kill                 {}", self.redone_saved)?;
        writeln!(f, "seconds since the last saved thing, per kill    {}", self.seconds_lost)?;
        if self.lost_finished.count > 0 {
            writeln!(f, "counted job: finished rows lost, per kill       {}", self.lost_finished)?;
            writeln!(f, "counted job: items in flight, per kill          {}", self.lost_in_flight)?;
            let (redone, kills) = self.redone;
            writeln!(f, "counted job: items begun again                  {redone} after {kills} kills and freezes")?;
        }
        writeln!(f, "unfinished creates left in staging folders      {}", self.staged)?;
        writeln!(f, "kills by what was there")?;
        let mut names: Vec<&str> = self.phases.keys().map(|(name, _)| *name).collect();
        names.dedup();
        let phases: std::collections::BTreeSet<Phase> = self.phases.keys().map(|(_, phase)| *phase).collect();
        write!(f, "  {:<26}", "")?;
        names.iter().try_for_each(|name| write!(f, "{name:>12}"))?;
        writeln!(f)?;
        for phase in phases {
            write!(f, "  {:<26}", phase.to_string())?;
            for name in &names {
                write!(f, "{:>12}", self.phases.get(&(*name, phase)).copied().unwrap_or(0))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "exits of workers that were not killed")?;
        for ((name, code), count) in &self.exits {
            writeln!(f, "  {name:<12} exit {code:<3} {count}")?;
        }
        self.findings.iter().try_for_each(|(run, finding)| writeln!(f, "FINDING in run {run}: {finding}"))
    }
}
