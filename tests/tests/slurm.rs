//! A run on a real cluster of Slurm: two nodes, the real small model, an S3 server. Every job is what `rollmill submit slurm`
//! submits; daemons are killed, elements are taken from the queue, limits hit, and the tables come out exact.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::slurm::Cluster;
use rollmill_e2e::{bucket, model, program, project, said, small_config, task_ids};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

/// How long a run may take on a busy machine; what a test waits for comes long before.
const PATIENCE: Duration = Duration::from_secs(500);

/// A run on a cluster.
struct Setting {
    cluster: Cluster,
    config: PathBuf,
    address: String,
    dir: tempfile::TempDir,
}

impl Setting {
    /// With a cluster of its own; `change` edits the configuration.
    fn new(
        model: Option<&Path>,
        address: impl FnOnce(&Path) -> String,
        change: impl FnOnce(String) -> String,
    ) -> Option<Setting> {
        let cluster = Cluster::start()?;
        let dir = tempfile::tempdir().unwrap();
        let config = small_config(dir.path(), model, 2);
        let small = "[cluster]\nsignal_seconds = 5\n[cluster.endpoint]\nhost = \"127.0.0.1\"\n";
        let job = |name: &str, cpus: u32| {
            format!("[cluster.jobs.{name}]\ncpus = {cpus}\nmemory = \"1G\"\ntime = \"00:20:00\"\n")
        };
        let jobs: String = ["synthesize", "verify", "rollout", "score", "evaluate"].map(|name| job(name, 1)).concat();
        let heavy = ["train", "endpoint"].map(|name| job(name, 2)).concat();
        let text = std::fs::read_to_string(&config).unwrap() + small + &jobs + &heavy;
        std::fs::write(&config, change(text)).unwrap();
        let address = address(dir.path());
        Some(Setting { cluster, config, address, dir })
    }

    fn submit(&self, more: &[&str]) -> Output {
        let mut command = self.cluster.command(program("rollmill"));
        command.args(["submit", "slurm", "--config"]).arg(&self.config).args(["--run", &self.address]);
        let logs = self.dir.path().join("logs");
        command.arg("--folder").arg(logs).args(more).current_dir(project()).output().unwrap()
    }

    /// The command, which must end well; what it printed.
    fn submitted(&self, more: &[&str]) -> String {
        let out = self.submit(more);
        let said = said(&out);
        assert!(out.status.success(), "{said}");
        said
    }

    /// Until nothing is in the queue.
    fn wait_for_all(&self) {
        self.cluster.wait("the end of all jobs", PATIENCE, || self.cluster.queue().is_empty());
    }

    /// Every stage of the run, from `rollmill status`.
    fn stages(&self) -> Vec<serde_json::Value> {
        let out = self.cluster.command(program("rollmill"));
        let mut out = out;
        let out = out.args(["status", "--format", "json", "--run", &self.address]).output().unwrap();
        let status: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        status["stages"].as_array().cloned().unwrap_or_default()
    }

    /// All that was logged, for a test that fails.
    fn logs(&self) -> String {
        let files = std::fs::read_dir(self.dir.path().join("logs")).into_iter().flatten().flatten();
        let logs = files.filter(|e| e.path().extension().is_some_and(|x| x == "log"));
        logs.map(|e| format!("{}\n{}\n", e.path().display(), std::fs::read_to_string(e.path()).unwrap_or_default()))
            .collect()
    }

    /// Every planned stage is sealed with all its shards; `stages` are there.
    fn assert_whole(&self, stages: &[&str]) {
        let found = self.stages();
        for stage in &found {
            let whole = stage["shards"] == stage["shards_done"] && stage["items"] == stage["items_done"];
            assert!(whole, "{stage}\n{}", self.logs());
        }
        let names: Vec<&str> = found.iter().filter_map(|stage| stage["stage"].as_str()).collect();
        for stage in stages {
            assert!(names.contains(stage), "{stage} is not among {names:?}\n{}", self.logs());
        }
    }
}

