use super::*;

fn files(items: &[(&str, &str)]) -> Files {
    items.iter().map(|(p, c)| ((*p).to_owned(), c.as_bytes().to_vec())).collect()
}

fn collected(items: &[(&str, &str)]) -> Collected {
    Collected { files: files(items).into_iter().collect(), refused: vec![] }
}

fn paths(list: &[Refusal]) -> Vec<&str> {
    list.iter().map(|r| r.path.as_str()).collect()
}

const PRISTINE: &[(&str, &str)] = &[
    ("README", "r"),
    ("src/a.py", "a"),
    ("src/b.py", "b"),
    ("tests/test_a.py", "t"),
    ("pyproject.toml", "[project]\n"),
];

fn with(changes: &[(&str, &str)]) -> Collected {
    let mut all = files(PRISTINE);
    all.extend(files(changes));
    Collected { files: all.into_iter().collect(), refused: vec![] }
}

#[test]
fn changes_in_allowed_paths_count() {
    let rules = DiffRules { allow: vec!["src/**".into()], ..DiffRules::default() };
    let mut agent = with(&[("src/a.py", "A"), ("src/new/c.py", "c"), ("README", "mine"), ("x.py", "x")]);
    agent.files.retain(|(path, _)| path != "src/b.py" && path != "tests/test_a.py");
    let applied = rules.apply(&files(PRISTINE), &agent);
    assert_eq!(applied.changed, ["src/a.py", "src/new/c.py"]);
    assert_eq!(applied.deleted, ["src/b.py"]);
    assert_eq!(paths(&applied.ignored), ["README", "x.py", "tests/test_a.py"]);
    assert!(applied.refused.is_empty());
    let want = files(&[
        ("README", "r"),
        ("pyproject.toml", "[project]\n"),
        ("src/a.py", "A"),
        ("src/new/c.py", "c"),
        ("tests/test_a.py", "t"),
    ]);
    assert_eq!(applied.files, want);
}

#[test]
fn an_overlay_deletes_nothing() {
    let solution = crate::Solution::from_source("x = 1\n");
    let applied = DiffRules::default().overlay(&files(PRISTINE), &solution.files);
    assert_eq!((applied.changed.as_slice(), applied.deleted.len()), (["solution.py".to_owned()].as_slice(), 0));
    assert_eq!(applied.files.len(), PRISTINE.len() + 1);
}

#[test]
fn files_that_cannot_be_in_one_folder() {
    assert_eq!(misplaced(&files(&[("a", ""), ("a.b", ""), ("b/c", "")])), None);
    for bad in
        [[("a", ""), ("a/b", "")], [("x/y", ""), ("x/y/z", "")], [("../x", ""), ("y", "")], [("/x", ""), ("y", "")]]
    {
        assert!(misplaced(&files(&bad)).is_some(), "{bad:?}");
        let applied = DiffRules::default().overlay(&Files::new(), &collected(&bad).files);
        assert_eq!((applied.changed.len(), applied.refused.len()), (1, 1), "{bad:?}");
        assert_eq!(misplaced(&applied.files), None);
    }
}

#[test]
fn own_tests_and_configuration_are_ignored() {
    let own = [
        "conftest.py",
        "src/conftest.py",
        "pytest.ini",
        "setup.cfg",
        "tox.ini",
        "tests/test_a.py",
        "tests/helper.py",
        "src/test_own.py",
        "a_test.go",
        ".cargo/config.toml",
        ".git/HEAD",
        "a/.git/hooks/pre-commit",
        "src/__pycache__/a.cpython-311.py",
    ];
    let changes: Vec<(&str, &str)> = own.iter().map(|p| (*p, "mine")).collect();
    let applied = DiffRules::default().apply(&files(PRISTINE), &with(&changes));
    let mut want = own.to_vec();
    want.sort_unstable();
    assert_eq!(paths(&applied.ignored), want);
    assert_eq!((applied.files, applied.refused), (files(PRISTINE), vec![]));
}

