#![allow(clippy::unwrap_used)]
use super::*;

const ANSWER: &str = "9 matches in 4 files\n\ntests/test_a.py\n3: from shop import low\nin TestLow.test_one\n8:         low(1)\n\
                      9:         x = low(2)\n  … 2 more in this file\n\ntests/test_b.py\n2: def test_low():\n\
                      3:     low(1, floor=2)\n\nNot shown:\n  tests/test_c.py: 1 match\n  … and 1 more file\n\n\
                      5 of 9 matches shown. Narrow it with `path`, `glob` or a stricter pattern.\n";

fn target(homes: &[(String, String)]) -> Target<'_> {
    Target {
        homes,
        names: homes.iter().map(|(name, _)| name.clone()).collect(),
        keywords: &[],
    }
}

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
    assert!(hits.is_cut && hits.mentions("tests/test_c.py") && !hits.mentions("tests/test_d.py"));
    let homes = [("low".to_owned(), "shop.py".to_owned())];
    assert_eq!(
        hits.points(&target(&homes)),
        [
            ("tests/test_a.py".to_owned(), 11),
            ("tests/test_b.py".to_owned(), 3),
            ("tests/test_c.py".to_owned(), 1)
        ]
    );
}

#[test]
fn related_tests_are_those_with_the_same_call() {
    let answer = "4 matches in 1 file\n\ntests/test_a.py\nin test_low\n3:     low(1)\n4:     low(3)\nin TestFloor.test_one\n\
                  8:         low(1, floor=2)\nin make\n20:     low(1, floor=2)\n";
    let hits = Hits::read(answer);
    let homes = [("low".to_owned(), "shop.py".to_owned())];
    let plain = target(&homes);
    let hit = hits.related("tests/test_a.py", &plain).unwrap();
    assert_eq!((hit.test(), hit.line), (Some(("", "test_low")), 4));
    let keywords = ["floor".to_owned()];
    let with_floor = Target {
        keywords: &keywords,
        names: vec!["other".to_owned(), "low".to_owned()],
        ..plain
    };
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
