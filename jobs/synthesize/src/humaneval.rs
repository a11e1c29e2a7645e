//! HumanEval: `prompt`, `entry_point`, `canonical_solution`, `test` with `check(candidate)`. For evaluation only.

use crate::asserts::Pending;
use crate::lines::need_text;
use rollmill_grader::asserts::AssertSource;
use rollmill_schema::Candidate;
use serde_json::{Map, Value};

/// One line to a candidate whose tests A are still to be converted.
pub fn parse(mut object: Map<String, Value>) -> Result<Pending, String> {
    let prompt = need_text(&mut object, "prompt")?;
    let entry_point = need_text(&mut object, "entry_point")?;
    let solution = need_text(&mut object, "canonical_solution")?;
    let test = need_text(&mut object, "test")?;
    let source_id = need_text(&mut object, "task_id")?;
    let candidate = Candidate {
        group: source_id.clone(),
        source_id,
        licence: "MIT".into(),
        language: "python".into(),
        kind: "function".into(),
        ability: "general".into(),
        instruction: format!("Complete this function:\n\n{}", prompt.trim_end()),
        entry_point: entry_point.clone(),
        // Its examples stand in the docstring, which the policy sees.
        visible_tests: "[]".into(),
        reference: Some(format!("{prompt}{solution}")),
        eval_only: true,
        metadata: Value::Object(object).to_string(),
        ..Candidate::default()
    };
    let tests_a = AssertSource { setup: String::new(), tests: vec![test], entry_point: Some(entry_point) };
    Ok(Pending { candidate, shown: 0, tests_a, tests_b: None, before_tests: prompt })
}
