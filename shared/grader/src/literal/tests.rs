//! Literals against what CPython 3.11's `ast.literal_eval` answers, and properties over random values.

use super::*;
use proptest::prelude::*;

fn reads(text: &str) -> String {
    parse(text).unwrap_or_else(|e| panic!("{text:?}: {e}")).to_literal()
}

#[test]
fn scalars() {
    for (text, want) in [
        ("None", "None"),
        (" True ", "True"),
        ("0", "0"),
        ("00", "0"),
        ("-0", "0"),
        ("1_000", "1000"),
        ("0xFF", "255"),
        ("0b_101", "5"),
        ("0o17", "15"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("- -3", "3"),
        ("+3", "3"),
        ("1.", "1.0"),
        (".5", "0.5"),
        ("1e3", "1000.0"),
        ("1E-2", "0.01"),
        ("1e999", "1e999"),
        ("-inf", "-1e999"),
        ("float('-inf')", "-1e999"),
        ("nan", "nan"),
        ("1+2j", "(1.0+2.0j)"),
        ("-1-2.5j", "(-1.0-2.5j)"),
        ("3j", "(0.0+3.0j)"),
        ("1e22", "1e22"),
    ] {
        assert_eq!(reads(text), want, "{text}");
    }
}

#[test]
fn strings() {
    for (text, want) in [
        (r"'a\n\t\\\''", "a\n\t\\'"),
        (r#""it's""#, "it's"),
        (r"r'\n\''", r"\n\'"),
        (r"'\x41\u0042\U00000043\104\0'", "ABCD\0"),
        ("'a' \"b\"\n u'c'", "abc"),
        ("'''x\n'y''z'''", "x\n'y''z"),
        ("\"\"\"a\r\nb\"\"\"", "a\nb"),
        ("'a\\\nb'", "ab"),
        (r"'\q'", r"\q"),
        ("'é😀'", "é😀"),
        (r"'\é'", r"\é"),
        ("''", ""),
        (r"'\777'", "\u{1ff}"),
    ] {
        assert_eq!(parse(text).unwrap(), Value::str(want), "{text}");
    }
    for (text, want) in [
        (r"b'\x00\xffA\101'", &b"\0\xffAA"[..]),
        (r"rb'\x'", br"\x"),
        (r"b'\u0041'", br"\u0041"),
        (r"b'\777'", b"\xff"),
    ] {
        assert_eq!(parse(text).unwrap(), Value::Bytes(want.to_vec()), "{text}");
    }
}

#[test]
fn containers() {
    for (text, want) in [
        ("()", "()"),
        ("(1)", "1"),
        ("(1,)", "(1,)"),
        ("1, 2", "(1, 2)"),
        ("1,", "(1,)"),
        ("[1, [2,], ]", "[1, [2]]"),
        ("{}", "{}"),
        ("set()", "set()"),
        ("frozenset()", "frozenset()"),
        ("{1, 2, 1.0}", "{1, 2}"),
        ("frozenset({1, 2})", "frozenset({1, 2})"),
        ("{'a': 1, 'b': (2,), 'a': 3}", "{'a': 3, 'b': (2,)}"),
        ("{1: 'a', True: 'b'}", "{1: 'b'}"),
        ("[1, # one\n 2]", "[1, 2]"),
        ("{(1, 2): {3}}", "{(1, 2): {3}}"),
        ("set([1, 1])", "{1}"),
    ] {
        assert_eq!(reads(text), want, "{text}");
    }
}

#[test]
fn refused() {
    for text in [
        "",
        " ",
        "x",
        "1 2",
        "[1",
        "[1 2]",
        "(,)",
        "{1: }",
        "{1, 2: 3}",
        "{[]}",
        "{[]: 1}",
        "'a",
        "'a\nb'",
        "012",
        "0x",
        "1__0",
        "1_",
        "f'x'",
        "b'é'",
        "'a' b'b'",
        "-'a'",
        "1+2",
        "1j+1",
        r"'\x4'",
        r"'\ud800'",
        r"'\N{DIGIT ONE}'",
        "__import__('os')",
        "[].__class__",
        "1 if 1 else 2",
        "set(1)",
        "lambda: 0",
        "1.2.3",
        "0b12",
        "é",
        "'a'.upper()",
        "...",
        "float('1')",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert_eq!(parse("[1, x]").unwrap_err().at, 4);
}

#[test]
fn depth_and_size_are_capped() {
    let nest = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(parse(&nest(MAX_DEPTH)).is_ok());
    assert_eq!(parse(&nest(MAX_DEPTH + 1)).unwrap_err().what, "nested too deeply");
    for open in ["[", "(", "{", "-", "{1:", "frozenset("] {
        assert!(parse(&open.repeat(200_000)).is_err());
    }
    assert!(parse(&" ".repeat(MAX_BYTES + 1)).is_err());
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        "-?[1-9][0-9]{0,40}".prop_map(|s| Value::Int(crate::int::Int::parse(&s).unwrap())),
        any::<f64>().prop_filter("nan is not equal to itself", |x| !x.is_nan()).prop_map(Value::Float),
        any::<String>().prop_map(Value::Str),
        any::<Vec<u8>>().prop_map(Value::Bytes),
        (any::<i64>(), any::<i64>(), prop_oneof![1..9i64, -9..0i64]).prop_map(|(a, b, c)| Value::Range(a, b, c)),
        "[A-Z][a-z]{0,3}".prop_map(|type_name| Value::Enum { type_name, member: "RED".to_owned() }),
        (any::<i64>(), 1..99i64).prop_map(|(a, b)| Value::Record {
            type_name: "Fraction".to_owned(),
            fields: vec![(String::new(), Value::int(a)), (String::new(), Value::int(b))]
        }),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let many = prop::collection::vec(inner.clone(), 0..5);
        let distinct = many.clone().prop_map(|items| {
            let mut seen = std::collections::HashSet::new();
            items.into_iter().filter(|i| i.is_hashable() && seen.insert(i.key())).collect::<Vec<_>>()
        });
        prop_oneof![
            many.clone().prop_map(Value::Tuple),
            many.prop_map(Value::List),
            distinct.clone().prop_map(Value::Set),
            distinct.clone().prop_map(Value::FrozenSet),
            (distinct, inner.clone())
                .prop_map(|(keys, v)| Value::Dict(keys.into_iter().map(|k| (k, v.clone())).collect())),
            prop::collection::btree_map("[a-z_][a-z0-9_]{0,5}", inner, 0..4).prop_map(|fields| Value::Record {
                type_name: "Point".to_owned(),
                fields: fields.into_iter().collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn printing_and_reading_is_the_identity(value in any_value()) {
        prop_assert_eq!(parse(&value.to_literal()).unwrap(), value);
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn no_literal_like_text_panics(text in r#"[\[\](){},:'"\\xubr0-9eEjJ_.+\- nN#\n]{0,60}"#) {
        if let Ok(value) = parse(&text) {
            prop_assert_eq!(parse(&value.to_literal()).unwrap().key(), value.key());
        }
    }
}
