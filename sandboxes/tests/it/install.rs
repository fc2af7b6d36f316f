//! Tests of packages that the plain command does not install. Their build backends are in the repository itself.

use testwright_sandboxes::environment::Environment;

use crate::place::{BUILD_BACKEND, TestDir, recipe, shell};

const GUESSED: &str = "detected from a test";

const PYPROJECT: &str = "[project]\nname = \"thing\"\nversion = \"1.5\"\ndependencies = [\"extra<2\"]\n\
                         [project.scripts]\nthing-run = \"thing:run\"\n\
                         [build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";

/// A backend whose builds first run some code.
fn backend(code: &str) -> String {
    BUILD_BACKEND.replace(
        "def build_wheel(folder, config=None, metadata=None):\n",
        &format!("def build_wheel(folder, config=None, metadata=None):\n    {code}\n"),
    )
}

async fn python(place: &TestDir, built: &Environment, code: &str) -> String {
    let sandbox = place.sandbox(built).await;
    let python = built.python_in(&sandbox.info().paths).display().to_string();
    let output = shell(sandbox.as_ref(), &format!("cd / && {python} -c \"{code}\"")).await;
    sandbox.stop().await.unwrap();
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_build_leaves_code_importable() {
    let Some(place) = TestDir::new() else { return };
    place.write("pyproject.toml", PYPROJECT);
    place.write("backend.py", &backend("raise RuntimeError('no network')"));
    place.write("thing/__init__.py", "def run(): print('ran')\n");
    let source = place.source();
    let mut recipe = recipe();
    recipe.requirements.retain(|line| line != "extra<2");
    // A recipe from a file is taken as it is.
    assert!(place.build(&source, &recipe).await.is_err());
    let (built, _) = place.build_with_steps(&source, &recipe, GUESSED).await;
    let built = built.unwrap();
    assert_eq!(built.packages, ["extra==1.0", "pytest==7.0", "thing==1.5"]);
    let [note] = built.notes.as_slice() else {
        panic!("{:?}", built.notes);
    };
    assert!(
        note.contains("cannot be built (RuntimeError: no network)"),
        "{note}"
    );
    let code = "import subprocess, sys, os, thing, extra; print(thing.__file__, flush=True); \
                subprocess.run([os.path.join(os.path.dirname(sys.executable), 'thing-run')])";
    let output = python(&place, &built, code).await;
    assert!(output.contains("/thing/__init__.py\nran\n"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn compiler_errors_are_not_worked_around() {
    let Some(place) = TestDir::new() else { return };
    place.write("pyproject.toml", PYPROJECT);
    place.write(
        "backend.py",
        &backend("raise SystemExit('fatal error: Python.h: No such file')"),
    );
    let (built, _) = place
        .build_with_steps(&place.source(), &recipe(), GUESSED)
        .await;
    let error = built.unwrap_err();
    assert!(error.message.contains("Python.h"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_without_tag_is_set() {
    let Some(place) = TestDir::new() else { return };
    place.write("CHANGES.md", "# Changes\n\n## 4.2.1 (2024-01-01)\n");
    let built = place.build(&place.source(), &recipe()).await.unwrap();
    assert!(
        built.packages.contains(&"thing==4.2.1".to_owned()),
        "{:?}",
        built.packages
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn version_that_only_git_gives_is_found() {
    let Some(place) = TestDir::new() else { return };
    let code = "import subprocess; os.environ['SETUPTOOLS_SCM_PRETEND_VERSION_FOR_THING'] = \
                subprocess.check_output(['git', 'describe', '--tags'], text=True).strip().lstrip('v')";
    place.write("backend.py", &backend(code));
    place.write("HISTORY.rst", "2.7 (2024-01-01)\n----\n");
    let (built, steps) = place
        .build_with_steps(&place.source(), &recipe(), GUESSED)
        .await;
    let built = built.unwrap();
    assert!(
        built.packages.contains(&"thing==2.7".to_owned()),
        "{:?}",
        built.packages
    );
    assert!(steps.contains(&"remove the git repository".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_build_packages_are_installed() {
    let Some(place) = TestDir::new() else { return };
    place.wheel("numpy", "1.0", "");
    place.write("setup.py", "import numpy\n");
    place.write("backend.py", &backend("import numpy"));
    let (built, steps) = place
        .build_with_steps(&place.source(), &recipe(), GUESSED)
        .await;
    let built = built.unwrap();
    assert!(
        steps.contains(&"install the build requirements".to_owned()),
        "{steps:?}"
    );
    assert_eq!(built.notes, [""; 0]);
    assert!(built.packages.contains(&"numpy==1.0".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_are_installed_and_tried_separately() {
    let Some(place) = TestDir::new() else { return };
    place.git(&["rm", "-rfq", "--cached", "--ignore-unmatch", "."]);
    for folder in ["a", "b"] {
        let work = place.work_folder().join(folder);
        std::fs::create_dir_all(work.join("tests")).unwrap();
        std::fs::write(work.join("tests/test_x.py"), "def test_x(): pass\n").unwrap();
    }
    for path in [
        "pyproject.toml",
        "backend.py",
        "thing",
        "tests",
        "tracked.txt",
    ] {
        std::fs::rename(
            place.work_folder().join(path),
            place.work_folder().join("a").join(path),
        )
        .or_else(|_| std::fs::remove_dir_all(place.work_folder().join(path)))
        .unwrap();
    }
    place.write("b/pyproject.toml", &PYPROJECT.replace("thing", "other"));
    place.write("b/backend.py", &backend("raise RuntimeError('no')"));
    place.write("b/other.py", "value = 2\n");
    place.write("c/module.py", "value = 3\n");
    let mut recipe = recipe();
    recipe.install = Some(["-e", "./a", "-e", "./b"].map(str::to_owned).to_vec());
    recipe.projects = ["a", "b", "c"].map(str::to_owned).to_vec();
    let (built, steps) = place
        .build_with_steps(&place.source(), &recipe, GUESSED)
        .await;
    let built = built.unwrap();
    for step in ["try some tests in a", "try some tests in b"] {
        assert!(steps.contains(&step.to_owned()), "{steps:?}");
    }
    let code = "import thing, other, module; print(thing.value, other.value, module.value)";
    assert_eq!(python(&place, &built, code).await, "1 2 3\n");
}
