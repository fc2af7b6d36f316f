//! A fixture with a repository, the packages that it needs and a local backend, in a temporary folder. Environments can
//! be built there without the internet.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::index_server::Server;
use testwright_sandboxes::environment::{
    BuildEvent, BuildSettings, Environment, SharedEnvironments, prepare,
};
use testwright_sandboxes::local::{Isolation, Local, LocalSettings};
use testwright_sandboxes::recipe::Recipe;
use testwright_sandboxes::repository::{OpenOptions, Source, open};
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, Limits, Sandbox, SandboxError};

/// A build backend in the repository itself, so that editable installs need no package.
pub(crate) const BUILD_BACKEND: &str = r#"
import os, pathlib, zipfile
def _wheel(folder, version):
    name = f"thing-{version}-py3-none-any.whl"
    info = f"thing-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
        if os.path.exists("old"):
            z.write("thing/__init__.py")
            z.writestr("thing/built.py", "value = 'built'\n")
        else:
            z.writestr("thing.pth", os.getcwd() + "\n")
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")
    return name
def build_wheel(folder, config=None, metadata=None):
    pathlib.Path("generated.txt").write_text(os.environ.get("GENERATED", "yes"))
    pathlib.Path("tracked.txt").write_text("changed by the build")
    return _wheel(folder, os.environ.get("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_THING", "0"))
if not os.path.exists("old"):
    build_editable = build_wheel
"#;

const PYPROJECT: &str = "[project]\nname = \"thing\"\ndynamic = [\"version\"]\n\
                         [build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n\
                         # setuptools_scm\n";

/// A minimal pytest that suffices for trying a few tests: one passing test for each `def test_`, and errors for files
/// that do not compile. `smoke_test.rs` uses the real one.
const PYTEST: &str = r#"
import os, pathlib, re, sys
from types import SimpleNamespace as Object
def hookimpl(**_):
    return lambda function: function
def main(args, plugins):
    watcher = plugins[0]
    if "--strange" in args:
        print("error: unrecognized arguments: --strange")
        return 4
    files = [a for a in args if a.endswith(".py")]
    if pathlib.Path("crash").exists() and not (len(files) == 1 and files[0].endswith("_fine.py")):
        os.kill(os.getpid(), 11)
    items, bad = [], False
    for path in files:
        text = pathlib.Path(path).read_text()
        try:
            compile(text, path, "exec")
        except SyntaxError as error:
            bad = True
            watcher.pytest_collectreport(Object(failed=True, nodeid=path, longrepr="E   SyntaxError: %s" % error.msg))
            continue
        items += [Object(nodeid=path + "::" + name) for name in re.findall(r"def (test_\w+)", text)]
    if not items and not bad:
        return 5
    session = Object(shouldstop=False)
    watcher.pytest_collection_modifyitems(session, None, items)
    for item in items:
        for when in "setup", "call", "teardown":
            watcher.pytest_runtest_logreport(
                Object(nodeid=item.nodeid, when=when, failed=False, skipped=False, longrepr=None)
            )
    return 1 if bad else 0
"#;

/// User and password of the index.
pub(crate) const LOGIN: &str = "reader:hunter2-secret";

pub(crate) struct TestDir {
    pub folder: tempfile::TempDir,
    pub backend: Box<dyn Backend>,
    /// Index of the packages in [`TestDir::wheels`].
    pub index: Server,
    /// Maximum bytes of all environments.
    pub cache_size: u64,
    /// Store through which environments are shared.
    pub shared: Option<Arc<dyn SharedEnvironments>>,
}

impl TestDir {
    /// Returns `None` if this machine has no isolation.
    pub(crate) fn new() -> Option<TestDir> {
        TestDir::with_isolation(None)
    }

    /// Creates a fixture with the given isolation only.
    pub(crate) fn with_isolation(force: Option<Isolation>) -> Option<TestDir> {
        let folder = tempfile::tempdir().unwrap();
        let backend = Local::new(LocalSettings {
            cache: folder.path().join("local"),
            launcher: vec![env!("CARGO_BIN_EXE_testwright-jail").into()],
            force,
            ..LocalSettings::default()
        });
        match backend {
            Ok(backend) => TestDir::on(Box::new(backend), folder),
            Err(e) => {
                eprintln!("skipped: {e}");
                None
            }
        }
    }

