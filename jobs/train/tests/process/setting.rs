//! A run in a folder with a tiny random base model and sealed rows of rounds that nobody rolled out, and the program.

use async_trait::async_trait;
use rollmill_job::checkpoint::{self, ACTOR, Draft, Manifest};
use rollmill_job::config::Config;
use rollmill_job::{InputRef, ItemError, Job, Plan, PlanDraft, Run, Stage, WorkerOptions, work};
use rollmill_model::{Decoder, ModelConfig, sampling};
use rollmill_schema::{Reward, Row, Trajectory};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub const VOCAB: i64 = 11;

/// A run whose round 1 can be trained: `train` is its `[train]` section.
pub struct Setting {
    pub folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

struct Rows<R>(HashMap<String, R>);

#[async_trait]
impl<R: Row + Clone + Send + Sync> Job for Rows<R> {
    type Row = R;

    async fn process(&self, key: &str) -> Result<R, ItemError> {
        Ok(self.0[key].clone())
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<R> {
        None
    }
}

async fn seal<R: Row + Clone + Send + Sync>(run: &Run, stage: &Stage, rows: Vec<R>, inputs: Vec<InputRef>) {
    let keys: Vec<String> = rows.iter().map(Row::key).collect();
    let draft = PlanDraft { keys, shard_size: 8, inputs, settings: serde_json::json!({}) };
    let plan = Plan::ensure(run, stage, draft).await.unwrap();
    let rows = Rows(rows.into_iter().map(|row| (row.key(), row)).collect());
    work(run, stage, &plan, &rows, WorkerOptions::default()).await.unwrap();
}

impl Setting {
    pub fn new(train: &str) -> Setting {
        Setting::with_sections(&format!("[train]\n{train}"), true)
    }

    /// With a whole configuration; `sampled` if round 1 was rolled out and scored.
    pub fn with_sections(config: &str, sampled: bool) -> Setting {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let setting = Setting { folder, runtime };
        let config = Config::parse(config, "test").unwrap();
        setting.runtime.block_on(async {
            let mut run = Run::init(setting.address(), &config).await.unwrap();
            run.quiet = true;
            let base = import(&run, Decoder::random(ModelConfig::tiny(VOCAB), 1)).await;
            if sampled {
                sample(&run, 1, &base).await;
            }
        });
        setting
    }

    pub fn address(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// The same run elsewhere.
    pub fn copy(&self) -> Setting {
        let folder = tempfile::tempdir().unwrap();
        copy_folder(self.folder.path(), folder.path());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Setting { folder, runtime }
    }

    /// A run of its own that begins as this one was before `round` and trains by another `[train]` section.
    pub fn fork(&self, train: &str, round: u32) -> Setting {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let fork = Setting { folder, runtime };
        let config = Config::parse(&format!("[train]\n{train}"), "fork").unwrap();
        self.with_run(async |parent| drop(Run::fork(parent, fork.address(), &config, round).await.unwrap()));
        fork
    }

    pub fn with_run<T>(&self, work: impl AsyncFnOnce(&Run) -> T) -> T {
        self.runtime.block_on(async {
            let mut run = Run::open(self.address()).await.unwrap();
            run.quiet = true;
            work(&run).await
        })
    }

    /// Rolls out and scores a round with the checkpoint before it.
    pub fn sample(&self, round: u32) {
        self.sample_with(round, round - 1);
    }

    /// The same with an older one.
    pub fn sample_with(&self, round: u32, policy_round: u32) {
        self.with_run(async |run| {
            let policy = checkpoint::last_of_round(run, policy_round).await.unwrap().unwrap();
            sample(run, round, &policy).await;
        });
    }

    pub fn command(&self, round: u32) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rollmill-train"));
        command.args(["--run", self.address(), "--threads", "1", "--round"]).arg(round.to_string());
        command
    }

    pub fn train(&self, round: u32) -> Output {
        self.command(round).output().unwrap()
    }

    /// Starts the program and kills it when it says that step `step` is done.
    pub fn kill_after(&self, step: u32) {
        self.kill_after_step_of(1, step);
    }

