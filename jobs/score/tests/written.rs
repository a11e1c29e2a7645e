//! Tasks of the public sets whose asserts are no literal calls go the whole way: synthesized, verified, graded by what verify
//! admitted.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod busy;

use busy::settled;
use rollmill_grader::{RewardConfig, Solution, Suite, T0Options};
use rollmill_sandbox::{Namespaces, NamespacesOptions};
use rollmill_schema::Candidate;
use rollmill_score::{Graded, Suites, grade_solution};
use rollmill_synthesize::{Kind, Source, SynthesizeConfig, load};
use rollmill_verify::{Decision, VerifyConfig, check};
use std::path::PathBuf;
use std::time::Duration;

/// Five of HumanEval and four of MBPP.
const WRITTEN: [&str; 9] =
    ["HumanEval/32", "HumanEval/33", "HumanEval/38", "HumanEval/50", "HumanEval/53", "533", "596", "601", "912"];
/// Two of MBPP whose reference uses a class that nothing defines before it.
const BROKEN: [&str; 2] = ["367", "927"];
/// Equal to everything, wherever it is compared.
const ANY: &str = "class Any:\n    def __eq__(self, other): return True\n    __hash__ = None\n    def __bool__(self): return True\n\
    def ENTRY(*args, **kwargs): return Any()\nclass Pair:\n    def __init__(self, a, b): pass\n";

fn candidates(test: &str) -> Option<Vec<Candidate>> {
    let beside = PathBuf::from("../../../shared/data");
    let folder = std::env::var_os("ROLLMILL_DATA").map_or(beside, PathBuf::from);
    let source = |kind, file: &str| Source {
        kind,
        path: folder.join(file),
        name: None,
        licence: None,
        difficulty: vec![],
        limit: None,
        eval_only: false,
    };
    let sources = vec![source(Kind::Humaneval, "humaneval/HumanEval.jsonl.gz"), source(Kind::Mbpp, "mbpp/mbpp.jsonl")];
    if sources.iter().any(|s| !s.path.is_file()) {
        eprintln!("skipped: {test}: no humaneval and mbpp in {}; set ROLLMILL_DATA", folder.display());
        return None;
    }
    Some(load(&SynthesizeConfig { sources, ..SynthesizeConfig::default() }).unwrap().candidates)
}

fn verified(sandbox: &Namespaces, c: &Candidate) -> Decision {
    let config = VerifyConfig { call_seconds: 10.0, ..VerifyConfig::default() };
    settled(|| check(sandbox, c, &config))
}

fn graded(sandbox: &Namespaces, c: &Candidate, source: &str) -> Graded {
    let suites = Suites::of(&c.entry_point, &c.tests_a, c.tests_b.as_deref()).unwrap();
    let options = T0Options { per_call: Duration::from_secs(10), ..T0Options::default() };
    let solution = Solution::from_source(&source.replace("ENTRY", &c.entry_point));
    settled(|| grade_solution(sandbox, &solution, &suites, &RewardConfig::default(), &options))
}

#[test]
fn tasks_that_are_no_literal_calls_are_admitted_and_graded() {
    let Some(all) = candidates("tasks_that_are_no_literal_calls_are_admitted_and_graded") else { return };
    let sandbox = Namespaces::open(NamespacesOptions::default()).unwrap();
    let impossible: Vec<_> = all.iter().filter_map(|c| Some((&c.source_id, c.unconvertible.as_ref()?))).collect();
    assert!(impossible.is_empty(), "{impossible:?}");
    let is_written = |c: &&Candidate| c.tests_a.starts_with('{');
    let written: Vec<&Candidate> = all.iter().filter(is_written).collect();
    let mut ids: Vec<&str> = written.iter().map(|c| c.source_id.as_str()).collect();
    ids.sort_unstable();
    let mut wanted = [&WRITTEN[..], &BROKEN].concat();
    wanted.sort_unstable();
    assert_eq!(ids, wanted, "all others are calls");
    for c in written {
        let (id, decision) = (&c.source_id, verified(&sandbox, c));
        if BROKEN.contains(&id.as_str()) {
            assert_eq!(decision.reason.as_deref(), Some("reference_fails"), "{id}: {}", decision.detail);
            assert!(decision.detail.contains("Node"), "{id}: {}", decision.detail);
            continue;
        }
        assert_eq!(decision.reason, None, "{id}: {}", decision.detail);
        let of = |source: &str| graded(&sandbox, c, source);
        let right = of(c.reference.as_deref().unwrap());
        assert_eq!((right.reward, right.solved, right.tier, right.proven), (1.0, true, "T0", true), "{id}: {right:?}");
        for wrong in ["", "def ENTRY(*args, **kwargs): pass\n", ANY] {
            let wrong = of(wrong);
            assert_eq!((wrong.reward, wrong.tests_a.passed), (0.0, 0), "{id}: {wrong:?}");
        }
    }
}

/// One test of MBPP is shown and no hidden test is the same; HumanEval's one test is hidden.
#[test]
fn what_is_shown_is_no_hidden_test() {
    let Some(all) = candidates("what_is_shown_is_no_hidden_test") else { return };
    let read = |c: &Candidate, tests: &str| Suite::parse(&c.entry_point, tests).unwrap().inputs();
    for c in all.iter().filter(|c| WRITTEN.contains(&c.source_id.as_str())) {
        let (visible, hidden) = (read(c, &c.visible_tests), read(c, &c.tests_a));
        let counts = if c.source == "mbpp" { (1, 2) } else { (0, 1) };
        assert_eq!((visible.len(), hidden.len()), counts, "{}", c.source_id);
        assert!(visible.iter().all(|text| !hidden.contains(text)), "{}", c.source_id);
    }
    let pairs = all.iter().find(|c| c.source_id == "601").unwrap();
    assert!(pairs.tests_a.contains(r#""names":["Pair"]"#), "{}", pairs.tests_a);
    // The control: a helper that the task's text gives to the tests is not taken from a solution.
    let cyclic = all.iter().find(|c| c.source_id == "HumanEval/38").unwrap();
    assert!(cyclic.tests_a.contains("def encode_cyclic") && cyclic.tests_a.contains(r#""names":[]"#));
}
