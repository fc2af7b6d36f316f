//! A small Python project in a temporary folder, and an interpreter with pytest to run its tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use testwright_tools::config::{Config, Runner};
use testwright_tools::outcomes::report::{Outcome, TestReport, TestResult};
use testwright_tools::runners::{self, Options};
use testwright_tools::test_run::{Request, TestRunResult};
use testwright_tools::workspace::Workspace;

/// Returns the interpreter of a virtual environment with pytest, created once for all test runs.
/// `TESTWRIGHT_TEST_PYTHON` names another interpreter, to try other versions of Python and pytest.
pub(crate) fn python() -> PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON
        .get_or_init(|| match std::env::var_os("TESTWRIGHT_TEST_PYTHON") {
            Some(path) => path.into(),
            None => make_environment(),
        })
        .clone()
}

fn make_environment() -> PathBuf {
    let folder = shared_folder("python-pytest-8.3.5", |aside| {
        run(Command::new("python3").args(["-m", "venv"]).arg(aside));
        let python = aside.join("bin/python");
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "pytest==8.3.5"]));
    });
    folder.join("bin/python")
}

/// Returns a folder that is created once for all test runs. It is renamed into place, since other test processes may
/// create it at the same time.
pub(crate) fn shared_folder(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let ready_folder = tmp.join(name);
    if !ready_folder.exists() {
        let aside = tmp.join(format!("{name}-{}", std::process::id()));
        make(&aside);
        if std::fs::rename(&aside, &ready_folder).is_err() {
            std::fs::remove_dir_all(&aside).unwrap();
        }
    }
    ready_folder
}

/// Returns `uv`: the installed program, or one that is installed once for all test runs.
pub(crate) fn uv() -> Command {
    let is_installed = || Command::new("uv").arg("--version").output().is_ok();
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let program = FOUND.get_or_init(|| match is_installed() {
        true => "uv".into(),
        false => {
            let folder = shared_folder("uv", |aside| {
                run(Command::new("python3").args(["-m", "venv"]).arg(aside));
                let pip = ["-m", "pip", "install", "--quiet", "uv"];
                run(Command::new(aside.join("bin/python")).args(pip));
            });
            folder.join("bin/uv")
        }
    });
    Command::new(program)
}

/// Returns an interpreter of this version, if the machine has one: pyenv's, or one that uv finds.
pub(crate) fn interpreter(version: &str) -> Option<PathBuf> {
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv"));
    let versions = pyenv.or_else(home).unwrap_or_default().join("versions");
    let prefix = format!("{version}.");
    let of_pyenv = std::fs::read_dir(versions).into_iter().flatten();
    let mut of_pyenv = of_pyenv
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path().join("bin/python"));
    if let Some(path) = of_pyenv.find(|path| path.exists()) {
        return Some(path);
    }
    let find = [
        "python",
        "find",
        "--no-python-downloads",
        "--no-project",
        version,
    ];
    let output = uv().args(find).output().unwrap();
    if !output.status.success() {
        eprintln!("skipped: there is no Python {version} here");
        return None;
    }
    let path = String::from_utf8(output.stdout).unwrap();
    Some(PathBuf::from(path.trim()))
}

/// Returns the interpreter of an environment with these packages, for this version of Python (default: any).
pub(crate) fn environment(name: &str, base: Option<&Path>, packages: &[&str]) -> PathBuf {
    let folder = shared_folder(&format!("python-{name}"), |aside| {
        let base = base.unwrap_or(Path::new("python3"));
        run(uv()
            .args(["venv", "--quiet", "--python"])
            .args([base, aside]));
        let mut install = uv();
        install.args(["pip", "install", "--quiet", "--python"]);
        run(install.arg(aside.join("bin/python")).args(packages));
    });
    folder.join("bin/python")
}

/// Returns a folder with coverage.py for this interpreter, created once.
pub(crate) fn coverage_for(python: &Path) -> PathBuf {
    let path = python.display().to_string().replace('/', "-");
    let mark = &path[path.len().saturating_sub(80)..];
    shared_folder(&format!("coverage-{mark}"), |aside| {
        let only = ["--only-binary", ":all:", "coverage", "--python"];
        run(uv()
            .args(["pip", "install", "--quiet"])
            .args(only)
            .arg(python)
            .arg("--target")
            .arg(aside));
    })
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) struct Project {
    _folder: tempfile::TempDir,
    pub config: Config,
}

impl Project {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("testbed");
        std::fs::create_dir(&root).unwrap();
        for (path, content) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let base_archive = folder.path().join("base.tar");
        let mut archive = tar::Builder::new(std::fs::File::create(&base_archive).unwrap());
        for (path, _) in files {
            archive
                .append_path_with_name(root.join(path), path)
                .unwrap();
        }
        archive.finish().unwrap();
        let scratch = folder.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let config = Config {
            workspace: root,
            base_archive,
            scratch,
            private: None,
            python: python(),
            env: [(
                "PYTHONPATH".to_owned(),
                folder.path().join("testbed").display().to_string(),
            )]
            .into(),
            runner: Runner::default(),
            test_seconds: 120,
            processors: None,
            wanted: None,
        };
        Project {
            _folder: folder,
            config,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.config.workspace
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::open(self.config.clone()).unwrap()
    }

    /// Runs tests with a deadline that no working run reaches.
    pub(crate) fn run(&self, ids: &[&str]) -> TestReport {
        self.run_with(ids, |_| ())
    }

    pub(crate) fn run_with(&self, ids: &[&str], change: impl FnOnce(&mut Options)) -> TestReport {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let mut options = Options::with_deadline(Instant::now() + Duration::from_secs(100));
        change(&mut options);
        runners::run(self.workspace().checkout(), &ids, &options).unwrap()
    }
}

pub(crate) fn test<'a>(report: &'a TestReport, id: &str) -> &'a TestResult {
    let result = report.tests.iter().find(|t| t.id == id);
    result.unwrap_or_else(|| panic!("no {id} in {report:#?}"))
}

impl Project {
    /// Returns a grader's request, without coverage.
    pub(crate) fn request(&self, ids: &[&str]) -> Request {
        Request {
            config: self.config.clone(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            seconds: 100,
            options: Options::with_deadline(Instant::now()),
            coverage: None,
        }
    }
}

/// Runs `toolbox test` with this on stdin.
pub(crate) fn toolbox_test(request: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolbox"))
        .arg("test")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(request.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Returns the answer of `toolbox test`.
pub(crate) fn answer(request: &Request) -> TestRunResult {
    let output = toolbox_test(&serde_json::to_string(request).unwrap());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(0), ""));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the outcome of each test, by the part of its id after the path.
pub(crate) fn outcomes(report: &TestReport) -> Vec<(&str, Outcome)> {
    let after = |id: &'_ str| id.find("::").map_or(0, |at| at + 2);
    let tests = report.tests.iter();
    tests.map(|t| (&t.id[after(&t.id)..], t.outcome)).collect()
}
