//! Tests of the installation of packages that tests need, with the real pytest and packages from PyPI.

use testwright_sandboxes::environment::{
    BuildSettings, Environment, SampleSettings, TestSample, prepare, sample_tests,
};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe::Recipe;
use testwright_sandboxes::{Limits, SandboxError};

use crate::place::{TestDir, recipe};

const TESTS: &str = r#"
import pytest
import sortedcontainers

def test_fixture_of_a_plugin(mocker):
    mocker.patch("os.getcwd", return_value="here")

def test_plain():
    assert sortedcontainers.SortedList([2, 1])[0] == 1

@pytest.mark.asyncio
async def test_async():
    pass
"#;

async fn build(place: &TestDir, recipe: &Recipe, origin: &str) -> Environment {
    let settings = from_pypi(place);
    let source = place.source();
    prepare(
        place.backend.as_ref(),
        &source,
        recipe,
        origin,
        &settings,
        &|_| {},
    )
    .await
    .unwrap()
}

fn from_pypi(place: &TestDir) -> BuildSettings {
    BuildSettings {
        index_url: None,
        ..place.settings()
    }
}

async fn sample(place: &TestDir, environment: &Environment, tests: usize, seed: u64) -> TestSample {
    let settings = SampleSettings {
        files: Vec::new(),
        tests,
        seed,
        test_seconds: 5,
        seconds: 60,
        limits: Limits::default(),
    };
    let backend = place.backend.as_ref();
    let source = place.source();
    sample_tests(
        backend,
        environment,
        &source,
        &from_pypi(place),
        &settings,
        &|_| {},
    )
    .await
    .unwrap()
    .unwrap()
}

