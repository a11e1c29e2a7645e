//! Parquet as `rollmill_schema` writes it, beside gzipped JSON lines of the same rows: bytes, and rows a second of one core,
//! in memory.

use crate::process::thread_seconds;
use anyhow::Context;
use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use rollmill_schema::{StepRow, Trajectory, decode, encode};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// Each is measured so often; the median of the processor time counts.
const PASSES: usize = 5;
/// Rows are joined until they are so large.
const LARGE: usize = 20_000;

/// Prints both tables.
pub fn run(run: Option<&Path>) -> anyhow::Result<()> {
    let (rows, from) = match run {
        Some(run) => (read_run(run)?, format!("of {}", run.display())),
        None => (from_tasks(Path::new("examples/tasks"))?, "made of the example tasks".into()),
    };
    anyhow::ensure!(!rows.is_empty(), "there are no trajectories");
    measure(&format!("{} trajectories {from}", rows.len()), &rows)?;
    let large = grown(&rows)?;
    measure(&format!("the same, joined to {} rows of at least {LARGE} bytes", large.len()), &large)
}

fn measure(title: &str, rows: &[Trajectory]) -> anyhow::Result<()> {
    let json: usize = rows.iter().map(|r| serde_json::to_vec(r).map_or(0, |j| j.len())).sum();
    println!("{title}; {} bytes of JSON a row\n", json / rows.len());
    println!("| | bytes | of JSON | write | read |\n|---|---|---|---|---|");
    let (parquet, write) = median(|| Ok(encode(rows, "plan", "attempt")?))?;
    let (back, read) = median(|| Ok(decode::<Trajectory>(&parquet)?.0))?;
    anyhow::ensure!(back == rows, "Parquet gave other rows back");
    line("Parquet, zstd 3", rows.len(), json, parquet.len(), write, read);
    let (lines, write) = median(|| gzip(rows))?;
    let (back, read) = median(|| gunzip(&lines))?;
    anyhow::ensure!(back == rows, "JSON lines gave other rows back");
    line("JSON lines, gzip 6", rows.len(), json, lines.len(), write, read);
    println!();
    Ok(())
}

fn line(name: &str, rows: usize, json: usize, bytes: usize, write: f64, read: f64) {
    let speed = |seconds: f64| format!("{:.0} rows/s, {:.0} MB/s", rows as f64 / seconds, json as f64 / seconds / 1e6);
    println!("| {name} | {bytes} | {:.3} | {} | {} |", bytes as f64 / json as f64, speed(write), speed(read));
}

/// The last result and the median of the seconds.
fn median<T>(mut f: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<(T, f64)> {
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..PASSES {
        let started = thread_seconds();
        last = Some(f()?);
        seconds.push(thread_seconds() - started);
    }
    seconds.sort_by(f64::total_cmp);
    Ok((last.context("at least one pass")?, seconds[PASSES / 2]))
}

fn gzip(rows: &[Trajectory]) -> anyhow::Result<Bytes> {
    let mut out = GzEncoder::new(Vec::new(), Compression::new(6));
    for row in rows {
        out.write_all(&serde_json::to_vec(row)?)?;
        out.write_all(b"\n")?;
    }
    Ok(out.finish()?.into())
}

fn gunzip(bytes: &Bytes) -> anyhow::Result<Vec<Trajectory>> {
    let lines = BufReader::new(GzDecoder::new(bytes.as_ref())).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// All trajectories of a run in a folder.
fn read_run(run: &Path) -> anyhow::Result<Vec<Trajectory>> {
    let mut open = vec![run.join("tables/trajectories")];
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        rows.append(&mut decode::<Trajectory>(&std::fs::read(file)?.into())?.0);
    }
    Ok(rows)
}

/// Rows joined until each is large: the same text, steps and tokens in fewer rows.
fn grown(rows: &[Trajectory]) -> anyhow::Result<Vec<Trajectory>> {
    let (mut out, mut row): (Vec<Trajectory>, Option<Trajectory>) = (Vec::new(), None);
    for next in rows {
        let mut joined = match row.take() {
            None => next.clone(),
            Some(mut row) => {
                row.messages += &next.messages;
                row.plan += &next.plan;
                row.reasoning += &next.reasoning;
                row.final_files += &next.final_files;
                row.steps.extend(next.steps.iter().cloned());
                row.token_ids.extend(&next.token_ids);
                row.trainable.extend(&next.trainable);
                row.log_probs.extend(&next.log_probs);
                row
            }
        };
        if serde_json::to_vec(&joined)?.len() >= LARGE {
            joined.trajectory_id = format!("{}-{}", joined.trajectory_id, out.len());
            out.push(joined);
        } else {
            row = Some(joined);
        }
    }
    Ok(out)
}

/// Without a run: rows of the right shape with the texts of the example tasks.
fn from_tasks(folder: &Path) -> anyhow::Result<Vec<Trajectory>> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        for line in std::fs::read_to_string(file)?.lines() {
            let task: serde_json::Value = serde_json::from_str(line)?;
            let text = |field: &str| task[field].as_str().unwrap_or_default().to_string();
            let token_ids: Vec<i32> = line.bytes().map(i32::from).collect();
            let step = StepRow { phase: "act".into(), action: text("reference"), ..StepRow::default() };
            rows.push(Trajectory {
                trajectory_id: text("task_id"),
                messages: serde_json::json!([{"role": "user", "content": text("question")}]).to_string(),
                final_files: serde_json::json!({"solution.py": text("reference")}).to_string(),
                steps: vec![step],
                trainable: token_ids.iter().map(|t| t % 3 == 0).collect(),
                log_probs: token_ids.iter().map(|t| -(*t as f32) / 100.0).collect(),
                token_ids,
                ..Trajectory::default()
            });
        }
    }
    Ok(rows)
}
