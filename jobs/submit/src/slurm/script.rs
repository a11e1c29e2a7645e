//! The batch script of one step.
//!
//! In: a step, its resources and elements. Out: text that `sbatch` takes, which differs from one submission to the next in the
//! elements alone. What must hold: a worker that was told to leave (75), met another (11) or was killed is begun again, at most
//! `tries` times, by us: `RequeueExit` of a cluster's configuration knows no limit. All else ends the element, and with it what
//! depends on it.

use crate::chain::Step;
use crate::command::Flags;
use crate::estimate::Elements;
use crate::settings::{ClusterSettings, Resources};

/// What all scripts of a run share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Id of the run.
    pub run_id: String,
    /// Its address.
    pub address: String,
    /// Path of `rollmill`.
    pub program: String,
    /// Folder in which jobs start: paths of the configuration are relative to it.
    pub folder: String,
    /// Folder of their logs.
    pub logs: String,
    /// Flags of jobs.
    pub flags: Flags,
}

impl Shared {
    /// Name of a step's job in the queue.
    pub fn job_name(&self, step: &str) -> String {
        format!("rm-{}-{step}", self.run_id.get(..8).unwrap_or(&self.run_id))
    }
}

/// What one script is made of.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// What all scripts share.
    pub shared: &'a Shared,
    /// `[cluster]`.
    pub settings: &'a ClusterSettings,
    /// The step.
    pub step: &'a Step,
    /// What a worker of it gets.
    pub resources: &'a Resources,
    /// Elements of its array.
    pub elements: &'a Elements,
}

/// The script.
pub fn script(batch: &Batch) -> String {
    let Batch { shared, settings, step, resources, elements } = *batch;
    let mut text = String::from("#!/bin/bash\n");
    let mut directive = |name: &str, value: &str| text += &format!("#SBATCH --{name}={value}\n");
    directive("job-name", &shared.job_name(&step.name()));
    let log = if step.is_array() { "%x-%A_%a.log" } else { "%x-%j.log" };
    directive("output", &format!("{}/{log}", shared.logs));
    directive("open-mode", "append");
    directive("chdir", &shared.folder);
    directive("time", &resources.time);
    directive("nodes", "1");
    directive("ntasks", "1");
    directive("cpus-per-task", &resources.cpus.to_string());
    directive("mem", &resources.memory);
    if resources.gpus > 0 {
        directive("gres", &format!("gpu:{}", resources.gpus));
    }
    for (name, value) in [("partition", &resources.partition), ("account", &settings.account)] {
        if let Some(value) = value {
            directive(name, value);
        }
    }
    directive("signal", &format!("B:USR1@{}", settings.signal_seconds));
    directive("kill-on-invalid-dep", "yes");
    text += "#SBATCH --requeue\n";
    if step.is_array() {
        let throttle = if resources.throttle > 0 { format!("%{}", resources.throttle) } else { String::new() };
        text += &format!("#SBATCH --array={}{throttle}\n", ranges(&elements.indexes));
    }
    for option in &resources.options {
        text += &format!("#SBATCH {option}\n");
    }
    text + &body(batch)
}

fn body(batch: &Batch) -> String {
    let Batch { shared, settings, step, resources, elements } = *batch;
    let mut lines = vec![
        "set -u".to_string(),
        format!("export ROLLMILL_RUN={} OMP_NUM_THREADS={}", quoted(&shared.address), resources.cpus),
        format!("export ROLLMILL_CORES={} ROLLMILL_GPUS={}", resources.cpus, resources.gpus),
    ];
    lines.extend(settings.setup.iter().cloned());
    let budget = match shared.flags.budget.as_slice() {
        [] => String::new(),
        flags => format!("{} budget {} || exit\n", quoted(&shared.program), words(flags)),
    };
    let command = shared.flags.command(step, resources, elements.fold, &settings.endpoint);
    let command: Vec<String> = std::iter::once(shared.program.clone()).chain(command).collect();
    format!(
        "{}\n{}{budget}{} &\n{}",
        lines.join("\n"),
        BEGIN.replace("{tries}", &settings.tries.to_string()),
        words(&command),
        END
    )
}

/// Counts the tries. A node that failed and a job that was preempted are begun again by Slurm itself, and count too.
const BEGIN: &str = r#"attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
me=$SLURM_JOB_ID
[ -z "${SLURM_ARRAY_JOB_ID:-}" ] || me=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
echo "$(date -u +%FT%TZ) $SLURM_JOB_NAME $me on $(hostname): attempt $attempt of {tries}"
if [ "$attempt" -gt {tries} ]; then
    echo "given up after {tries} attempts; see what they said above, then submit again"
    exit 10
