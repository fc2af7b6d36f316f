#![allow(clippy::unwrap_used)]
use super::*;

fn used(test: &str) -> Vec<String> {
    let files = [
        ("src/pkg/__init__.py", "from .core import Thing, make\n"),
        (
            "src/pkg/core.py",
            "class Thing:\n    def own(self):\n        return 1\ndef make(): pass\n",
        ),
    ];
    let index = RepositoryIndex::new(files.map(|(p, t)| (p.to_owned(), t.to_owned())));
    let module = Module::parse(test);
    let definition = module.find("test_x").remove(0);
    let uses = references(&module, "tests/test_a.py", &definition.bytes, &index);
    let names = uses.into_iter().map(|reference| {
        let call = if reference.is_called { "()" } else { "" };
        format!("{}{call}", reference.found.qualified)
    });
    names.collect()
}

#[test]
fn calls_and_mentions_are_distinguished() {
    assert_eq!(
        used(
            "import pkg\nfrom pkg import core as c\ndef test_x():\n    t = pkg.Thing()\n    t.own()\n    f = c.make\n    assert pkg.Thing.gone\n"
        ),
        ["Thing()", "Thing.own()", "make", "Thing"]
    );
    assert_eq!(
        used("def test_x():\n    from pkg import make\n    make()\n"),
        ["make()"]
    );
    assert_eq!(
        used("import pkg\ndef test_x():\n    pkg.Thing().own().make()\n"),
        ["Thing.own()", "Thing()"]
    );
}

#[test]
fn lookalike_references_are_ignored() {
    for test in [
        "import pkg\ndef test_x():\n    'pkg.make()'\n    # pkg.make()\n    x = 'pkg.make()'\n",
        "from pkg import make\ndef make(): pass\ndef test_x():\n    make()\n",
        "from pkg import make\nmake = print\ndef test_x():\n    make()\n",
        "from pkg import make\ndef test_x(make):\n    make()\n",
        "from pkg import make\ndef test_x():\n    make = print\n    make()\n",
        "from other import make\ndef test_x():\n    make()\n    make.pkg.make()\n",
    ] {
        assert_eq!(used(test), Vec::<String>::new(), "{test}");
    }
    let other = "from pkg import make\ndef test_x():\n    x = 1\ndef test_y():\n    make()\n";
    assert_eq!(used(other), Vec::<String>::new());
}
