//! A small repository that is ready to run cases, on a given backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use testwright_agent::backends::JAIL;
use testwright_evals::cases::{Case, CaseEnvironment};
use testwright_sandboxes::docker::{Docker, DockerSettings};
use testwright_sandboxes::environment::{BuildSettings, prepare};
use testwright_sandboxes::local::{Local, LocalSettings};
use testwright_sandboxes::recipe::{Overrides, available_pythons, find};
use testwright_sandboxes::repository::{OpenOptions, open};
use testwright_sandboxes::{Backend, Limits};

const PROGRAM: &str = env!("CARGO_BIN_EXE_testwright");

/// Files of the repository: two modules, and two test files for them.
pub(crate) const FILES: [(&str, &str); 7] = [
    (
        "pyproject.toml",
        "[build-system]\nrequires = [\"setuptools>=61\"]\nbuild-backend = \"setuptools.build_meta\"\n\n\
         [project]\nname = \"shop\"\nversion = \"1.0\"\nrequires-python = \">=3.8\"\n\n\
         [project.optional-dependencies]\ntest = [\"pytest\"]\n\n\
         [tool.setuptools]\npackages = [\"shop\"]\n\n[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\n",
    ),
    ("shop/__init__.py", "from .price import total\n"),
    (
        "shop/price.py",
        "RATES = {\n    \"food\": 7,\n    \"other\": 19,\n}\n\n\ndef rate(kind):\n    if kind in RATES:\n        \
         return RATES[kind]\n    raise KeyError(\n        kind\n    )\n\n\ndef total(items):\n    found = 0\n    \
         for price, kind in items:\n        found += price * (100 + rate(kind))\n    return found / 100\n",
    ),
    (
        "shop/stock.py",
        "class Stock:\n    def __init__(self):\n        self.items = {}\n\n    def add(self, name, number=1):\n        \
         self.items[name] = self.items.get(name, 0) + number\n\n    def take(self, name):\n        \
         if not self.items.get(name):\n            raise LookupError(name)\n        self.items[name] -= 1\n        \
         return name\n\n    def __len__(self):\n        return sum(self.items.values())\n",
    ),
    (
        "tests/conftest.py",
        "import pytest\n\n\n@pytest.fixture\ndef stock():\n    from shop.stock import Stock\n\n    return Stock()\n",
    ),
    (
        "tests/test_price.py",
        "import pytest\n\nfrom shop import total\nfrom shop.price import rate\n\n\n@pytest.mark.parametrize(\"kind, percent\", \
         [(\"food\", 7), (\"other\", 19)])\ndef test_rate(kind, percent):\n    assert rate(kind) == percent\n\n\n\
         def test_unknown_kind():\n    with pytest.raises(KeyError):\n        rate(\"none\")\n\n\n\
         def test_total():\n    assert total([(100, \"food\")]) == 107\n",
    ),
    (
        "tests/test_stock.py",
        "import pytest\n\n\nclass TestStock:\n    def test_empty(self, stock):\n        assert len(stock) == 0\n\n    \
         def test_add(self, stock):\n        stock.add(\"tea\", 2)\n        assert len(stock) == 2\n\n    \
         def test_take(self, stock):\n        stock.add(\"tea\")\n        assert stock.take(\"tea\") == \"tea\"\n\n    \
         def test_take_none(self, stock):\n        with pytest.raises(LookupError):\n            stock.take(\"tea\")\n",
    ),
];

pub(crate) fn write(folder: &Path) {
    for (path, content) in FILES {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

pub(crate) async fn local() -> CaseEnvironment {
    prepare_repository(local_backend(), &[]).await
}

/// Prepares the repository locally, with other content in some of the files.
pub(crate) async fn local_with(files: &[(&str, String)]) -> CaseEnvironment {
    prepare_repository(local_backend(), files).await
}

fn local_backend() -> Arc<dyn Backend> {
    let backend = Local::new(LocalSettings {
        cache: cache().join("local"),
        launcher: vec![PROGRAM.into(), JAIL.into()],
        no_isolation: false,
        force: None,
        in_container: true,
    });
    Arc::new(backend.unwrap())
}

pub(crate) async fn docker() -> CaseEnvironment {
    let docker = Docker::connect(DockerSettings::default()).await.unwrap();
    prepare_repository(Arc::new(docker), &[]).await
}

async fn prepare_repository(
    backend: Arc<dyn Backend>,
    files: &[(&str, String)],
) -> CaseEnvironment {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("shop");
    write(&root);
    for (path, content) in files {
        std::fs::write(root.join(path), content).unwrap();
    }
    let location = root.to_str().unwrap();
    let opened = open(location, None, &cache(), &OpenOptions::default());
    let source = opened.unwrap().source().unwrap();
    let overrides = Overrides {
        pythons: available_pythons(backend.as_ref()).await.unwrap(),
        ..Overrides::default()
    };
    let (recipe, origin) = find(&source, &overrides).unwrap();
    let build = BuildSettings::new(cache());
    let environment = prepare(backend.as_ref(), &source, &recipe, &origin, &build, &|_| {});
    let environment = environment.await.unwrap();
    CaseEnvironment {
        backend,
        source,
        environment,
        build,
        // A low limit is enough to detect a fork bomb, and leaves the CPUs to other tests.
        limits: Limits {
            processes: 64,
            ..Limits::default()
        },
        toolbox: PROGRAM.into(),
        purpose: "cases".to_owned(),
    }
}

pub(crate) fn case(id: &str, source: &str) -> Case {
    Case {
        id: id.to_owned(),
        path: "tests/test_case.py".to_owned(),
        source: source.to_owned(),
        tests: Vec::new(),
        timeout: Duration::from_secs(40),
    }
}

/// Returns a case for an unchanged file of the repository.
pub(crate) fn file(path: &str) -> Case {
    let (_, source) = FILES.iter().find(|(name, _)| *name == path).unwrap();
    Case {
        path: path.to_owned(),
        ..case(path, source)
    }
}
