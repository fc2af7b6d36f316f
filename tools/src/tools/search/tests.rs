#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use crate::testing::Fixture;

fn fixture() -> Fixture {
    Fixture::new(&[
        (".gitignore", b"build/\n"),
        ("build/x.py", b"needle\n"),
        (
            "src/a.py",
            b"import x\n\nclass A:\n    def f(self):\n        return needle(1)\n\nneedle = 2\n",
        ),
        ("src/b.txt", b"a Needle(\n"),
        ("tests/test_a.py", b"def test_f():\n    needle\n"),
        ("image.png", b"needle\0"),
    ])
}

#[test]
fn matches_are_grouped_by_file() {
    let mut f = fixture();
    assert_eq!(
        f.text("search", json!({"pattern": "needle"})),
        "3 matches in 2 files\n\nsrc/a.py\nin A.f\n5:         return needle(1)\n7: needle = 2\n\ntests/test_a.py\nin test_f\n2:     needle\n"
    );
    assert!(
        f.text("search", json!({"pattern": "needle", "ignore_case": true}))
            .starts_with("4 matches in 3 files")
    );
    assert!(
        f.text("search", json!({"pattern": "edle(", "literal": true}))
            .starts_with("2 matches")
    );
    assert!(
        f.text("search", json!({"pattern": "needle", "glob": "test_*.py"}))
            .starts_with("1 match in 1 file\n")
    );
    assert!(
        f.text("search", json!({"pattern": "needle", "glob": "src/**"}))
            .starts_with("2 matches in 1 file\n")
    );
    assert!(
        f.text("search", json!({"pattern": "needle", "path": "tests"}))
            .starts_with("1 match")
    );
    assert!(
        f.text("search", json!({"pattern": "needle", "path": "src/a.py"}))
            .starts_with("2 matches")
    );
    f.shows(
        "search",
        json!({"pattern": "NEEDLE"}),
        "`(?i)` in front of it ignores case",
    );
    let data = f
        .answer("search", json!({"pattern": "needle"}))
        .unwrap()
        .data;
    assert_eq!(data["shown"][0]["function"], "A.f");
}

#[test]
fn matches_are_grouped_by_function() {
    let file = b"x = 1\n\ndef x_():\n    pass\n\nclass A:\n    def f(self):\n        x = 2\n        return x\n\n    def x(self):\n        def g():\n            x\n        x\n\nasync def x_a(): x\n";
    let mut f = Fixture::new(&[("a.py", file)]);
    let text = f.text("search", json!({"pattern": r"\bx"}));
    insta::assert_snapshot!(text, @r"
    8 matches in 1 file

    a.py
    1: x = 1
    3: def x_():
    in A.f
    8:         x = 2
    9:         return x
    11:     def x(self):
    in A.x.g
    13:             x
    in A.x
    14:         x
    16: async def x_a(): x
    ");
}

#[test]
fn line_ends_are_not_part_of_lines() {
    let mut f = Fixture::new(&[
        ("a.py", b"import a\r\nneedle = 1\r\n"),
        ("b.py", b"needle = 1\n"),
        ("c.py", b"needle = 1\rx = 2\r"),
    ]);
    let text = f.text("search", json!({"pattern": r"^needle = \d$"}));
    assert!(text.starts_with("3 matches in 3 files\n"), "{text}");
    assert!(text.contains("a.py\n2: needle = 1\n"), "{text}");
}

#[test]
fn long_results_are_cut() {
    let many = "needle\n".repeat(500);
    let files: Vec<(String, &[u8])> = (0..70)
        .map(|n| (format!("d/f{n:02}.txt"), many.as_bytes()))
        .collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    let mut f = Fixture::new(&files);
    let text = f.text("search", json!({"pattern": "needle"}));
    assert!(text.starts_with("35000 matches in 70 files\n"), "{text}");
    assert!(text.contains("  … 497 more in this file\n"));
    assert!(
        text.contains("  d/f20.txt: 500 matches\n") && text.contains("  … and 30 files more\n"),
        "{text}"
    );
    assert!(text.ends_with(
        "60 of 35000 matches shown. Narrow it with `path`, `glob` or a stricter pattern.\n"
    ));
    assert_eq!(text, f.text("search", json!({"pattern": "needle"})));
    assert!(text.len() < 3000, "{}", text.len());
    let one = f.text("search", json!({"pattern": "needle", "path": "d/f01.txt"}));
    assert!(
        one.contains("60: needle\n  … 440 more in this file\n"),
        "{one}"
    );
}

#[test]
fn single_remaining_line_is_shown() {
    let needles = "needle\n".repeat(61);
    let mut f = Fixture::new(&[("a.txt", needles.as_bytes())]);
    let text = f.text("search", json!({"pattern": "needle"}));
    assert!(text.ends_with("\n61: needle\n"), "{text}");
    let needles = "needle\n".repeat(201);
    let mut f = Fixture::new(&[("a.txt", needles.as_bytes())]);
    let text = f.text("search", json!({"pattern": "needle", "path": "a.txt"}));
    assert!(text.ends_with("\n201: needle\n"), "{text}");
}

#[test]
fn invalid_patterns_are_refused_with_hint() {
    let mut f = fixture();
    for pattern in ["foo(", "a\\nb", "(?=x)", ""] {
        let text = f.refusal("search", json!({"pattern": pattern}));
        assert!(pattern.is_empty() || text.contains("`literal`"), "{text}");
    }
    f.refuses("search", json!({"pattern": "foo("}), "unclosed group");
    f.refuses("search", json!({"pattern": "x", "path": "nope"}), "no file");
    f.refuses("search", json!({"pattern": "x", "path": ".."}), "outside");
}

#[test]
fn missing_pattern_lists_files() {
    let mut f = Fixture::new(&[
        ("src/a.py", b"needle = 1\n"),
        ("tests/test_a.py", b"needle\n"),
        ("tests/data.txt", b"needle\n"),
    ]);
    assert_eq!(
        f.text("search", json!({"glob": "test_*.py"})),
        "1 file\ntests/test_a.py\n"
    );
    assert_eq!(
        f.text("search", json!({"path": "tests"})),
        "2 files\ntests/data.txt\ntests/test_a.py\n"
    );
    assert_eq!(
        f.text("search", json!({"glob": "data"})),
        "1 file\ntests/data.txt\n"
    );
    f.refuses("search", json!({}), "`pattern`");
}