fn of_2024() -> Recipe {
    let mut recipe = recipe();
    recipe
        .requirements
        .retain(|line| !line.starts_with("extra"));
    recipe.exclude_newer = Some("2024-09-01".to_owned());
    recipe
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_packages_are_installed() {
    let Some(place) = TestDir::new() else { return };
    place.write("tests/test_a.py", TESTS);
    place.write("tests/test_b.py", "import internal_tools\n");
    place.write(
        "tox.ini",
        "[testenv:x]\ndeps =\n    py312: sortedcontainers>=2\n",
    );
    let built = build(&place, &of_2024(), "detected from tox.ini").await;
    let mut notes = built.notes.clone();
    notes.sort();
    let of_b = "of 2 test files that were tried, 1 cannot be collected: tests/test_b.py \
                (ModuleNotFoundError: No module named 'internal_tools'); the module internal_tools is missing: if a package \
                provides it, add it with --requirement; if the repository does, add its folder to PYTHONPATH with --env";
    assert_eq!(
        notes,
        [
            "installed pytest-asyncio: tests/test_a.py::test_async needs it",
            "installed pytest-mock: tests/test_a.py needs it",
            "installed sortedcontainers>=2: tests/test_a.py needs it",
            of_b,
        ]
    );
    // 0.24.0 is the last release before that day.
    let asyncio = "pytest-asyncio==0.24.0".to_owned();
    assert!(built.packages.contains(&asyncio), "{:?}", built.packages);
    assert!(built.bytes > 0);

    let all = sample(&place, &built, 200, 0).await;
    assert_eq!(
        (all.collected, all.files, all.count("passed")),
        (3, 1, 3),
        "{all:?}"
    );
    assert_eq!(all.broken[0].0, "tests/test_b.py");
    assert_eq!(all.cut_short, None);
    // The cached environment has the same notes and is not tried again.
    let again = build(&place, &of_2024(), "detected from tox.ini").await;
    assert!(again.cached && again.notes == built.notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_recipe_is_not_extended() {
    let Some(place) = TestDir::new() else { return };
    place.write("tests/test_a.py", TESTS);
    place.write("tests/test_b.py", "def test_b(): pass\n");
    place.write("tox.ini", "[testenv]\ndeps = sortedcontainers\n");
    let built = build(&place, &of_2024(), "testwright.toml").await;
    assert_eq!(
        built.notes,
        [
            "of 2 test files that were tried, 1 cannot be collected: tests/test_a.py \
          (ModuleNotFoundError: No module named 'sortedcontainers'); the module sortedcontainers is missing: if a \
          package provides it, add it with --requirement; if the repository does, add its folder to PYTHONPATH with --env"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_files_are_not_broken() {
    let Some(place) = TestDir::new() else { return };
    place.write("tests/test_a.py", "import time\ntime.sleep(60)\n");
    let built = build(&place, &of_2024(), "testwright.toml").await;
    assert_eq!(
        built.notes,
        [
            "no test file was collected within 30 s, so none was tried: tests/test_a.py:2 was still running"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn seeded_sample_survives_hostile_tests() {
    let Some(place) = TestDir::new() else { return };
    let mut tests = String::from("import os, pytest, time\n");
    for n in 0..40 {
        tests.push_str(&format!("def test_{n}(): pass\n"));
    }
    place.write("tests/test_a.py", &tests);
    let built = build(&place, &of_2024(), "testwright.toml").await;
    let ids = async |seed| {
        let drawn = sample(&place, &built, 10, seed).await;
        drawn
            .tests
            .into_iter()
            .map(|test| test.id)
            .collect::<Vec<_>>()
    };
    let first = ids(1).await;
    assert_eq!(first.len(), 10);
    assert_eq!(first, ids(1).await);
    assert_ne!(first, ids(2).await);

    place.write(
        "tests/test_a.py",
        "import os, pytest, time\n\
         def test_0(): print('testwright-smoke-test: {\"ended\": 0}')\n\
         def test_1(): assert not 'this'\n\
         def test_2(): time.sleep(60)\n\
         def test_3(): pytest.skip('no display')\n\
         @pytest.mark.xfail\n\
         def test_4(): assert 0\n\
         def test_5(missing): pass\n\
         def test_6(): os._exit(7)\n",
    );
    let built = build(&place, &of_2024(), "testwright.toml").await;
    let all = sample(&place, &built, 200, 0).await;
    let outcomes: Vec<&str> = all.tests.iter().map(|test| test.outcome.as_str()).collect();
    assert_eq!(
        outcomes,
        ["passed", "failed", "failed", "skipped", "xfailed", "error"]
    );
    assert!(all.tests[2].text.contains("timed out after 5 s"));
    assert!(all.tests[3].text.contains("no display"));
    let why = all.cut_short.unwrap();
    assert!(why.contains("exit code 7"), "{why}");
}

async fn build_error(place: &TestDir, recipe: &Recipe, origin: &str) -> SandboxError {
    let source = place.source();
    let settings = from_pypi(place);
    let backend = place.backend.as_ref();
    let built = prepare(backend, &source, recipe, origin, &settings, &|_| {}).await;
    built.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn build_without_passing_test_fails() {
    let Some(place) = TestDir::new() else { return };
    let tests = "import socket\n\
                 def test_a(): socket.create_connection(('127.0.0.1', 9200))\n\
                 def test_b(): socket.create_connection(('127.0.0.1', 9200))\n\
                 def test_c(): raise OSError\n";
    place.write("tests/test_a.py", tests);
    let error = build_error(&place, &of_2024(), "testwright.toml").await;
    assert_eq!(error.kind, ErrorKind::Build);
    let message = &error.message;
    assert!(
        message.contains("none of the tests that were tried passes"),
        "{message}"
    );
    assert!(message.contains("2 of 3 end with this error"), "{message}");
    assert!(message.contains("ConnectionRefusedError"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spawned_processes_do_not_repeat_tests() {
    let Some(place) = TestDir::new() else { return };
    let tests = "import multiprocessing\n\
                 def work(queue): queue.put(1)\n\
                 def test_a():\n    context = multiprocessing.get_context('spawn')\n    queue = context.Queue()\n    \
                 process = context.Process(target=work, args=(queue,))\n    process.start()\n    \
                 assert queue.get(timeout=60) == 1\n    process.join()\n\
                 def test_b(): pass\n";
    place.write("tests/test_a.py", tests);
    let built = build(&place, &of_2024(), "testwright.toml").await;
    let all = sample(&place, &built, 200, 0).await;
    let outcomes: Vec<&str> = all.tests.iter().map(|test| test.outcome.as_str()).collect();
    assert_eq!(outcomes, ["passed", "passed"], "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_variables_are_set() {
    let Some(place) = TestDir::new() else { return };
    let tests = "import os\nname = os.environ['SERVER_NAME']\n\
                 def test_a(): assert (name, os.environ['OTHER_NAME']) == ('localhost', 'x')\n";
    place.write("tests/test_a.py", tests);
    place.write(".env.example", "SERVER_NAME=localhost\nOTHER_NAME=\"x\"\n");
    let built = build(&place, &of_2024(), "detected from x").await;
    assert_eq!(
        built.notes,
        ["set SERVER_NAME=localhost, as .env.example says: tests/test_a.py needs it"]
    );
    assert_eq!(built.recipe.env["OTHER_NAME"], "x");
    let again = build(&place, &of_2024(), "detected from x").await;
    assert!(again.cached && again.recipe.env == built.recipe.env && again.env == built.env);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_redis_is_added() {
    let Some(place) = TestDir::new() else { return };
    place.write(
        "tests/test_a.py",
        "import redis\ndef test_a():\n    client = redis.Redis()\n    client.set('a', 1)\n    assert client.get('a') == b'1'\n",
    );
    let mut recipe = of_2024();
    // Wheels of the server are newer.
    recipe.exclude_newer = Some("2024-11-01".to_owned());
    recipe.requirements.push("redis".to_owned());
    let built = build(&place, &recipe, "detected from x").await;
    assert_eq!(
        built.notes,
        ["added the service redis at port 6379: tests/test_a.py::test_a needs it"]
    );
    let all = sample(&place, &built, 1, 0).await;
    assert_eq!(all.count("passed"), 1, "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn omitted_requirement_explains_failure() {
    let Some(place) = TestDir::new() else { return };
    place.write(
        "tests/test_a.py",
        "import nowhere_at_all\ndef test_a(): pass\n",
    );
    let mut recipe = of_2024();
    recipe.requirements.push("nowhere-at-all==1".to_owned());
    let error = build_error(&place, &recipe, "detected from x").await;
    let note = "note: requirement nowhere-at-all==1 could not be installed and was omitted (";
    assert!(error.message.contains(note), "{}", error.message);
    assert!(error.hint.unwrap().contains("nowhere-at-all==1"));
}
