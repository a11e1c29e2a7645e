//! The public form: read, refused with index and field, and written back to the same.

use super::*;
use crate::literal::tests::any_value;
use proptest::prelude::*;

#[test]
fn public_form() {
    let json = r#"[{"input": "(1, 2)", "expected": "3"}, {"args": "(1, [2])", "expected": "{1: None}", "comparator": "approx(abs=0.1)", "more": 1},
        {"args": "()", "exception": "ValueError"}]"#;
    let cases = parse_cases(json).unwrap();
    assert_eq!(cases[0].args, vec![Value::Tuple(vec![Value::int(1), Value::int(2)])]);
    assert_eq!(cases[1].args.len(), 2);
    assert_eq!(cases[2].expect_exception.as_deref(), Some("ValueError"));
    assert_eq!(parse_cases(&render_cases(&cases)).unwrap(), cases);
}

#[test]
fn all_fields() {
    let json = r#"[
        {"args": "([2, 1],)", "kwargs": "{'reverse': True}", "expected": "None", "mutates": "{0: [2, 1]}"},
        {"args": "()", "exception": "ValueError", "pattern": "^no .*$"},
        {"args": "()", "exception": "ValueError", "message": "no"},
        {"args": "(3,)", "predicate": "def accept(args, got):\n    return got > args[0]\n"},
        {"args": "(1,)", "steps": [{"call": "push", "args": "(2,)"}, {"get": "size", "expected": "2"},
            {"call": "pop", "kwargs": "{'at': 9}", "exception": "IndexError", "message": "empty"}]}
    ]"#;
    let cases = parse_cases(json).unwrap();
    assert_eq!(cases[0].kwargs, vec![("reverse".to_owned(), Value::Bool(true))]);
    assert_eq!(cases[0].mutates[0].0, 0);
    assert_eq!(cases[1].message, Some(Message::Pattern("^no .*$".into())));
    assert_eq!(cases[3].comparator, Comparator::Predicate);
    assert_eq!(cases[4].steps.len(), 3);
    assert_eq!(cases[4].steps[0].expected, None);
    assert_eq!(cases[4].steps[1].action, Action::Get("size".into()));
    assert_eq!(parse_cases(&render_cases(&cases)).unwrap(), cases);
}

