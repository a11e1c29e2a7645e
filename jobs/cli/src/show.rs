//! `rollmill show`: one trajectory to read, or why the tests of a task fail.

use rollmill_job::{Exit, JobError, Run, Stage, env, inspect, seal};
use rollmill_schema::{Reward, Task, Trajectory};
use std::collections::BTreeMap;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  rollmill show --run runs/demo 3f2a91c07bd45e18.0\n  rollmill show --run runs/demo list_sums/sum_evens"
)]
pub struct Args {
    /// A trajectory's id, or a task's id or name in its set
    id: String,
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Only this set
    #[arg(long)]
    split: Option<String>,
    /// Only this round
    #[arg(long)]
    round: Option<u32>,
}

/// A trajectory, and its reward if it was graded.
type Graded = (Trajectory, Option<Reward>);

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::open(&args.run).await?;
    let (tasks, _) = seal::read_sealed::<Task>(&run, &Stage::verify()).await?;
    let found = trajectories(&run, args).await?;
    if let Some((trajectory, reward)) = found.iter().find(|(t, _)| t.trajectory_id == args.id) {
        print_trajectory(trajectory, reward.as_ref(), tasks.iter().find(|t| t.task_id == trajectory.task_id));
        return Ok(Exit::Complete);
    }
    match tasks.iter().find(|t| t.task_id == args.id || t.source_id == args.id) {
        Some(task) => print_task(task, &found),
        None => {
            let reason = "is no trajectory and no task of this run; `rollmill status` lists what there is".into();
            return Err(JobError::Config { place: args.id.clone(), reason });
        }
    }
    Ok(Exit::Complete)
}

async fn trajectories(run: &Run, args: &Args) -> Result<Vec<Graded>, JobError> {
    let version = run.score_version()?;
    let mut found = Vec::new();
    for state in inspect::stages(run).await?.iter().filter(|s| s.stage.starts_with("rollout/")) {
        let mut parts = state.stage.split('/').skip(1);
        let (Some(set), Some(round)) =
            (parts.next(), parts.next().and_then(|r| r.strip_prefix("round-")?.parse().ok()))
        else {
            continue;
        };
        let wanted = args.split.as_deref().is_none_or(|s| s == set) && args.round.is_none_or(|r| r == round);
        if !wanted || state.shards_done < state.shards {
            continue;
        }
        let (rows, _) = seal::read_sealed::<Trajectory>(run, &Stage::rollout(set, round)).await?;
        let stage = Stage::score(&version, set, round);
        let rewards = match seal::read_sealed::<Reward>(run, &stage).await {
            Ok((rewards, _)) => rewards,
            Err(JobError::InputAbsent { .. } | JobError::InputIncomplete { .. }) => Vec::new(),
            Err(e) => return Err(e),
        };
        let mut by_id: BTreeMap<String, Reward> = rewards.into_iter().map(|r| (r.trajectory_id.clone(), r)).collect();
        found.extend(rows.into_iter().map(|t| {
            let reward = by_id.remove(&t.trajectory_id);
            (t, reward)
        }));
    }
    Ok(found)
}

fn indent(text: &str) -> String {
    text.lines().map(|l| format!("    {l}\n")).collect()
}

fn print_trajectory(t: &Trajectory, reward: Option<&Reward>, task: Option<&Task>) {
    println!(
        "trajectory {}  set {}  round {}  checkpoint {}",
        t.trajectory_id, t.split, t.provenance.round, t.checkpoint
    );
    println!(
        "sampled {} at temperature {}, {} + {} tokens",
        t.sampled_at, t.temperature, t.prompt_tokens, t.sampled_tokens
    );
    if let Some(task) = task {
        println!("task {} ({})\n{}", task.source_id, task.ability, indent(&task.instruction));
    }
    for (i, step) in t.steps.iter().enumerate() {
        println!("step {} {}  {} {}", i + 1, step.phase, step.stop, if step.ok { "ok" } else { "not ok" });
        let action = if step.phase == "plan" { &step.reasoning } else { &step.action };
        print!("{}", indent(action));
        if !step.observation.is_empty() {
            print!("  saw\n{}", indent(&step.observation));
        }
    }
    println!("ended: {}{}", t.stop_reason, if t.truncated { " (truncated)" } else { "" });
    if let Some(error) = &t.error {
        println!("not the policy's fault: {error}");
    }
    if let Some(r) = reward {
        print_reward(r);
    }
}

fn print_reward(r: &Reward) {
    let of = |p: Option<i32>, t: Option<i32>| format!("{} of {}", p.unwrap_or(0), t.unwrap_or(0));
    match r.total {
        None => println!("reward: none ({})", r.status),
        Some(total) => {
            println!("reward {total:.3}  tests A {}", of(r.tests_a_passed, r.tests_a_total));
            if r.tests_b_total.is_some() {
                println!("             tests B {}", of(r.tests_b_passed, r.tests_b_total));
            }
        }
    }
    let verdicts: Vec<serde_json::Value> = serde_json::from_str(&r.verdicts).unwrap_or_default();
    for v in verdicts.iter().filter(|v| v["outcome"] != "passed") {
        let text = |field: &str| v[field].as_str().unwrap_or_default().to_string();
        println!("    {} {} {}: {}", text("suite"), v["index"], text("outcome"), text("detail"));
    }
}

/// Failing tests of a task over all its trajectories.
fn print_task(task: &Task, all: &[Graded]) {
    println!(
        "task {} ({}, {}, split {})\n{}",
        task.source_id,
        task.ability,
        task.difficulty,
        task.split,
        indent(&task.instruction)
    );
    let rewards: Vec<&Reward> =
        all.iter().filter(|(t, _)| t.task_id == task.task_id).filter_map(|(_, r)| r.as_ref()).collect();
    let solved = rewards.iter().filter(|r| r.solved == Some(true)).count();
    println!("{} graded trajectories, {solved} solved", rewards.len());
    let mut failing: BTreeMap<(String, i64, String), (usize, String)> = BTreeMap::new();
    for reward in &rewards {
        let verdicts: Vec<serde_json::Value> = serde_json::from_str(&reward.verdicts).unwrap_or_default();
        for v in verdicts.iter().filter(|v| v["outcome"] != "passed") {
            let text = |field: &str| v[field].as_str().unwrap_or_default().to_string();
            let entry = failing.entry((text("suite"), v["index"].as_i64().unwrap_or(-1), text("outcome"))).or_default();
            *entry = (entry.0 + 1, text("detail"));
        }
    }
    for ((suite, index, outcome), (count, example)) in failing {
        println!("  test {suite} {index}: {outcome} in {count}; for example {example}");
    }
    for (t, r) in all.iter().filter(|(t, _)| t.task_id == task.task_id) {
        let reward = r.as_ref().and_then(|r| r.total).map_or("-".into(), |r| format!("{r:.2}"));
        println!("  {}  {} round {}  reward {reward}  {}", t.trajectory_id, t.split, t.provenance.round, t.stop_reason);
    }
}