#[test]
fn two_rounds_with_the_real_model_on_a_bucket() {
    let (Some(bucket), Some(model)) = (bucket(), model()) else { return };
    let unique = std::process::id();
    let Some(setting) = Setting::new(Some(&model), |_| format!("{bucket}/slurm-{unique}"), |text| text) else { return };
    let dry = setting.submitted(&["--rounds", "2", "--dry-run"]);
    assert!(dry.contains("#SBATCH --kill-on-invalid-dep=yes") && dry.contains("core h <="), "{dry}");
    assert_eq!(setting.cluster.queue(), [], "a dry run submits nothing");
    let first = setting.submitted(&["--rounds", "2"]);
    assert!(first.contains("train-0002") && first.contains("endpoint-0001"), "{first}");
    let queue = setting.cluster.queue().len();
    // The same again, while the first jobs run: everything is there.
    let again = setting.submitted(&["--rounds", "2"]);
    assert!(
        again.contains("train-0002")
            && !again.lines().any(|l| l.starts_with("train-0002") && !l.contains("queue already")),
        "{again}"
    );
    assert!(setting.cluster.queue().len() <= queue, "submitting twice adds nothing");
    setting.wait_for_all();
    setting.assert_whole(&[
        "verify",
        "rollout/train/round-0001",
        "score/v1/train/round-0002",
        "rollout/heldout/round-0002",
        "evaluate/v1/heldout/round-0000",
        "evaluate/v1/heldout/round-0002",
    ]);
    for job in setting.cluster.ended() {
        let fine = job.state == "COMPLETED" || (job.name.contains("-endpoint-") && job.state == "CANCELLED");
        assert!(fine, "{job:?}\n{}", setting.logs());
    }
    let done = setting.submitted(&["--rounds", "2"]);
    assert!(done.contains("Everything is done."), "{done}");
}

/// Tasks of `examples/learn`, to be verified alone: long enough for things to happen meanwhile, and nothing needs a model.
fn verification(_small: String) -> String {
    r#"[[synthesize.sources]]
kind = "jsonl"
path = "examples/learn/train"
[verify]
repeats = 16
heldout = 0.0
shard_size = 12
[rollout]
sets = []
[cluster]
signal_seconds = 5
[cluster.jobs.verify]
workers = 8
throttle = 6
cpus = 1
memory = "1G"
time = "00:20:00"
[operations]
rounds = 0
chunk_items = 4
lease_seconds = 4
"#
    .into()
}

fn on_a_folder(dir: &Path) -> String {
    dir.join("run").display().to_string()
}

/// Elements of the array of `verify` in a state.
fn elements(setting: &Setting, state: &str) -> Vec<String> {
    let queue = setting.cluster.queue();
    queue.into_iter().filter(|(_, name, s)| name.ends_with("-verify") && s == state).map(|(id, ..)| id).collect()
}

/// Elements that run on a node.
fn elements_on(setting: &Setting, node: &str) -> Vec<String> {
    let text = setting.cluster.ask("squeue", &["--noheader", "--array", "--nodelist", node, "--format", "%i"]);
    text.lines().map(|line| line.trim().to_string()).filter(|id| id.contains('_')).collect()
}

/// Tasks of the run: every one once, those that were rejected aside.
fn assert_every_task_once(setting: &Setting, tasks: usize) {
    setting.assert_whole(&["synthesize", "verify"]);
    let mut ids = task_ids(&setting.dir.path().join("run"));
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), all), (tasks, tasks));
}

#[test]
fn elements_that_are_cancelled_nodes_and_controllers_that_die_cost_no_row() {
    let Some(mut setting) = Setting::new(None, on_a_folder, verification) else { return };
    setting.submitted(&[]);
    let running = |setting: &Setting, n: usize| elements(setting, "RUNNING").len() >= n;
    setting.cluster.wait("running elements", PATIENCE, || running(&setting, 4));

    let cancelled = elements(&setting, "RUNNING")[0].clone();
    setting.cluster.ask("scancel", &[&cancelled]);
    setting.cluster.restart_controller();
    setting.cluster.wait("the controller", PATIENCE, || running(&setting, 1));

    // What ran on the node runs on, and is begun again on the other: two attempts of one element, alive at once.
    let orphans = elements_on(&setting, "n0");
    assert!(!orphans.is_empty());
    setting.cluster.kill_node(0);
    let second = |setting: &Setting| setting.logs().contains("attempt 2 of 5");
    setting.cluster.wait("an element that is begun again", PATIENCE, || second(&setting));
    setting.wait_for_all();
    assert!(setting.cluster.ended().iter().any(|job| job.state == "CANCELLED"), "{:?}", setting.cluster.ended());
    let logs = setting.logs();
    let twice = orphans.iter().filter(|element| logs.matches(&format!("{element}: exit")).count() > 1).count();
    assert!(twice > 0, "no element of {orphans:?} came to its end twice\n{logs}");
    setting.cluster.start_node(0);
    setting.cluster.wait_for_nodes(2);

    // The cancelled element's shards are sent again, unless a neighbour did them; nothing else is.
    let said = setting.submitted(&[]);
    setting.wait_for_all();
    let script = std::fs::read_dir(setting.dir.path().join("logs")).unwrap().flatten();
    let script = script.map(|e| e.path()).find(|p| p.to_str().unwrap().ends_with("-verify.sh")).unwrap();
    let script = std::fs::read_to_string(script).unwrap();
    let index = cancelled.rsplit('_').next().unwrap();
    assert!(
        said.contains("verify") && script.contains(&format!("--array={index}%6")),
        "{said}\n{script}\n{:?}\n{}",
        setting.cluster.ended(),
        setting.logs()
    );
    assert_every_task_once(&setting, 263);
}

