use super::*;

fn repaired(after: &str) -> (String, Vec<String>) {
    let repository = Repository::of_files(&[
        ("src/pkg/__init__.py", ""),
        (
            "src/pkg/a.py",
            "import numpy\n\n\nclass Foo:\n    pass\n\n\ndef given():\n    pass\n",
        ),
        (
            "src/pkg/b.py",
            "class FooBar:\n    pass\n\n\ndef array():\n    pass\n\n\ndef sleep():\n    pass\n",
        ),
        ("tests/test_a.py", "def test_a():\n    pass\n"),
    ]);
    repair(&repository, "", after)
}

#[test]
fn each_name_is_looked_up_alone() {
    let (text, done) = repaired("from pkg.b import Foo, FooBar\n\nFoo(FooBar)\n");
    assert_eq!(
        text,
        "from pkg.a import Foo\nfrom pkg.b import FooBar\n\nFoo(FooBar)\n"
    );
    assert_eq!(done, ["`from pkg.b import Foo` is `from pkg.a import Foo`"]);
    let (text, done) = repaired("from pkg.c import FooBar, Foo\n\nFoo(FooBar)\n");
    assert_eq!(
        text,
        "from pkg.b import FooBar\nfrom pkg.a import Foo\n\nFoo(FooBar)\n"
    );
    assert_eq!(done.len(), 2);
}

#[test]
fn unknown_module_is_a_guess() {
    let (text, _) = repaired("from package.core import given as g\n\ng()\n");
    assert_eq!(text, "from pkg.a import given as g\n\ng()\n");
    // The standard library, imports of the repository, and names it does not define.
    for statement in [
        "from time import sleep",
        "from numpy.core import array",
        "from pytest import Foo",
        "from package import gone",
        "from .helpers import Foo",
    ] {
        assert_eq!(
            repaired(statement),
            (statement.to_owned(), vec![]),
            "{statement}"
        );
    }
}
