use std::collections::BTreeSet;

use super::*;
use crate::clover::extract::isolated_tests;
use crate::clover::rejections::Counts;

#[test]
fn targets_must_be_called_and_covered() {
    let texts = BTreeMap::from(
        [
            ("pkg/__init__.py", "from .core import Thing, make\n"),
            (
                "pkg/core.py",
                "class Thing:\n    def own(self):\n        return 1\n\ndef make():\n    return 2\n",
            ),
            ("tests/__init__.py", ""),
            ("tests/things.py", "def given():\n    return 3\n"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned())),
    );
    let layout = Layout::default();
    let index = index(&texts, &layout);
    let file = "import pkg\nfrom tests.things import given\n\nclass TestA:\n    def test_x(self):\n        t = pkg.Thing()\n        pkg.make\n        t.own()\n        pkg.make()\n        given()\n";
    let tests = isolated_tests("tests/test_a.py", file, &layout, &mut Counts::default());
    let names = |lines: &[u32]| -> Vec<String> {
        let covered = Lines::from([(
            "pkg/core.py".to_owned(),
            BTreeSet::from_iter(lines.iter().copied()),
        )]);
        let definitions = targets(&index, &tests[0], &covered);
        definitions
            .into_iter()
            .map(|definition| definition.qualified)
            .collect()
    };
    assert_eq!(names(&[3, 6]), ["Thing", "Thing.own", "make"]);
    assert_eq!(names(&[1, 2, 6]), ["make"]);
    assert!(calls(
        &index,
        "tests/test_a.py",
        file,
        "TestA::test_x",
        ("pkg/core.py", "make")
    ));
    let mention = file.replace("pkg.make()", "'pkg.make()'");
    assert!(!calls(
        &index,
        "tests/test_a.py",
        &mention,
        "TestA::test_x",
        ("pkg/core.py", "make")
    ));
}