/// Tasks whose references sleep, so that one worker needs longer than a minute on any machine.
fn slow_tasks(file: &Path) {
    let task = |n: u32| {
        let reference = format!("import time\ndef add_{n}(x):\n    time.sleep(0.4)\n    return x + {n}\n");
        let case = |x: u32| serde_json::json!({"input": x.to_string(), "expected": (x + n).to_string()});
        serde_json::json!({
            "task_id": format!("add-{n}"), "question": format!("Write `add_{n}(x)`, which adds {n} to x."),
            "entry_point": format!("add_{n}"), "reference": reference,
            "test_cases": [case(1), case(3)], "tests_b": [case(2)],
        })
    };
    let lines: Vec<String> = (0..24).map(|n| task(n).to_string()).collect();
    std::fs::write(file, lines.join("\n")).unwrap();
}

#[test]
fn a_time_limit_that_hits_is_gone_over_in_several_attempts() {
    let tasks = tempfile::tempdir().unwrap();
    let file = tasks.path().join("slow.jsonl");
    slow_tasks(&file);
    let short = |text: String| {
        let text = verification(text).replace("examples/learn/train", file.to_str().unwrap());
        // 24 tasks of three calls, at least three times over, one after the other: more than 86 seconds of sleep.
        let text = text.replace("repeats = 16", "repeats = 3").replace("00:20:00", "00:01:00");
        let alone = "workers = 1\narguments = [\"--concurrency\", \"1\"]";
        text.replace("workers = 8", alone).replace("[cluster]\n", "[cluster]\ntries = 60\n")
    };
    let Some(setting) = Setting::new(None, on_a_folder, short) else { return };
    setting.submitted(&[]);
    setting.wait_for_all();
    let logs = setting.logs();
    assert!(logs.contains("exit 75") && logs.contains("attempt 2 of 60"), "{logs}");
    assert_every_task_once(&setting, 24);
}