    pub(crate) fn on(backend: Box<dyn Backend>, folder: tempfile::TempDir) -> Option<TestDir> {
        // If uv is not installed, all test runs share one copy.
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR"));
        testwright_sandboxes::uv::find(None, shared, true).unwrap();
        symlink(shared.join("uv-program"), folder.path().join("uv-program")).unwrap();
        let place = TestDir {
            index: Server::index(folder.path().join("wheels"), Some(LOGIN)),
            folder,
            backend,
            cache_size: 50 << 30,
            shared: None,
        };
        place.write("pyproject.toml", PYPROJECT);
        place.write("backend.py", BUILD_BACKEND);
        place.write("thing/__init__.py", "value = 1\n");
        place.write(
            "tests/test_a.py",
            "def test_a(): pass\ndef test_b(): pass\n",
        );
        place.write("tracked.txt", "as committed");
        place.wheel("pytest", "7.0", PYTEST);
        place.wheel("extra", "1.0", "");
        place.wheel("extra", "2.0", "");
        place.git(&["init", "-q"]);
        Some(place)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.work_folder().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn work_folder(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn wheels(&self) -> PathBuf {
        self.folder.path().join("wheels")
    }

    /// Creates a package of one module that can be run with `-m`.
    pub(crate) fn wheel(&self, name: &str, version: &str, code: &str) {
        let folder = self.folder.path().join(format!("{name}-{version}"));
        let info = folder.join(format!("{name}-{version}.dist-info"));
        std::fs::create_dir_all(&info).unwrap();
        std::fs::write(folder.join(format!("{name}.py")), code).unwrap();
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
        std::fs::write(info.join("METADATA"), metadata).unwrap();
        let wheel = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        std::fs::write(info.join("WHEEL"), wheel).unwrap();
        std::fs::write(info.join("RECORD"), "").unwrap();
        std::fs::create_dir_all(self.wheels()).unwrap();
        let file = self
            .wheels()
            .join(format!("{name}-{version}-py3-none-any.whl"));
        let output = std::process::Command::new(python())
            .args(["-m", "zipfile", "-c"])
            .args([file, folder.join(format!("{name}.py")), info])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let output = std::process::Command::new("git")
            .current_dir(self.work_folder())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Commits all changes and opens the repository.
    pub(crate) fn source(&self) -> Source {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        let cache = self.folder.path().join("cache");
        let repository = open(
            self.work_folder().to_str().unwrap(),
            None,
            &cache,
            &OpenOptions::default(),
        )
        .unwrap();
        repository.source().unwrap()
    }

    pub(crate) fn settings(&self) -> BuildSettings {
        BuildSettings {
            index_url: Some(format!(
                "http://{LOGIN}@127.0.0.1:{}/simple",
                self.index.port
            )),
            cache_size: self.cache_size,
            shared: self.shared.clone(),
            step_deadline: Duration::from_secs(120),
            ..BuildSettings::new(self.folder.path().join("cache"))
        }
    }

    pub(crate) async fn build(
        &self,
        source: &Source,
        recipe: &Recipe,
    ) -> Result<Environment, SandboxError> {
        self.build_with_steps(source, recipe, "a test").await.0
    }

    /// Builds an environment and returns it with the steps that were taken.
    pub(crate) async fn build_with_steps(
        &self,
        source: &Source,
        recipe: &Recipe,
        origin: &str,
    ) -> (Result<Environment, SandboxError>, Vec<String>) {
        let steps = Mutex::new(Vec::new());
        let progress = |event: BuildEvent| {
            if let BuildEvent::Started { step } = event {
                steps.lock().unwrap().push(step);
            }
        };
        let result = prepare(
            self.backend.as_ref(),
            source,
            recipe,
            origin,
            &self.settings(),
            &progress,
        )
        .await;
        (result, steps.into_inner().unwrap())
    }

    pub(crate) async fn sandbox(&self, environment: &Environment) -> Box<dyn Sandbox> {
        let spec = environment.tool_spec(Limits::default(), "test");
        self.backend.start(&spec).await.unwrap()
    }
}

pub(crate) async fn shell(sandbox: &dyn Sandbox, script: &str) -> String {
    let output = output(sandbox, &Command::shell(script), Duration::from_secs(60))
        .await
        .unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns the version of this machine's interpreter.
pub(crate) fn python_version() -> String {
    static VERSION: OnceLock<String> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let output = std::process::Command::new(python())
            .args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    });
    version.clone()
}

/// Returns the Python on the PATH. The shim of a version manager takes longer to find it than a script here takes.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let output = std::process::Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

pub(crate) fn recipe() -> Recipe {
    Recipe {
        python: Some(python_version()),
        // Listed as requirements, setuptools and wheel are not added automatically.
        requirements: vec![
            "pytest".into(),
            "extra<2".into(),
            "setuptools; python_version < '3'".into(),
            "wheel; python_version < '3'".into(),
        ],
        exclude_newer: Some("never".to_owned()),
        ..Recipe::default()
    }
}
