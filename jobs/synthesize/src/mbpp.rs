//! MBPP: `text`, `code`, `test_list`, `test_setup_code`, `challenge_test_list`. The first assert is shown to the policy, the
//! rest are hidden tests A; the challenge tests are tests B.

use crate::asserts::Pending;
use crate::lines::{need_text, take_text, take_texts};
use rollmill_grader::asserts::AssertSource;
use rollmill_schema::Candidate;
use serde_json::{Map, Value};

/// One line to a candidate whose tests are still to be converted.
pub fn parse(mut object: Map<String, Value>) -> Result<Pending, String> {
    let text = need_text(&mut object, "text")?;
    let code = need_text(&mut object, "code")?;
    let tests = take_texts(&mut object, "test_list")?;
    let challenge = take_texts(&mut object, "challenge_test_list")?;
    let setup = take_text(&mut object, "test_setup_code")?.unwrap_or_default();
    let source_id = need_text(&mut object, "task_id")?;
    if tests.is_empty() {
        return Err("field \"test_list\" is empty".into());
    }
    let code = code.replace("\r\n", "\n");
    let candidate = Candidate {
        group: format!("mbpp/{source_id}"),
        source_id,
        licence: "CC-BY-4.0".into(),
        language: "python".into(),
        kind: "function".into(),
        ability: "general".into(),
        instruction: text,
        reference: Some(if setup.trim().is_empty() { code } else { format!("{setup}\n{code}") }),
        metadata: Value::Object(object).to_string(),
        ..Candidate::default()
    };
    let source = |tests: Vec<String>| AssertSource { setup: setup.clone(), tests, entry_point: None };
    let tests_b = (!challenge.is_empty()).then(|| source(challenge));
    Ok(Pending { candidate, shown: 1, tests_a: source(tests), tests_b, before_tests: setup.clone() })
}
