#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn names_resolve_to_definitions() {
    let files = [
        (
            "src/pkg/__init__.py",
            "from .core import Thing as Thing\nfrom . import sub\nfrom .more import *\n",
        ),
        (
            "src/pkg/core.py",
            "from .base import Base\nclass Thing(Base, metaclass=M):\n    x = 1\n    def own(self):\n        return 1\n",
        ),
        (
            "src/pkg/base.py",
            "class Base:\n    def inherited(self):\n        '''Docs'''\n        return 2\n",
        ),
        ("src/pkg/more.py", "def extra(): pass\n"),
        ("src/pkg/sub/__init__.py", "import pkg.core as c\n"),
        ("tools/script.py", "def run(): pass\n"),
    ];
    let index = RepositoryIndex::new(files.map(|(p, t)| (p.to_owned(), t.to_owned())));
    let locate = |dotted: &str| {
        let definition = index.resolve(dotted)?;
        Some(format!(
            "{}:{}:{}",
            definition.path, definition.qualified, definition.first
        ))
    };
    for (dotted, at) in [
        ("pkg.Thing", "src/pkg/core.py:Thing:2"),
        ("pkg.core.Thing.own", "src/pkg/core.py:Thing.own:4"),
        ("pkg.Thing.inherited", "src/pkg/base.py:Base.inherited:2"),
        ("pkg.sub.c.Thing", "src/pkg/core.py:Thing:2"),
        ("pkg.extra", "src/pkg/more.py:extra:1"),
        ("tools.script.run", "tools/script.py:run:1"),
    ] {
        assert_eq!(locate(dotted).as_deref(), Some(at), "{dotted}");
    }
    for none in [
        "pkg.core",
        "pkg.Thing.gone",
        "os.path.join",
        "pkg.core.Thing.own.x",
    ] {
        assert_eq!(locate(none), None, "{none}");
    }
    assert_eq!(index.resolve("pkg.Thing").unwrap().bodies, [(5, 5)]);
    assert_eq!(
        index.resolve("pkg.core.Base.inherited").unwrap().bodies,
        [(3, 4)]
    );
}