#[test]
fn errors_name_index_and_field() {
    for (bad, want) in [
        (r#"{"expected": "1"}"#, "test case 1, field \"input\": missing"),
        (r#"{"input": "1"}"#, "test case 1, field \"expected\": missing"),
        (r#"{"input": "x", "expected": "1"}"#, "test case 1, field \"input\": a name is no literal at byte 0"),
        (r#"{"input": 1, "expected": "1"}"#, "test case 1, field \"input\": must be a string"),
        (r#"{"args": "[1]", "expected": "1"}"#, "test case 1, field \"args\": must be a tuple"),
        (r#"{"input": "1", "expected": "1", "comparator": "fuzzy"}"#, "test case 1, field \"comparator\": unknown"),
        (r#"{"input": "1", "expected": "1", "comparator": "predicate"}"#, "test case 1, field \"predicate\": missing"),
        (r#"{"input": "1", "expected": "1", "predicate": "x"}"#, "test case 1, field \"predicate\": given beside"),
        (r#"{"input": "1", "expected": "1", "kwargs": "[1]"}"#, "test case 1, field \"kwargs\": must be a dict"),
        (r#"{"input": "1", "expected": "1", "kwargs": "{1: 2}"}"#, "test case 1, field \"kwargs\": a keyword"),
        (r#"{"input": "1", "expected": "1", "mutates": "{1: 2}"}"#, "test case 1, field \"mutates\": a key"),
        (r#"{"input": "1", "expected": "1", "message": "x"}"#, "test case 1, field \"exception\": missing"),
        (r#"{"input": "1", "exception": "E", "pattern": "("}"#, "test case 1, field \"pattern\": "),
        (r#"{"input": "1", "exception": ""}"#, "test case 1, field \"exception\": empty"),
        (r#"{"input": "1", "steps": []}"#, "test case 1, field \"steps\": empty"),
        (r#"{"input": "1", "steps": {}}"#, "test case 1, field \"steps\": must be an array"),
        (r#"{"input": "1", "steps": [{"call": "f"}], "expected": "1"}"#, "test case 1, field \"steps\": given beside"),
        (
            r#"{"input": "1", "steps": [{"call": "f"}, {"expected": "1"}]}"#,
            "test case 1, field \"steps[1].call\": give",
        ),
        (r#"{"input": "1", "steps": [{"get": "f", "expected": "("}]}"#, "test case 1, field \"steps[0].expected\": "),
    ] {
        let error = parse_cases(&format!(r#"[{{"input": "1", "expected": "1"}}, {bad}]"#)).unwrap_err().to_string();
        assert!(error.starts_with(want), "{bad}: {error}");
    }
    assert!(matches!(parse_cases("{}"), Err(CasesError::Json(_))));
}

fn any_comparator() -> impl Strategy<Value = Comparator> {
    let names = ["exact", "identical", "approx(abs=0.5,rel=0.0)", "sequence", "unordered", "set_eq", "truthy", "falsy"];
    prop::sample::select(names.to_vec()).prop_map(|name| name.parse().unwrap())
}

fn any_message() -> impl Strategy<Value = Option<Message>> {
    prop_oneof![
        Just(None),
        any::<String>().prop_map(|text| Some(Message::Exact(text))),
        "[a-z.*]{0,0}[a-z]{1,4}".prop_map(|text| Some(Message::Pattern(text))),
    ]
}

fn any_kwargs() -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::collection::btree_map("[a-z]{1,4}", any_value(), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn any_args() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(any_value(), 0..3)
}

fn any_step() -> impl Strategy<Value = Step> {
    let call = (any_args(), any_kwargs()).prop_map(|(args, kwargs)| Action::Call { method: "f".into(), args, kwargs });
    let action = prop_oneof![call, Just(Action::Get("size".into()))];
    let raised = any_message().prop_map(|message| (None, Some("E".to_owned()), message));
    let outcome = prop_oneof![raised, any_value().prop_map(|v| (Some(v), None, None)), Just((None, None, None))];
    (action, any_comparator(), outcome).prop_map(|(action, comparator, (expected, expect_exception, message))| Step {
        action,
        expected,
        comparator,
        expect_exception,
        message,
    })
}

fn any_case() -> impl Strategy<Value = Case> {
    let empty = || Case::exact(vec![], Value::None);
    let plain = (any_value(), any_comparator()).prop_map(move |(expected, comparator)| Case {
        expected,
        comparator,
        ..empty()
    });
    let raised = any_message().prop_map(move |message| Case { expect_exception: Some("E".into()), message, ..empty() });
    let steps = prop::collection::vec(any_step(), 1..3).prop_map(move |steps| Case { steps, ..empty() });
    let asked = any::<String>().prop_map(move |text| Case {
        predicate: Some(text),
        comparator: Comparator::Predicate,
        ..empty()
    });
    let kind = prop_oneof![plain, raised, steps, asked];
    (kind, any_args(), any_kwargs(), any_value()).prop_map(|(case, args, kwargs, after)| Case {
        mutates: (0..args.len().min(1)).map(|at| (at, after.clone())).collect(),
        args,
        kwargs,
        ..case
    })
}

proptest! {
    #[test]
    fn written_and_read_back(cases in prop::collection::vec(any_case(), 0..3)) {
        prop_assert_eq!(parse_cases(&render_cases(&cases)).unwrap(), cases);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), field in "input|args|kwargs|mutates|expected|pattern|steps|comparator") {
        let row = serde_json::json!([{"input": "1", "exception": "E", field: text}]);
        let _ = parse_cases(&row.to_string());
    }
}