    pub fn kill_after_step_of(&self, round: u32, step: u32) {
        let mut child = self.command(round).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let wanted = format!("step {step} ");
        for line in lines.map_while(Result::ok) {
            if line.contains(&wanted) {
                break;
            }
        }
        kill(&mut child);
    }

    /// Hashes of the files that the round's last checkpoint holds.
    pub fn files(&self, round: u32) -> BTreeMap<String, String> {
        let last = self.with_run(async |run| checkpoint::last_of_round(run, round).await.unwrap().unwrap());
        last.files.into_iter().map(|file| (file.name, file.sha256)).collect()
    }

    pub fn manifests(&self, round: u32) -> Vec<Manifest> {
        self.with_run(async |run| checkpoint::list(run, round).await.unwrap())
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target: PathBuf = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_folder(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// A model with a tokenizer of single letters and a template in the manner of ChatML.
async fn import(run: &Run, model: Decoder) -> Manifest {
    let staged = tempfile::tempdir().unwrap();
    let actor = staged.path().join(ACTOR);
    model.save(&actor).unwrap();
    let vocabulary = [("a", 3), ("b", 4), (" ", 5), ("s", 6), ("u", 7), ("\n", 8), ("?", 9)];
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        vocabulary.into_iter().map(|(token, id)| (token.to_owned(), id.into())).collect();
    let special = |id: u32, content: &str| {
        serde_json::json!({"id": id, "content": content, "special": true, "normalized": false, "single_word": false,
            "lstrip": false, "rstrip": false})
    };
    let tokenizer = serde_json::json!({
        "version": "1.0", "added_tokens": [special(1, "<s>"), special(2, "<e>")],
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
    });
    std::fs::write(actor.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let template =
        "{% for m in messages %}<s>{{ m.content }}<e>{% endfor %}{% if add_generation_prompt %}<s>{% endif %}";
    let config = serde_json::json!({"chat_template": template, "eos_token": "<e>"});
    std::fs::write(actor.join("tokenizer_config.json"), config.to_string()).unwrap();
    let draft = Draft { round: 0, step: 0, last: true, inputs: vec![], metrics: vec![], seconds: 0.0 };
    checkpoint::commit(run, staged.path(), draft).await.unwrap()
}

/// Twelve trajectories of three tasks, one of which failed for a reason that is not the policy's.
async fn sample(run: &Run, round: u32, policy: &Manifest) {
    let trajectories: Vec<Trajectory> = (0..12).map(|i| trajectory(round, i, policy)).collect();
    let reward = |(i, t): (usize, &Trajectory)| Reward {
        trajectory_id: t.trajectory_id.clone(),
        task_id: t.task_id.clone(),
        total: t.error_class.is_none().then(|| sampling::uniform(7, i as u64)),
        ..Reward::default()
    };
    let rewards = trajectories.iter().enumerate().map(reward).collect();
    seal(run, &Stage::rollout("train", round), trajectories, vec![policy.input()]).await;
    seal::<Reward>(run, &Stage::score("v1", "train", round), rewards, vec![]).await;
}

fn trajectory(round: u32, i: usize, policy: &Manifest) -> Trajectory {
    let draw = |t: usize| (sampling::uniform(u64::from(round), (100 * i + t) as u64) * VOCAB as f64) as i32;
    let token_ids: Vec<i32> = [1, 2, (i / 4) as i32].into_iter().chain((0..6 + i % 3).map(draw)).collect();
    Trajectory {
        trajectory_id: format!("task-{}.{}", i / 4, i % 4),
        task_id: format!("task-{}", i / 4),
        checkpoint: policy.id(),
        policy_round: policy.round as i32,
        temperature: 1.0,
        top_p: 1.0,
        trainable: (0..token_ids.len()).map(|t| t >= 3).collect(),
        log_probs: vec![-2.4; token_ids.len()],
        error_class: (i == 5).then(|| "sandbox".to_owned()),
        stop_reason: "passed".into(),
        token_ids,
        ..Trajectory::default()
    }
}
