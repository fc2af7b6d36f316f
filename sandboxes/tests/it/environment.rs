//! Tests of environments that the local backend builds from packages in a folder, so they need no network.

use std::path::{Path, PathBuf};

use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe::{Recipe, Service};

use crate::place::{TestDir, recipe, shell};

#[tokio::test(flavor = "multi_thread")]
async fn environment_is_built_once() {
    let Some(place) = TestDir::new() else { return };
    place.source();
    place.git(&["tag", "v3.1"]);
    let source = place.source();
    let mut recipe = recipe();
    recipe
        .before_install
        .push("echo before > before.txt".to_owned());
    recipe
        .after_install
        .push("cp generated.txt after.txt".to_owned());
    recipe
        .env
        .insert("GENERATED".to_owned(), "by the recipe".to_owned());
    let built = place.build(&source, &recipe).await.unwrap();
    assert!(!built.cached && built.seconds > 0.0);
    assert_eq!(Some(&built.python_version), recipe.python.as_ref());
    assert_eq!(built.notes, Vec::<String>::new());
    assert_eq!(
        built.packages,
        ["extra==1.0", "pytest==7.0", "thing==3.2.dev1"]
    );
    let log = std::fs::read_to_string(&built.log).unwrap();
    for step in [
        "install the requirements",
        "install the package",
        "before the installation",
        "try some tests",
    ] {
        assert!(log.contains(&format!("== {step}")), "{step}\n{log}");
    }

    let sandbox = place.sandbox(&built).await;
    let paths = sandbox.info().paths.clone();
    let python = built.python_in(&paths).display().to_string();
    let output = shell(
        sandbox.as_ref(),
        &format!("cd / && {python} -c 'import thing; print(thing.__file__, thing.value)'"),
    )
    .await;
    assert_eq!(
        output.trim(),
        format!("{}/thing/__init__.py 1", paths.workspace.display())
    );
    let output = shell(
        sandbox.as_ref(),
        "cat tracked.txt generated.txt before.txt after.txt; ls thing/__pycache__ | wc -l",
    )
    .await;
    assert_eq!(
        output, "as committedby the recipebefore\nby the recipe1\n",
        "tracked files are as committed"
    );
    let base = sandbox
        .download(&built.base_archive_in(&paths))
        .await
        .unwrap();
    assert_eq!(base, std::fs::read(&source.archive).unwrap());
    // A change within the same second that keeps the size is noticed.
    let stale = format!(
        "touch -r thing/__init__.py m && echo 'value = 2' > thing/__init__.py && touch -r m thing/__init__.py && {python} -c 'import thing; print(thing.value)'"
    );
    assert_eq!(shell(sandbox.as_ref(), &stale).await, "2\n");
    sandbox.stop().await.unwrap();

    let (again, steps) = place.build_with_steps(&source, &recipe, "another").await;
    let again = again.unwrap();
    assert!(again.cached && steps.is_empty(), "{steps:?}");
    assert_eq!(
        (again.saved.as_str(), again.origin.as_str()),
        (built.saved.as_str(), "another")
    );

    // Other code with the same requirements starts from their layer.
    place.write("thing/more.py", "");
    let other = place.source();
    let (other, steps) = place.build_with_steps(&other, &recipe, "a test").await;
    assert_ne!(other.unwrap().saved, built.saved);
    assert!(
        !steps.contains(&"install the requirements".to_owned()),
        "{steps:?}"
    );
    assert!(
        steps.contains(&"install the package".to_owned()),
        "{steps:?}"
    );
    // Other requirements need their own layer.
    recipe.requirements[1] = "extra".to_owned();
    let (other, steps) = place.build_with_steps(&source, &recipe, "a test").await;
    assert!(other.unwrap().packages.contains(&"extra==2.0".to_owned()));
    assert!(
        steps.contains(&"install the requirements".to_owned()),
        "{steps:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_step_is_reported_with_log() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let mut failing = recipe();
    failing
        .before_install
        .push("echo fatal error: Python.h: No such file; exit 7".to_owned());
    let error = place.build(&source, &failing).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Build);
    assert!(
        error.message.contains("exit code 7")
            && error.message.contains("\n    fatal error: Python.h"),
        "{error}"
    );
    let log = error
        .message
        .lines()
        .last()
        .unwrap()
        .rsplit(": ")
        .next()
        .unwrap()
        .to_owned();
    assert!(std::fs::read_to_string(log).unwrap().contains("Python.h"));
    assert!(error.hint.unwrap().contains("python3-dev"));
    // No state remains that looks finished.
    assert!(place.build(&source, &failing).await.is_err());
    assert!(place.build(&source, &recipe()).await.is_ok());

    let mut missing = recipe();
    missing.requirements.push("nowhere>=1".to_owned());
    let error = place.build(&source, &missing).await.unwrap_err();
    assert!(
        error.message.contains("install the requirements") && error.message.contains("nowhere"),
        "{error}"
    );
    // Guessed requirements are omitted if they cannot be installed.
    let (built, _) = place
        .build_with_steps(&source, &missing, "detected from tox.ini")
        .await;
    let notes = built.unwrap().notes;
    let note =
        "requirement nowhere>=1 could not be installed and was omitted (Because nowhere was not";
    assert!(
        matches!(notes.as_slice(), [only] if only.starts_with(note)),
        "{notes:?}"
    );
    // Additions by the user are not omitted.
    let mut added = recipe();
    added.requirements.push("nowhere>=2".to_owned());
    added.stated.added.push("nowhere>=2".to_owned());
    let mut extended = recipe();
    extended.install = Some(vec!["-e".to_owned(), ".[nothing]".to_owned()]);
    extended.stated.extras.push("nothing".to_owned());
    for (recipe, message) in [(added, "nowhere"), (extended, "has no extra `nothing`")] {
        let building = place.build_with_steps(&source, &recipe, "detected from tox.ini");
        let error = building.await.0.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.message.contains(message), "{error}");
    }
    // The first of two requirements of one package counts.
    let mut twice = recipe();
    twice.requirements.push("extra==2.0".to_owned());
    let (built, _) = place
        .build_with_steps(&source, &twice, "detected from tox.ini")
        .await;
    let built = built.unwrap();
    assert!(built.packages.contains(&"extra==1.0".to_owned()));
    assert!(
        built.notes[0].starts_with("requirement extra==2.0 could not be installed"),
        "{:?}",
        built.notes
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn uncollectable_files_are_reported() {
    let Some(place) = TestDir::new() else { return };
    place.write("tests/test_broken.py", "def test_(:\n");
    let built = place.build(&place.source(), &recipe()).await.unwrap();
    assert_eq!(
        built.notes,
        [
            "of 2 test files that were tried, 1 cannot be collected: tests/test_broken.py \
             (SyntaxError: invalid syntax)"
        ]
    );

    std::fs::remove_dir_all(place.work_folder().join("tests")).unwrap();
    let built = place.build(&place.source(), &recipe()).await.unwrap();
    assert_eq!(
        built.notes,
        ["pytest found no tests in the test files that were tried"]
    );

    place.write("crash", "");
    place.write("tests/test_a.py", "def test_a(): pass");
    let error = place.build(&place.source(), &recipe()).await.unwrap_err();
    assert!(error.message.contains("exit code 139"), "{error}");
    place.write("tests/test_fine.py", "def test_a(): pass");
    let built = place.build(&place.source(), &recipe()).await.unwrap();
    let crash = "some tests crash the process that runs them (exit code 139)";
    assert_eq!(built.notes, [crash]);
    std::fs::remove_file(place.work_folder().join("crash")).unwrap();

    let mut strange = recipe();
    strange.runner.options.push("--strange".to_owned());
    let error = place.build(&place.source(), &strange).await.unwrap_err();
    assert!(
        error.message.contains("unrecognized arguments: --strange"),
        "{error}"
    );
    // Its state must not remain in the cache.
    assert!(place.build(&place.source(), &strange).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn git_works_with_single_commit() {
    let Some(place) = TestDir::new() else { return };
    place.source();
    place.git(&["tag", "v3.1"]);
    let source = place.source();
    let mut recipe = recipe();
    recipe.git = true;
    recipe.after_install.push(
        "git describe --tags > described.txt; git log --oneline | wc -l >> described.txt"
            .to_owned(),
    );
    let built = place.build(&source, &recipe).await.unwrap();
    let sandbox = place.sandbox(&built).await;
    assert_eq!(
        shell(sandbox.as_ref(), "cat described.txt").await,
        "v3.1\n1\n"
    );
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_builds_run_once() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let recipe = recipe();
    let (one, two) = tokio::join!(place.build(&source, &recipe), place.build(&source, &recipe));
    assert_eq!(
        usize::from(one.unwrap().cached) + usize::from(two.unwrap().cached),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn installed_copy_of_code_is_noted() {
    let Some(place) = TestDir::new() else { return };
    place.write("extra/__init__.py", "");
    place.write("extra.md", "");
    place.write("compiled/__init__.py", "");
    let mut copied = recipe();
    let site = "$(python -c 'import sysconfig; print(sysconfig.get_paths()[\"purelib\"])')";
    copied.after_install.push(format!("cp -r extra {site}/"));
    // Editable installs can put only compiled modules there.
    copied.after_install.push(format!("mkdir {site}/compiled"));
    let built = place.build(&place.source(), &copied).await.unwrap();
    assert_eq!(
        built.notes,
        ["the installed packages contain a copy of `extra`, which is not the code under test"]
    );
}

/// uv reports that the build backend has no `build_editable`.
#[tokio::test(flavor = "multi_thread")]
async fn package_without_editable_install_is_linked() {
    let Some(place) = TestDir::new() else { return };
    place.write("old", "");
    let built = place.build(&place.source(), &recipe()).await.unwrap();
    assert_eq!(built.notes, Vec::<String>::new());
    assert!(built.packages.contains(&"thing==0.0.0".to_owned()));
    let sandbox = place.sandbox(&built).await;
    let paths = sandbox.info().paths.clone();
    let python = built.python_in(&paths).display().to_string();
    let script = format!(
        "cd / && {python} -c 'import thing.built; print(thing.__file__, thing.built.value)'"
    );
    let output = shell(sandbox.as_ref(), &script).await;
    assert_eq!(
        output.trim(),
        format!("{}/thing/__init__.py built", paths.workspace.display())
    );
    sandbox.stop().await.unwrap();
}

/// Downloads setuptools from the package index once, into the target folder. Returns `None` without network.
fn setuptools() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("setuptools");
    let wheel = folder.join("setuptools-80.9.0-py3-none-any.whl");
    if !wheel.exists() {
        let output = std::process::Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
            .arg(&folder)
            .arg("setuptools==80.9.0")
            .output()
            .unwrap();
        if !output.status.success() {
            eprintln!("skipped: setuptools cannot be downloaded: {output:?}");
            return None;
        }
    }
    Some(wheel)
}

/// An import hook hides the code from tools that walk `sys.path`. Without one, a package in an unusual folder is not
/// found.
#[tokio::test(flavor = "multi_thread")]
async fn setuptools_path_falls_back_to_hook() {
    let Some(place) = TestDir::new() else { return };
    let Some(wheel) = setuptools() else { return };
    std::fs::copy(&wheel, place.wheels().join(wheel.file_name().unwrap())).unwrap();
    let hook = "install the package with an import hook".to_owned();
    let named = "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n\
                 [project]\nname = \"thing\"\nversion = \"1\"\n[tool.setuptools]\npackages = [\"thing\"]\n";
    let unnamed = "from setuptools import setup\n\
                   setup(name='th' + 'ing', version='1', packages=['thing'], package_dir={})\n";
    let cases = [
        ("pyproject.toml", named.to_owned(), "thing", true),
        (
            "setup.py",
            unnamed.replace("{}", "{'': '.'}"),
            "thing",
            true,
        ),
        (
            "setup.py",
            unnamed.replace("{}", "{'': 'src'}"),
            "src/thing",
            true,
        ),
        (
            "setup.py",
            unnamed.replace("{}", "{'thing': 'odd/place'}"),
            "odd/place",
            false,
        ),
    ];
    for (file, content, folder, path) in cases {
        for old in [
            "pyproject.toml",
            "backend.py",
            "setup.py",
            "thing",
            "src",
            "odd",
        ] {
            let old = place.work_folder().join(old);
            let _ = std::fs::remove_file(&old).or_else(|_| std::fs::remove_dir_all(&old));
        }
        place.write(file, &content);
        place.write(&format!("{folder}/__init__.py"), "");
        place.write(&format!("{folder}/__main__.py"), "print(__file__)\n");
        let (built, steps) = place
            .build_with_steps(&place.source(), &recipe(), "a test")
            .await;
        let built = built.unwrap();
        assert_eq!(steps.contains(&hook), !path, "{content}: {steps:?}");
        let sandbox = place.sandbox(&built).await;
        let paths = sandbox.info().paths.clone();
        let python = built.python_in(&paths).display().to_string();
        let main = format!("{}/{folder}/__main__.py\n", paths.workspace.display());
        let output = shell(sandbox.as_ref(), &format!("cd / && {python} -m thing")).await;
        assert_eq!(output, main, "{content}");
        let script = format!("find {} -name '*_finder.py'", paths.environment.display());
        let hooks = shell(sandbox.as_ref(), &script).await;
        assert_eq!(hooks.contains("__editable__"), !path, "{content}: {hooks}");
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_python_is_not_built() {
    let Some(place) = TestDir::new() else { return };
    for python in ["backend.py", "thing", "tests"] {
        let python = place.work_folder().join(python);
        let _ = std::fs::remove_file(&python).or_else(|_| std::fs::remove_dir_all(&python));
    }
    let error = place.build(&place.source(), &recipe()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(error.message.contains("no Python files"), "{error}");
}

/// A record without its state, or a state without its record, counts as missing.
#[tokio::test(flavor = "multi_thread")]
async fn incomplete_environment_is_ignored() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let built = place.build(&source, &recipe()).await.unwrap();
    place.backend.remove_saved(&built.saved).await.unwrap();
    assert!(!place.build(&source, &recipe()).await.unwrap().cached);
    let records: &Path = &place.folder.path().join("cache/environments");
    std::fs::remove_file(records.join(format!("{}.json", built.saved))).unwrap();
    assert!(!place.build(&source, &recipe()).await.unwrap().cached);
    assert!(place.build(&source, &recipe()).await.unwrap().cached);
}

/// A service that sends its version of `extra` to every client.
const SERVER: &str = "import socket, importlib.metadata as m
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', 8917))
s.listen()
print('listening')
while True:
    c = s.accept()[0]
    try:
        c.sendall(m.version('extra').encode())
    except OSError:
        pass
    c.close()
";

#[tokio::test(flavor = "multi_thread")]
async fn services_run_beside_tests() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let mut recipe = recipe();
    recipe.services = vec![Service {
        name: "versions".to_owned(),
        command: ["python", "-c", SERVER].map(str::to_owned).to_vec(),
        requirements: vec!["extra==2.0".to_owned()],
        port: 8917,
        python: None,
        env: [("VERSIONS".to_owned(), "127.0.0.1:8917".to_owned())].into(),
    }];
    let built = place.build(&source, &recipe).await.unwrap();
    assert!(built.packages.contains(&"extra==1.0".to_owned()));
    assert_eq!(built.env["VERSIONS"], "127.0.0.1:8917");

    let sandbox = place.sandbox(&built).await;
    let python = built.python_in(&sandbox.info().paths).display().to_string();
    let ask = format!(
        "{python} -c \"import os, socket, importlib.metadata as m; \
         h, p = os.environ['VERSIONS'].split(':'); \
         print(m.version('extra'), socket.create_connection((h, int(p))).recv(9).decode())\" 2>&1 | tail -1"
    );
    let refused = shell(sandbox.as_ref(), &ask).await;
    assert!(refused.contains("Connection refused"), "{refused}");
    built.start_services(sandbox.as_ref(), &[]).await.unwrap();
    assert_eq!(shell(sandbox.as_ref(), &ask).await, "1.0 2.0\n");
    // A running service is not started twice, and a fork starts without it.
    built.start_services(sandbox.as_ref(), &[]).await.unwrap();
    assert_eq!(shell(sandbox.as_ref(), &ask).await, "1.0 2.0\n");
    let fork = sandbox.fork().await.unwrap();
    assert!(shell(fork.as_ref(), &ask).await.contains("refused"));
    built.start_services(fork.as_ref(), &[]).await.unwrap();
    assert_eq!(shell(fork.as_ref(), &ask).await, "1.0 2.0\n");
    fork.stop().await.unwrap();
    sandbox.stop().await.unwrap();

    // The error of a failed service has its output. The changed command matters only to the caller that starts it.
    let mut broken = built.clone();
    broken.recipe.services[0].command[2] = "raise SystemExit('no, not now')".to_owned();
    let sandbox = place.sandbox(&broken).await;
    let error = broken
        .start_services(sandbox.as_ref(), &[])
        .await
        .unwrap_err();
    assert!(
        error.message.contains("service versions") && error.message.contains("\n    no, not now"),
        "{error}"
    );
    sandbox.stop().await.unwrap();

    recipe.services[0].requirements.push("nowhere".to_owned());
    let error = place.build(&source, &recipe).await.unwrap_err();
    assert!(
        error.message.contains("install the service versions"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_before_tests_prepare_sandboxes() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let mut recipe = recipe();
    let script = "python -c 'import thing; print(thing.value)' > prepared.txt";
    recipe.before_tests.push(script.to_owned());
    let built = place.build(&source, &recipe).await.unwrap();
    assert!(built.needs_preparation());
    let sandbox = place.sandbox(&built).await;
    let before = shell(sandbox.as_ref(), "cat prepared.txt").await;
    assert!(before.contains("No such file"), "{before}");
    built.prepare_tests(sandbox.as_ref(), &[]).await.unwrap();
    let after = shell(sandbox.as_ref(), "cat prepared.txt").await;
    assert_eq!(after, "1\n");
    sandbox.stop().await.unwrap();

    recipe
        .before_tests
        .push("echo no tables; exit 3".to_owned());
    let error = place.build(&source, &recipe).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Build);
    assert!(
        error.message.contains("`before the tests: echo no tables")
            && error.message.contains("\n    no tables"),
        "{error}"
    );
    // A guessed command that fails is omitted, because the tests may do without it.
    let (guessed, _) = place
        .build_with_steps(&source, &recipe, "detected from a test")
        .await;
    let guessed = guessed.unwrap();
    assert_eq!(guessed.recipe.before_tests, [script]);
    let note = "`echo no tables; exit 3` failed before the tests: no tables; it was omitted";
    assert!(
        guessed.notes.iter().any(|n| n == note),
        "{:?}",
        guessed.notes
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn untested_recipe_is_noted() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let untested = Recipe {
        untested: true,
        ..recipe()
    };
    let built = place.build(&source, &untested).await.unwrap();
    assert!(
        built.notes.iter().any(|n| n.contains("untested")),
        "{:?}",
        built.notes
    );
}
