//! Programs from a recorded completion to a reward: what the policy said becomes a file, which score grades at T1. No model.

use crate::act::{ActConfig, StopReason, act};
use crate::job::filled;
use crate::ready::{Ready, of_one_file};
use crate::tester::VisibleTests;
use rollmill_grader::{RewardConfig, T0Options};
use rollmill_policy::{Chat, Completed, Completion, EndpointError, Finish, Policy, Tokenizer};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, RootSource, prepare};
use rollmill_schema::{Task, Trajectory};
use rollmill_score::{Graded, Suites, grade_solution};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Says what was recorded, one text a request, and keeps the prompts.
struct Recorded {
    tokenizer: Tokenizer,
    says: Vec<String>,
    prompts: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Policy for Recorded {
    async fn complete(&self, asked: &Completion) -> Result<Completed, EndpointError> {
        let mut prompts = self.prompts.lock().unwrap();
        let token_ids = self.tokenizer.encode_untrusted(&self.says[prompts.len()]).unwrap();
        prompts.push(self.tokenizer.decode(&asked.prompt).unwrap());
        let log_probs = vec![-0.5; token_ids.len()];
        Ok(Completed { token_ids, log_probs, finish: Finish::Stop, text: String::new() })
    }
}

/// The root with compilers, or nothing: a skip with its name.
fn sandbox() -> Option<Arc<Namespaces>> {
    let options = NamespacesOptions { root: Root::Named("all".into()), ..NamespacesOptions::default() };
    if let Err(e) = prepare("all", &RootSource::profile("all").unwrap(), &options.cache_dir) {
        let required = std::env::var("ROLLMILL_REQUIRE").is_ok_and(|r| r.split(',').any(|p| p == "packages"));
        assert!(!required, "{e}");
        eprintln!("skipped: packages: {e}");
        return None;
    }
    Some(Arc::new(Namespaces::open(options).unwrap()))
}

fn suite(language: &str, cases: &[(&str, &str)]) -> String {
    let cases: Vec<_> = cases.iter().map(|(stdin, stdout)| json!({ "stdin": stdin, "stdout": stdout })).collect();
    json!({ "kind": "program", "language": language, "cases": cases, "checker": null }).to_string()
}

fn task(language: &str, visible: &[(&str, &str)]) -> Task {
    Task {
        task_id: "add".into(),
        kind: "program".into(),
        language: language.into(),
        instruction: "Read two integers and print their sum.".into(),
        visible_tests: if visible.is_empty() { "[]".into() } else { suite(language, visible) },
        ..Task::default()
    }
}

/// Hidden tests of the sum.
fn sums(language: &str) -> Suites {
    let hidden = [("2 3\n", "5\n"), ("-4 1\n", "-3\n")];
    Suites::of("", &suite(language, &hidden), Some(&suite(language, &[("7 8\n", "15\n")]))).unwrap()
}

struct Outcome {
    row: Trajectory,
    prompt: String,
    stopped: StopReason,
    graded: Graded,
}

/// A plan and one piece of code, as far as a reward.
async fn outcome(sandbox: &Arc<Namespaces>, task: Task, suites: &Suites, code: &str) -> Outcome {
    let fixtures = Path::new("../../shared/policy/fixtures/tiny");
    let tokenizer = Tokenizer::load(fixtures).unwrap();
    let chat = Chat::load(fixtures, &tokenizer).unwrap();
    let options = T0Options { per_call: Duration::from_secs(10), ..T0Options::default() };
    let ready = Ready::of(task, &options).unwrap();
    let tester = VisibleTests {
        sandbox: sandbox.clone(),
        places: Arc::new(Semaphore::new(2)),
        suite: ready.visible.clone(),
        options: ready.options.clone(),
    };
    let says = vec![" Read and add.\n".to_string(), format!("{code}```")];
    let policy = Recorded { tokenizer, says, prompts: Mutex::default() };
    let config = ActConfig { max_attempts: 1, context: 4096, ..ActConfig::default() };
    let acted = act(&policy, &policy.tokenizer, &chat, &config, &ready.act_task(), 5, &tester).await.unwrap();
    let stopped = acted.stop_reason;
    let row = filled(Trajectory::default(), acted, &ready.file);
    let solution = suites.solution(&row.final_files).unwrap();
    let graded = grade_solution(sandbox.as_ref(), &solution, suites, &RewardConfig::default(), &options).unwrap();
    let prompt = policy.prompts.lock().unwrap()[1].clone();
    Outcome { row, prompt, stopped, graded }
}

const VISIBLE: [(&str, &str); 1] = [("1 2\n", "3\n")];

/// Language, file, a right program, one that knows the visible case, one that is wrong.
const PROGRAMS: [(&str, &str, [&str; 3]); 2] = [
    (
        "python",
        "main.py",
        [
            "a, b = map(int, input().split())\nprint(a + b)\n",
            "print(3)\n",
            "a, b = map(int, input().split())\nprint(a - b)\n",
        ],
    ),
    (
        "cpp",
        "main.cpp",
        [
            "#include <iostream>\nint main() {\n    long a, b;\n    std::cin >> a >> b;\n    std::cout << a + b << '\\n';\n}\n",
            "#include <iostream>\nint main() {\n    std::cout << 3 << '\\n';\n}\n",
            "int main() { return a; }\n",
        ],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_policy_said_is_graded_as_a_program() {
    let Some(sandbox) = sandbox() else { return };
    for (language, file, [right, fitted, wrong]) in PROGRAMS {
        for (code, visible, reward) in [(right, true, 1.0), (fitted, true, 0.0), (wrong, false, 0.0)] {
            let Outcome { row, prompt, stopped, graded } =
                outcome(&sandbox, task(language, &VISIBLE), &sums(language), code).await;
            assert!(prompt.contains(&format!("Language: {language}. Write one file, {file}.")), "{prompt}");
            assert!(prompt.contains(r#"input "1 2\n" -> output "3\n""#), "{prompt}");
            assert!(prompt.ends_with(&format!("Plan: Read and add.\n```{language}\n")), "{prompt}");
            assert!(!prompt.contains("2 3"), "a hidden test is shown: {prompt}");
            assert_eq!(row.final_files, json!({ file: code }).to_string());
            let want = if visible { StopReason::Passed } else { StopReason::AttemptsSpent };
            assert_eq!((stopped, row.passed_visible), (want, visible), "{code}: {:?}", row.steps);
            assert_eq!((graded.reward, graded.tier, graded.proven), (reward, "T1", true), "{code}: {graded:?}");
        }
    }
}

/// Without a visible test it is seen whether the program compiles; without the task's file there is no solution.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_without_visible_tests_still_says_what_does_not_compile() {
    let Some(sandbox) = sandbox() else { return };
    let (_, _, [right, _, broken]) = PROGRAMS[1];
    for (code, passed) in [(right, true), (broken, false)] {
        let Outcome { row, .. } = outcome(&sandbox, task("cpp", &[]), &sums("cpp"), code).await;
        assert_eq!(row.passed_visible, passed, "{:?}", row.steps);
    }
    let suites = Suites::of("", &suite("cpp", &VISIBLE), None).unwrap();
    let misnamed = suites.solution(&json!({ "solution.py": right }).to_string()).unwrap();
    let options = T0Options::default();
    let graded = grade_solution(sandbox.as_ref(), &misnamed, &suites, &RewardConfig::default(), &options).unwrap();
    assert_eq!((graded.reward, graded.components.compiles), (0.0, 0.0));
}

/// A server is one file, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_policy_said_is_graded_as_a_server() {
    let Some(sandbox) = sandbox() else { return };
    let text = std::fs::read_to_string("../../examples/programs/servers.jsonl").unwrap();
    let line = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let c = rollmill_synthesize::parse_task(line).unwrap();
    let suites = Suites::of("", &c.tests_a, c.tests_b.as_deref()).unwrap();
    let right = c.reference.unwrap();
    let wrong = right.replace("total += int", "total -= int");
    assert_ne!(right, wrong);
    for (code, reward) in [(&right, 1.0), (&wrong, 0.0)] {
        let task = Task {
            kind: c.kind.clone(),
            language: c.language.clone(),
            instruction: c.instruction.clone(),
            visible_tests: c.visible_tests.clone(),
            ..Task::default()
        };
        let Outcome { row, prompt, graded, .. } = outcome(&sandbox, task, &suites, code).await;
        assert!(prompt.contains("Write one file, main.py."), "{prompt}");
        assert_eq!((row.passed_visible, graded.reward), (reward > 0.0, reward), "{graded:?} {:?}", row.steps);
    }
}

#[test]
fn a_repository_is_left_out_and_counted() {
    let of = |kind: &str| Task { kind: kind.into(), ..Task::default() };
    let (tasks, left_out) = of_one_file(["function", "repository", "program", "server", "repository"].map(of).to_vec());
    let kinds: Vec<&str> = tasks.iter().map(|t| t.kind.as_str()).collect();
    assert_eq!(kinds, ["function", "program", "server"]);
    assert_eq!(left_out.into_iter().collect::<Vec<_>>(), [("repository".to_string(), 2)]);
}