#[test]
fn what_a_tool_chain_would_run_unasked_is_refused() {
    let bad = ["a.pth", "src/A.PYC", "sitecustomize.py", "src/usercustomize.py", "README/x", "src"];
    for path in bad {
        let agent = Collected { files: vec![(path.into(), b"x".to_vec())], refused: vec![] };
        let applied = DiffRules::default().apply(&files(PRISTINE), &agent);
        assert_eq!(paths(&applied.refused), [path]);
        assert!(applied.changed.is_empty());
    }
    for path in ["../x", "/etc/passwd", "a//b", "a/./b", "a\0b", ""] {
        let agent = Collected { files: vec![(path.into(), b"x".to_vec())], refused: vec![] };
        assert_eq!(paths(&DiffRules::default().apply(&files(&[]), &agent).refused), [path]);
    }
}

#[test]
fn pytest_sections_of_a_project_file_stay() {
    for (text, counts) in [
        ("[project]\nname = 'x'\n", true),
        ("[project]\n[tool.pytest.ini_options]\naddopts = '-x'\n", false),
        ("[project]\n[tool]\npytest.ini_options.addopts = '-x'\n", false),
        ("[project]\n[tool.\"py\\u0074est\".ini_options]\naddopts = '-x'\n", false),
        ("[project]\ntool.pytest = {}\n", false),
    ] {
        let applied = DiffRules::default().apply(&files(PRISTINE), &with(&[("pyproject.toml", text)]));
        assert_eq!(applied.changed == ["pyproject.toml"], counts, "{text}");
        assert_eq!(paths(&applied.ignored) == ["pyproject.toml"], !counts, "{text}");
    }
}

#[test]
fn caps_hold() {
    let rules = DiffRules { max_files: 2, max_file_bytes: 10, max_bytes: 15, ..DiffRules::default() };
    let agent = collected(&[("a", "12345678901"), ("b", "1234567890"), ("c", "1234567890"), ("d", "12345"), ("e", "")]);
    let applied = rules.apply(&Files::new(), &agent);
    assert_eq!(applied.changed, ["b", "d"]);
    assert_eq!(paths(&applied.refused), ["a", "c", "e"]);
}

#[test]
fn what_was_refused_on_the_way_out_is_not_deleted() {
    let agent = Collected { files: vec![], refused: vec![refusal("src", "a symbolic link")] };
    let applied = DiffRules::default().apply(&files(PRISTINE), &agent);
    assert_eq!(applied.deleted, ["README", "pyproject.toml"]);
    assert!(applied.files.contains_key("src/a.py"));
    assert_eq!(paths(&applied.refused), ["src"]);
    let agent = Collected { files: vec![], refused: vec![refusal("", "too many entries")] };
    assert!(DiffRules::default().apply(&files(PRISTINE), &agent).deleted.is_empty());
}

proptest::proptest! {
    #[test]
    fn nothing_outside_the_allowed_paths_differs(
        changes in proptest::collection::btree_map("(src|tests|\\.\\.|a)(/[a-c.]{1,3}){0,3}(\\.py|\\.pyc)?", "[a-c]{0,3}", 0..12)
    ) {
        let rules = DiffRules { allow: vec!["src/**".into()], ..DiffRules::default() };
        let pristine = files(PRISTINE);
        let agent: Vec<(String, Vec<u8>)> = changes.into_iter().map(|(p, c)| (p, c.into_bytes())).collect();
        let applied = rules.apply(&pristine, &Collected { files: agent, refused: vec![] });
        for path in applied.files.keys().chain(pristine.keys()) {
            let same = applied.files.get(path) == pristine.get(path);
            proptest::prop_assert!(same || (path.starts_with("src/") && !path.contains("/../") && !path.ends_with(".pyc")));
        }
    }
}
