#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

#[test]
fn definitions_and_exports_are_suggested() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("src/pkg/__init__.py", "from .core import Thing\n"),
        (
            "src/pkg/core.py",
            "import numpy as np\nclass Thing: pass\ndef alone(): pass\n",
        ),
        ("src/pkg/sub/__init__.py", ""),
        (
            "src/pkg/sub/deep.py",
            "from ..core import Thing\nLIMIT = 3\n",
        ),
        (
            "tests/test_a.py",
            "import pytest\nimport numpy as np\nfrom pkg import Thing\n",
        ),
        ("tests/test_b.py", "import pytest\n"),
        ("__init__.py", "from .setup import tools\nVERSION = 1\n"),
    ];
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let paths: Vec<String> = files.iter().map(|(p, _)| (*p).to_owned()).collect();
    let best = |name: &str| suggest(folder.path(), &paths, name).into_iter().next();
    assert_eq!(best("Thing").unwrap(), "from pkg import Thing");
    assert_eq!(best("alone").unwrap(), "from pkg.core import alone");
    assert_eq!(best("LIMIT").unwrap(), "from pkg.sub.deep import LIMIT");
    assert_eq!(best("np").unwrap(), "import numpy as np");
    assert_eq!(best("pytest").unwrap(), "import pytest");
    assert_eq!(best("tools").unwrap(), "from setup import tools");
    assert_eq!(best("nothing"), None);
    assert_eq!(best("VERSION"), None);
    let module_name = |path| dotted_name(path, &|part| is_package(folder.path(), part));
    assert_eq!(module_name("src/pkg/sub/deep.py"), "pkg.sub.deep");
    assert_eq!(module_name("tests/test_a.py"), "test_a");
}