fi
"#;

/// Hands signals on, and begins again what may succeed the next time, unless Slurm has decided otherwise: a job that a person
/// took from the queue is completing, one whose node failed has another attempt. A time limit, which makes it completing too, is
/// told by its warning.
const END: &str = r#"pid=$!
asked=
trap 'asked=USR1; kill -USR1 "$pid" 2>/dev/null' USR1
trap 'asked=${asked:-TERM}; kill -TERM "$pid" 2>/dev/null' TERM
wait "$pid"
code=$?
# A signal ends `wait` early: the worker saves what it has, and is waited for.
while kill -0 "$pid" 2>/dev/null; do
    wait "$pid"
    code=$?
done
echo "$(date -u +%FT%TZ) $SLURM_JOB_NAME $me: exit $code"
case $code in
0) exit 0 ;;
75 | 11 | 129 | 13? | 14?) ;;
*) exit "$code" ;;
esac
# The controller may be away for a while.
for _ in $(seq 30); do
    now=$(scontrol show job "$me" 2>/dev/null) && break
    sleep 10
done
case ${now:-}$asked in
*JobState=RUNNING*"Restarts=$((attempt - 1)) "* | *JobState=COMPLETING*"Restarts=$((attempt - 1)) "*USR1)
    scontrol requeue "$me" && sleep 60
    ;;
esac
exit 75
"#;

/// `0-3,7,9-11`.
fn ranges(sorted: &[u32]) -> String {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for &index in sorted {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => found.push((index, index)),
        }
    }
    let show = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    found.iter().map(show).collect::<Vec<_>>().join(",")
}

