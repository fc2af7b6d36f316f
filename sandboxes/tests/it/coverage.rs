//! Tests of coverage.py from the package index, in sandboxes of every kind.

use std::path::Path;
use std::time::Duration;

use testwright_sandboxes::coverage::{Coverage, package};
use testwright_sandboxes::environment::BuildSettings;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, SandboxSource, Spec};

/// Fetches the package. Returns `None` if no index can be reached, or uv is missing.
async fn fetched(python: &str, cache: &Path) -> Option<Coverage> {
    match package(python, &BuildSettings::new(cache)).await {
        Ok(coverage) => Some(coverage),
        Err(error) if error.kind == ErrorKind::Unavailable => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Measures two lines of which one runs, as the tools' user, and tries to write to the package's files.
async fn measures(backend: &dyn Backend, python: &str) {
    let cache = tempfile::tempdir().unwrap();
    let Some(coverage) = fetched(python, cache.path()).await else {
        return;
    };
    let spec = Spec::new(SandboxSource::Python(python.to_owned()), "test");
    let sandbox = backend.start(&spec).await.unwrap();
    let inside = coverage.unpack_into(sandbox.as_ref()).await.unwrap();
    sandbox
        .upload(
            &sandbox.info().paths.workspace.join("m.py"),
            b"import sys\nif len(sys.argv) > 9:\n    print('never')\n",
            0o644,
        )
        .await
        .unwrap();
    let script = "set -e; python3 -m coverage run --rcfile=/dev/null m.py\n\
                  python3 -c \"\n\
import coverage, coverage.tracer\n\
data = coverage.CoverageData('.coverage')\n\
data.read()\n\
print(coverage.__version__, [sorted(data.lines(f)) for f in data.measured_files()])\n\"\n\
                  (echo > \"$PYTHONPATH/coverage/__init__.py\") 2>/dev/null && echo written; true";
    let mut command = Command::shell(script);
    let inside = inside.to_string_lossy().into_owned();
    command.env.insert("PYTHONPATH".to_owned(), inside);
    let output = output(sandbox.as_ref(), &command, Duration::from_secs(60)).await;
    sandbox.stop().await.unwrap();
    let output = output.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{} [[1, 2]]\n", coverage.version),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn coverage_is_fetched_once() {
    let cache = tempfile::tempdir().unwrap();
    let Some(first) = fetched("3.8", cache.path()).await else {
        return;
    };
    assert!(first.archive.is_file());
    // The second fetch finds the package in the cache.
    let offline = BuildSettings {
        offline: true,
        index_url: Some("http://localhost:1/".to_owned()),
        ..BuildSettings::new(cache.path())
    };
    let (again, twice) = tokio::join!(package("3.8", &offline), package("3.8", &offline));
    assert_eq!((again.unwrap(), twice.unwrap()), (first.clone(), first));
    let error = package("3.13", &offline).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let leftovers: Vec<_> = std::fs::read_dir(cache.path().join("coverage"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(
        leftovers,
        Vec::<String>::new(),
        "partial downloads are removed"
    );
}

#[tokio::test]
async fn index_login_is_not_printed() {
    let cache = tempfile::tempdir().unwrap();
    let settings = BuildSettings {
        index_url: Some("http://user:secret@localhost:1/simple".to_owned()),
        ..BuildSettings::new(cache.path())
    };
    let error = package("3.9", &settings).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(!error.message.contains("secret"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn coverage_works_in_local_sandbox() {
    use testwright_sandboxes::local::{Local, LocalSettings};
    let cache = tempfile::tempdir().unwrap();
    let settings = LocalSettings {
        cache: cache.path().to_owned(),
        launcher: vec![env!("CARGO_BIN_EXE_testwright-jail").into()],
        ..LocalSettings::default()
    };
    let Ok(backend) = Local::new(settings) else {
        eprintln!("skipped: this machine has no isolation");
        return;
    };
    for python in ["3.6", "3.7", "3.8", "3.9", "3.11", "3.13"] {
        match backend.check_python(python).await {
            Ok(()) => measures(&backend, python).await,
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}

#[tokio::test]
async fn docker_coverage_works() {
    let Some(docker) = crate::docker::engine().await else {
        return;
    };
    measures(&docker, "3.11").await;
}
