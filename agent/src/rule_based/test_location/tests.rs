#![allow(clippy::unwrap_used)]
use std::time::{Duration, Instant};

use testwright_models::{Message, ToolCall, ToolResult};
use testwright_tools::registry;
use testwright_tools::tool::Context;
use testwright_tools::workspace::Workspace;

use super::*;
use crate::rule_based::candidates::Expects;
use crate::rule_based::probe::Subject;
use crate::rule_based::test_body::TestBody;
use crate::rule_based::test_name::Behaviour;

const ANSWER: &str = "9 matches in 4 files\n\ntests/test_a.py\n3: from shop import low\nin TestLow.test_one\n8:         low(1)\n\
                      9:         x = low(2)\n  … 2 more in this file\n\ntests/test_b.py\n2: def test_low():\n\
                      3:     low(1, floor=2)\n\nNot shown:\n  tests/test_c.py: 1 match\n  … and 1 more file\n\n\
                      5 of 9 matches shown. Narrow it with `path`, `glob` or a stricter pattern.\n";

#[test]
fn search_matches_are_counted_by_file() {
    let hits = Hits::read(ANSWER);
    let scopes: Vec<&str> = hits.hits.iter().map(|h| h.scope.as_str()).collect();
    assert_eq!(
        scopes,
        [
            "",
            "TestLow.test_one",
            "TestLow.test_one",
            "test_low",
            "test_low"
        ]
    );
    let complete = ["a", "b", "d"].map(|n| hits.is_complete_for(&format!("tests/test_{n}.py")));
    assert_eq!(complete, [false, true, false]);
    let percent = |share: f64| (share * 100.0).round();
    let shares = hits.shares().into_iter();
    let shares: Vec<(&str, f64)> = shares.map(|(path, share)| (path, percent(share))).collect();
    assert_eq!(
        shares,
        [
            ("tests/test_a.py", 31.0),
            ("tests/test_b.py", 20.0),
            ("tests/test_c.py", 14.0)
        ]
    );
}

#[test]
fn related_tests_are_those_with_the_same_call() {
    let answer = "4 matches in 1 file\n\ntests/test_a.py\nin test_low\n3:     low(1)\n4:     low(3)\nin TestFloor.test_one\n\
                  8:         low(1, floor=2)\nin make\n20:     low(1, floor=2)\n";
    let hits = Hits::read(answer);
    let hit = hits.related("tests/test_a.py", &[("low", 1.0)]).unwrap();
    assert_eq!((hit.test(), hit.line), (Some(("", "test_low")), 4));
    let with_floor = [("other", 1.0), ("low", 0.8), ("floor", 0.8)];
    let hit = hits.related("tests/test_a.py", &with_floor).unwrap();
    assert_eq!(hit.test(), Some(("TestFloor", "test_one")));
    assert_eq!(hits.related("tests/test_b.py", &with_floor), None);
}

#[test]
fn file_is_read_without_line_numbers() {
    let answer = "tests/test_a.py, lines 9-11 of 12\n 9  class TestA:\n10      def test_b(self):\n11\n(1 more; continue with first=12)\n";
    assert_eq!(file_text(answer), "class TestA:\n    def test_b(self):\n\n");
}

#[test]
fn class_is_used_without_tests_outside_classes() {
    let class = "class TestA:\n    def test_a(self): pass\n\nclass Other:\n    pass\n";
    assert_eq!(only_class(class), Some("TestA".to_owned()));
    assert_eq!(only_class(&format!("{class}\ndef test_b(): pass\n")), None);
}

#[test]
fn test_support_is_not_a_test_file() {
    assert!(is_test_file("pkg/tests/test_a.py"));
    assert!(!is_test_file("tests/roots/test-ext/test_x.py"));
    assert!(!is_test_file("pkg/testing.py"));
}

#[test]
fn nearer_test_file_is_preferred() {
    assert!(
        shared_folders("pkg/shop/tests/test_a.py", "pkg/shop/a.py")
            > shared_folders("pkg/other/tests/test_a.py", "pkg/shop/a.py")
    );
}

/// A made-up repository, and the tools that search it.
struct Repository {
    _folder: tempfile::TempDir,
    workspace: Workspace,
}

impl Repository {
    fn new(files: &[(&str, String)]) -> Repository {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        // An archive without files: nothing here compares with the base commit.
        let archive = folder.path().join("base.tar");
        std::fs::write(&archive, [0; 1024]).unwrap();
        let scratch = folder.path().join("scratch");
        let config = json!({"workspace": root, "base_archive": archive, "scratch": scratch, "python": "python3"});
        let workspace = Workspace::open(serde_json::from_value(config).unwrap()).unwrap();
        Repository {
            _folder: folder,
            workspace,
        }
    }

    fn answer(&mut self, call: &ToolCall) -> String {
        let tool = registry::find(&call.name).unwrap();
        let mut context = Context {
            workspace: &mut self.workspace,
            deadline: Instant::now() + Duration::from_secs(60),
        };
        let answer = tool.call(&mut context, call.arguments.value());
        answer.unwrap().text
    }

