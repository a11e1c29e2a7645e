use super::*;
use TestOutcome::*;

fn check(reported: &Reported, want: &[(&str, TestOutcome)]) {
    for (id, outcome) in want {
        assert_eq!(reported.outcome(id), *outcome, "{id} in {reported:?}");
    }
}

#[test]
fn junit_xml() {
    let text = r#"<?xml version="1.0"?><testsuites><testsuite name="s" tests="6">
        <testcase classname="a.B" name="one" time="0.1"/>
        <testcase name="two &gt; &quot;x&quot; &#65;" classname='a.B'><failure message="m">t</failure></testcase>
        <testcase classname="a.B" name="three"><skipped/></testcase>
        <testcase name="four"><system-out><![CDATA[<testcase classname="a.B" name="five"/>]]></system-out></testcase>
        <!-- <testcase classname="a.B" name="six"/> -->
        <testcase classname="a.B" name="seven"><error/></testcase>
        <testcase classname="a.B" name="eight" note="a > b"/>
        <testcase classname="a.B" name="eight"/>
        <testcase classname="a.B" name="nine"><testcase classname="a.B" name="ten"/></testcase>
        <testcase classname="a.B" name="cut""#;
    let want = [
        ("a.B::one", Passed),
        ("a.B::two > \"x\" A", Failed),
        ("a.B::three", Skipped),
        ("four", Passed),
        ("a.B::five", Missing),
        ("a.B::six", Missing),
        ("a.B::seven", Errored),
        ("a.B::eight", Duplicate),
        ("a.B::nine", Protocol),
        ("a.B::cut", Missing),
    ];
    check(&junit(text), &want);
}

#[test]
fn tap_lines() {
    let text = "TAP version 13\n1..6\nok 1 - adds\nnot ok 2 - divides\n  ---\n  ok 9 - inner\n  ...\nok 3 - later # SKIP no net\n\
        not ok 4 - some day # TODO\nok 5 # hash in it\nok - adds\n# diag\nokay\n";
    let want = [
        ("adds", Duplicate),
        ("divides", Failed),
        ("inner", Missing),
        ("later", Skipped),
        ("some day", Xfailed),
        ("# hash in it", Passed),
    ];
    check(&tap(text), &want);
    for broken in ["ok 1 - a\n", "1..2\nok 1 - a\n", "1..1\nok 1 - a\n1..1\n", "1..1\nok 1 - a\nBail out!\n", "1..x\n"]
    {
        assert!(tap(broken).is_empty(), "{broken}");
    }
}

#[test]
fn cargo_lines() {
    let good = "\nrunning 4 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d - should panic ... ok\n\
        test e ... ignored, slow\n\nfailures:\n\ntest result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n";
    let doc = "\nrunning 1 test\ntest src/lib.rs - f (line 3) ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n";
    let all = cargo_test(&format!("{good}{doc}"));
    let want = [("a::b", Passed), ("a::c", Failed), ("d", Passed), ("e", Skipped), ("src/lib.rs - f (line 3)", Passed)];
    check(&all, &want);
    check(&cargo_test(&format!("{good}{good}")), &[("a::b", Duplicate)]);
    // Ended before the last line; one line too many; a result that counts otherwise.
    let (unfinished, _) = good.split_once("\n\nfailures").unwrap();
    let forged = good.replace("test a::b ... ok", "test a::c ... ok\ntest a::b ... ok");
    let other = good.replace("2 passed; 1 failed", "3 passed; 0 failed");
    for text in [unfinished, &forged, &other, "test a::b ... ok\n"] {
        assert!(cargo_test(text).is_empty(), "{text}");
    }
}

#[test]
fn go_events() {
    let text = r#"{"Time":"t","Action":"run","Package":"x/y","Test":"TestA"}
{"Action":"output","Package":"x/y","Test":"TestA","Output":"{\"Action\":\"pass\",\"Package\":\"x/y\",\"Test\":\"TestB\"}\n"}
{"Action":"pass","Package":"x/y","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"x/y","Test":"TestB/sub"}
{"Action":"skip","Package":"x/y","Test":"TestC"}
{"Action":"pass","Package":"x/y","Test":"TestD"}
{"Action":"fail","Package":"x/y","Test":"TestD"}
not json
{"Action":"fail","Package":"x/y"}
{"Action":"pass","Package":"never/ended","Test":"TestA"}
"#;
    let want = [
        ("x/y::TestA", Passed),
        ("x/y::TestB", Missing),
        ("x/y::TestB/sub", Failed),
        ("x/y::TestC", Skipped),
        ("x/y::TestD", Duplicate),
        ("never/ended::TestA", Missing),
    ];
    check(&go_test(text), &want);
}

#[test]
fn hostile_sizes() {
    let long = "x".repeat(MAX_ID + 1);
    assert!(tap(&format!("1..1\nok 1 - {long}\n")).is_empty());
    let many: String = (0..=MAX_IDS).map(|n| format!("ok {n} - t{n}\n")).collect();
    assert_eq!(tap(&format!("1..{}\n{many}", MAX_IDS + 1)).len(), MAX_IDS);
    assert!(junit(&"<testcase name=\"a\">".repeat(10_000)).len() == 1);
    assert!(junit(&"<".repeat(100_000)).is_empty());
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(<|>|/|testcase| name=|\"|'|&#x41;|&|<!--|-->|<!\\[CDATA\\[|\\]\\]>|ok |not ok |1\\.\\.2|\n|test |é| \\.\\.\\. |# skip|\\{|\\}|running 1 test|test result: ok){0,40}") {
        for read in [junit, tap, cargo_test, go_test] {
            read(&text);
        }
    }

    #[test]
    fn an_id_named_twice_never_passes(names in proptest::collection::vec("[a-c]", 1..8)) {
        let lines: String = names.iter().map(|n| format!("ok - {n}\n")).collect();
        let reported = tap(&format!("{lines}1..{}\n", names.len()));
        for name in &names {
            let once = names.iter().filter(|n| *n == name).count() == 1;
            proptest::prop_assert_eq!(reported.outcome(name), if once { Passed } else { Duplicate });
        }
    }
}