#[test]
fn a_budget_that_is_spent_stops_the_chain() {
    let spent = |text: String| verification(text) + "[budget]\ncore_hours = 0.000001\n";
    let Some(setting) = Setting::new(None, on_a_folder, spent) else { return };
    setting.submitted(&[]);
    setting.wait_for_all();
    // `synthesize` spent it; every element of `verify` refuses to begin, and the queue is empty.
    assert!(setting.logs().contains("core_hours = 0.000001 is spent"), "{}", setting.logs());
    let stages = setting.stages();
    assert!(stages.iter().all(|stage| stage["stage"] != "verify"), "{stages:?}");
    let again = setting.submit(&[]);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn jobs_that_submit_at_once_add_nothing_and_a_time_to_begin_is_kept() {
    let quick = |text: String| verification(text).replace("repeats = 16", "repeats = 2");
    let Some(setting) = Setting::new(None, on_a_folder, quick) else { return };
    setting.submitted(&["--begin", "now+1hour"]);
    let waiting = || setting.cluster.ask("squeue", &["--noheader", "--format", "%j %T %r %E"]);
    setting
        .cluster
        .wait("a job that waits for its time", PATIENCE, || waiting().contains("-synthesize PENDING BeginTime"));
    assert!(waiting().lines().any(|l| l.contains("-verify PENDING") && l.contains("afterok")), "{}", waiting());
    setting.cluster.ask("scancel", &["--user", "root"]);
    setting.wait_for_all();

    // What a line of scrontab does: a small job that submits. Debian's Slurm has no scrontab itself.
    let line = format!(
        "cd {} && {} submit slurm --config {} --run {} --folder {}",
        project().display(),
        program("rollmill").display(),
        setting.config.display(),
        setting.address,
        setting.dir.path().join("logs").display()
    );
    let night = |number: u32| {
        let log = setting.dir.path().join(format!("night-{number}.txt"));
        let output = format!("--output={}", log.display());
        let id = setting.cluster.ask("sbatch", &["--parsable", "--job-name=night", &output, "--wrap", &line]);
        assert!(id.trim().parse::<u32>().is_ok(), "{id}");
        log
    };
    // Two at once, of which the second finds what the first has put into the queue.
    let logs = [night(1), night(2)];
    setting.wait_for_all();
    let said = logs.map(|log| std::fs::read_to_string(log).unwrap());
    let whole = said.concat();
    assert!(whole.contains("Follow it:"), "{whole}");
    let submitted = setting.cluster.ended().into_iter().filter(|job| job.name.ends_with("-synthesize")).count();
    assert_eq!(submitted, 2, "the one that was cancelled, and one of both nights\n{whole}");
    assert_every_task_once(&setting, 263);
    assert!(setting.submitted(&[]).contains("Everything is done."));
}

/// For docs/results/cluster.md: `cargo test -p rollmill-e2e --test slurm lag -- --ignored --nocapture`, beside weed.sh.
#[test]
#[ignore = "a measurement of several minutes"]
fn how_long_the_trainer_waits_with_lag_0_and_1() {
    let Some(model) = model() else { return };
    for lag in [0, 1] {
        let with_lag = |text: String| {
            let text = text.replace("[rollout]\n", &format!("[rollout]\nmax_lag = {lag}\n"));
            if lag == 0 {
                text
            } else {
                text.replace("[train]\n", "[train]\nmax_age = 1\noff_policy = { kind = \"truncated\", cap = 2.0 }\n")
            }
        };
        let Some(setting) = Setting::new(Some(&model), on_a_folder, with_lag) else { return };
        let before = std::time::Instant::now();
        setting.submitted(&["--rounds", "4"]);
        let submission = before.elapsed().as_secs_f64();
        setting.wait_for_all();
        let mut jobs = setting.cluster.ended();
        jobs.retain(|job| job.state == "COMPLETED");
        jobs.sort_by(|a, b| a.began.total_cmp(&b.began));
        let of = |part: &str| jobs.iter().filter(|job| job.name.contains(part)).collect::<Vec<_>>();
        let trains = of("-train-000").into_iter().filter(|j| !j.name.contains("rollout") && !j.name.contains("score"));
        let trains: Vec<_> = trains.collect();
        let busy: f64 = trains.iter().map(|job| job.ended - job.began).sum();
        let idle: f64 = trains.windows(2).map(|pair| (pair[1].began - pair[0].ended).max(0.0)).sum();
        let whole = jobs.iter().map(|job| job.ended).fold(0.0, f64::max) - jobs[0].began;
        println!(
            "lag {lag}: {} jobs, submitted in {submission:.1} s; whole run {whole:.0} s; trainer busy {busy:.0} s, idle between rounds {idle:.0} s",
            jobs.len()
        );
        for job in &jobs {
            println!("  {:<40} {:>5.0} to {:>5.0}", job.name, job.began - jobs[0].began, job.ended - jobs[0].began);
        }
    }
}

/// For docs/results/cluster.md, as above.
#[test]
#[ignore = "a measurement"]
fn how_long_a_submission_of_fifty_rounds_takes() {
    let Some(setting) = Setting::new(None, on_a_folder, |text| text) else { return };
    let timed = |what: &str, more: &[&str]| {
        let before = std::time::Instant::now();
        let said = setting.submitted(more);
        println!("{what}: {:.1} s, {} lines", before.elapsed().as_secs_f64(), said.lines().count());
    };
    timed("dry run", &["--rounds", "50", "--dry-run"]);
    timed("first submission", &["--rounds", "50", "--begin", "now+1hour"]);
    println!("{} elements and jobs in the queue", setting.cluster.queue().len());
    timed("second submission", &["--rounds", "50", "--begin", "now+1hour"]);
    setting.cluster.ask("scancel", &["--user", "root"]);
}