    /// Returns the file and the class for a test.
    fn place(&mut self, candidate: &Candidate) -> (String, Option<String>) {
        let mut messages = Vec::new();
        loop {
            match locate(&mut PolicyRunner::new(&messages), candidate) {
                Ok(location) => {
                    let location = location.unwrap();
                    return (location.path, location.class);
                }
                Err(Turn::Call(call, _)) => {
                    let content = self.answer(&call);
                    let id = call.id.clone();
                    messages.push(Message::Assistant {
                        content: String::new(),
                        calls: vec![*call],
                        extra: Default::default(),
                    });
                    messages.push(Message::Tool(ToolResult { id, content }));
                }
                Err(turn) => panic!("{turn:?}"),
            }
        }
    }
}

/// Returns a test of these lines. `homes` are names of their last line with the files that define them.
fn candidate(lines: &[&str], homes: &[(&str, &str)], keywords: &[&str]) -> Candidate {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let homes = homes.iter();
    Candidate {
        trust: 0,
        body: TestBody {
            imports: vec!["import shop".to_owned()],
            lines: owned(lines),
            ..TestBody::default()
        },
        function: None,
        subject: Subject {
            names: Vec::new(),
            keywords: owned(keywords),
        },
        behaviour: Behaviour::AsWritten,
        expects: Expects::Assertion,
        sentence: String::new(),
        homes: homes
            .map(|(name, file)| ((*name).to_owned(), (*file).to_owned()))
            .collect(),
    }
}

/// Returns a test file with one test for each line.
fn tests_of(lines: &[(&str, usize)]) -> String {
    let lines = lines
        .iter()
        .flat_map(|(line, count)| std::iter::repeat_n(line, *count));
    let tests = lines
        .enumerate()
        .map(|(at, line)| format!("\n\ndef test_{at}():\n    {line}\n"));
    format!("import shop\n{}", tests.collect::<String>())
}

#[test]
fn file_tests_what_earlier_lines_call() {
    let mut repository = Repository::new(&[
        ("tests/test_app.py", tests_of(&[("shop.main()", 8)])),
        (
            "tests/test_label.py",
            tests_of(&[("shop.pack(1).label", 4)]),
        ),
        ("tests/test_pack.py", tests_of(&[("shop.pack(2)", 2)])),
    ]);
    // Nothing that the last line uses has a known type.
    let lines = ["boxes = shop.pack(3)", "assert boxes[0].size == 3"];
    let (path, _) = repository.place(&candidate(&lines, &[], &[]));
    assert_eq!(path, "tests/test_pack.py");
}

#[test]
fn rare_name_outweighs_common_name() {
    let mut repository = Repository::new(&[
        ("tests/test_boxes.py", tests_of(&[("shop.pack(1)", 6)])),
        (
            "tests/test_shipment.py",
            tests_of(&[("shop.pack(1)", 1), ("box.weight_of(2)", 3)]),
        ),
    ]);
    let homes = [("pack", "shop/__init__.py")];
    let lines = ["assert shop.pack(2).weight_of(3) == 1"];
    let (path, _) = repository.place(&candidate(&lines, &homes, &[]));
    assert_eq!(path, "tests/test_shipment.py");
}

#[test]
fn function_may_be_part_of_package_name() {
    let mut repository = Repository::new(&[
        ("tests/test_pack.py", tests_of(&[("packing.pack(1)", 1)])),
        ("tests/test_zip.py", tests_of(&[("packing.pack(1)", 9)])),
    ]);
    let homes = [("pack", "packing/__init__.py")];
    let lines = ["assert packing.pack(2) == 1"];
    let (path, _) = repository.place(&candidate(&lines, &homes, &[]));
    assert_eq!(path, "tests/test_pack.py");
}

#[test]
fn called_function_outweighs_raising_one() {
    let mut repository = Repository::new(&[
        ("tests/test_app.py", tests_of(&[("subprocess.run(1)", 1)])),
        (
            "tests/test_label.py",
            tests_of(&[("shop.pack(1).label", 9)]),
        ),
        ("tests/test_pack.py", tests_of(&[("shop.pack(1)", 1)])),
    ]);
    let homes = [("run", "shop/engine.py"), ("pack", "shop/__init__.py")];
    let (path, _) = repository.place(&candidate(&["shop.pack(2)"], &homes, &[]));
    assert_eq!(path, "tests/test_pack.py");
}

#[test]
fn class_uses_the_same_keyword() {
    let class = |name: &str, line: &str, count: usize| {
        let tests = (0..count).map(|n| format!("    def test_{n}(self):\n        {line}\n\n"));
        format!("class {name}:\n{}\n", tests.collect::<String>())
    };
    let classes = [
        class("TestPack", "shop.pack(1)", 8),
        class("TestFragile", "shop.pack(1, fragile=True)", 2),
        class("TestOther", "shop.pack(2)", 1),
    ];
    let text = format!("import shop\n\n\n{}", classes.concat());
    let mut repository = Repository::new(&[("tests/test_pack.py", text)]);
    let homes = [("pack", "shop/__init__.py")];
    let lines = ["assert shop.pack(2, fragile=True) == 1"];
    let (_, class) = repository.place(&candidate(&lines, &homes, &["fragile"]));
    assert_eq!(class.as_deref(), Some("TestFragile"));
}