fn words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// One word of a shell.
fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollmill_job::Stage;
    use std::process::Command;

    fn shared() -> Shared {
        Shared {
            run_id: "0123456789abcdef".into(),
            address: "s3://bucket/it's here".into(),
            program: "/opt/rollmill".into(),
            folder: "/work".into(),
            logs: "/work/slurm".into(),
            flags: Flags {
                jobs: vec!["--lease-seconds".into(), "20".into()],
                rollouts: vec!["--concurrency".into(), "8".into()],
                budget: vec![],
            },
        }
    }

    fn made(step: &Step, settings: &ClusterSettings, indexes: &[u32]) -> String {
        let elements = Elements { fold: 8, indexes: indexes.to_vec() };
        let resources = settings.resources(step.job()).unwrap();
        script(&Batch { shared: &shared(), settings, step, resources: &resources, elements: &elements })
    }

    fn rollout() -> Step {
        Step::Rollout { set: "train".into(), round: 1, policy_round: 0 }
    }

    #[test]
    fn a_script_asks_for_what_was_configured() {
        let settings = ClusterSettings {
            partition: Some("cpu".into()),
            account: Some("lab".into()),
            throttle: 4,
            ..ClusterSettings::default()
        };
        let text = made(&rollout(), &settings, &[0, 1, 2, 5, 7]);
        for line in [
            "#SBATCH --job-name=rm-01234567-rollout-train-0001",
            "#SBATCH --array=0-2,5,7%4",
            "#SBATCH --partition=cpu",
            "#SBATCH --account=lab",
            "#SBATCH --requeue",
            "#SBATCH --kill-on-invalid-dep=yes",
            "#SBATCH --open-mode=append",
            "#SBATCH --signal=B:USR1@120",
            "#SBATCH --time=04:00:00",
            r"export ROLLMILL_RUN='s3://bucket/it'\''s here' OMP_NUM_THREADS=2",
            "/opt/rollmill rollout --split train --round 1 --policy-round 0 --fold 8 --lease-seconds 20 --concurrency 8 &",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("gres"), "no GPU was asked for");
        let train = made(&Step::Train { round: 3 }, &settings, &[0]);
        assert!(train.contains("/opt/rollmill train --round 3 --threads 8 &") && !train.contains("--array"), "{train}");
    }

    #[test]
    fn endpoints_are_told_what_they_wait_for() {
        let settings = ClusterSettings {
            endpoint: crate::EndpointSettings { command: Some("vllm serve {model}".into()), ..Default::default() },
            ..ClusterSettings::default()
        };
        let step = Step::Endpoint { round: 2, until: vec![Stage::rollout("train", 3)] };
        let text = made(&step, &settings, &[0]);
        let command = "/opt/rollmill endpoint --round 2 --until rollout/train/round-0003 --threads 8 --command 'vllm serve {model}' &";
        assert!(text.lines().any(|l| l == command), "{text}");
    }

    #[test]
    fn indexes_are_written_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[3]), "3");
    }

    /// A script's exit code, and whether it asked to be begun again, with a worker and a scontrol of shell. `state`: what Slurm
    /// says of the job when the worker has ended; `signals`: what the script is sent meanwhile.
    fn run(worker: &str, restarts: u32, state: &str, signals: &[&str]) -> (i32, bool) {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Command::new("chmod").arg("+x").arg(&path).status().unwrap();
            path
        };
        file("rollmill", &format!("#!/bin/bash\n{worker}\n"));
        // Instead of being killed, as by Slurm, the script goes on.
        let scontrol = format!(
            "#!/bin/bash\nif [ $1 = show ]; then echo '   {state}'; else echo \"$*\" >> {}/asked; fi\n",
            dir.path().display()
        );
        file("scontrol", &scontrol);
        file("sleep", "#!/bin/bash\nexit 0\n");
        let shared = Shared { program: dir.path().join("rollmill").display().to_string(), ..shared() };
        let settings = ClusterSettings { tries: 3, ..ClusterSettings::default() };
        let elements = Elements { fold: 8, indexes: vec![1] };
        let (step, resources) = (rollout(), settings.resources("rollout").unwrap());
        let (shared, settings, step, resources, elements) = (&shared, &settings, &step, &resources, &elements);
        let text = script(&Batch { shared, settings, step, resources, elements });
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.arg(file("script", &text)).env("PATH", path).current_dir(dir.path());
        command.env("SLURM_RESTART_COUNT", restarts.to_string()).env("SLURM_JOB_ID", "9").env("SLURM_JOB_NAME", "n");
        command.env("SLURM_ARRAY_JOB_ID", "8").env("SLURM_ARRAY_TASK_ID", "1").stdout(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        for signal in signals {
            let told = dir.path().join(if *signal == signals[0] { "started" } else { "warned" });
            while !told.exists() {
                std::thread::yield_now();
            }
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        }
        let code = child.wait().unwrap().code().unwrap();
        let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap_or_default();
        assert!(asked.is_empty() || asked == "requeue 8_1\n", "{asked}");
        (code, !asked.is_empty())
    }

    /// What `scontrol show job` says of a job that was begun again so often.
    fn state(name: &str, restarts: u32) -> String {
        format!("JobState={name} Reason=None Dependency=(null) Requeue=1 Restarts={restarts} BatchFlag=1")
    }

    #[test]
    fn what_may_pass_is_begun_again_and_nothing_else() {
        let running = |worker: &str, restarts| run(worker, restarts, &state("RUNNING", restarts), &[]);
        assert_eq!(running("exit 0", 0), (0, false));
        assert_eq!(running("exit 75", 0), (75, true));
        assert_eq!(running("exit 11", 1), (75, true));
        assert_eq!(running("kill -9 $$", 2), (75, true));
        for code in [2, 10, 101] {
            assert_eq!(running(&format!("exit {code}"), 0), (code, false));
        }
        assert_eq!(running("exit 0", 3), (10, false), "the fourth of three attempts");
    }

    #[test]
    fn a_warning_reaches_the_worker_which_is_waited_for() {
        let worker = "trap 'touch saved; exit 75' USR1\ntouch started\nwhile :; do /bin/sleep 0.05; done";
        assert_eq!(run(worker, 0, &state("RUNNING", 0), &["USR1"]), (75, true));
    }

    #[test]
    fn what_slurm_has_decided_is_not_undone() {
        let worker = "trap 'exit 75' TERM\ntrap 'touch warned' USR1\ntouch started\nwhile :; do /bin/sleep 0.05; done";
        let term = |name, restarts| run(worker, 1, &state(name, restarts), &["TERM"]);
        assert_eq!(term("COMPLETING", 1), (75, false), "taken from the queue");
        assert_eq!(term("RUNNING", 1), (75, true), "killed by something else");
        assert_eq!(term("RUNNING", 2), (75, false), "its node failed, and another attempt runs beside it");
        assert_eq!(run(worker, 1, &state("COMPLETING", 1), &["USR1", "TERM"]), (75, true), "a time limit");
    }
}
