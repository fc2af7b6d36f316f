//! Tests of `testwright runs` with a server.

use serde_json::json;

use super::{ServerProcess, databases, issue};
use crate::support::program::{TestDir, assert_exit_code};
use crate::support::server::{MockServer, Response};

#[test]
fn runs_are_listed_followed_and_exported() {
    let place = TestDir::new();
    let daemon = ServerProcess::start(&place, &databases::all()[0], None);
    let id = daemon.run(&issue());
    let server = format!("http://{}", daemon.client.address);
    let runs = |words: &[&str]| {
        let mut command = place.testwright();
        command.arg("runs").args(words).args(["--server", &server]);
        let output = command.output().unwrap();
        let code = output.status.code().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (code, text(&output.stdout), text(&output.stderr))
    };
    let (code, followed, stderr) = runs(&["follow", &id]);
    assert_eq!(code, 0, "{stderr}");
    assert!(followed.contains("run_pytest"), "{followed}");
    let (_, listed, _) = runs(&["list"]);
    let row = format!("{id}  accepted");
    assert!(
        listed.starts_with(&row) && followed.contains(&row),
        "{listed}"
    );
    let (_, stdout, _) = runs(&["show", &id]);
    assert!(stdout.contains("+++ b/tests/test_slug.py"), "{stdout}");
    let out = place.path("exported");
    let (code, _, stderr) = runs(&["export", &id, "--out", &out.display().to_string()]);
    assert_eq!(code, 0, "{stderr}");
    for name in [
        "run.json",
        "trajectory.jsonl",
        "test.patch",
        "evidence.json",
        "environment.log",
    ] {
        assert!(out.join(name).is_file(), "{name}");
    }
    let log = std::fs::read_to_string(out.join("environment.log")).unwrap();
    assert!(!log.is_empty());
    // The exported folder works like any folder of a run.
    let mut show = place.testwright();
    let page = show.args(["show", "--html"]).arg(&out).output().unwrap();
    assert_exit_code(&page, 0);
    let page = std::fs::read_to_string(out.join("trajectory.html")).unwrap();
    assert!(page.contains("insert_function"), "{page}");
    let card = place.testwright().arg("show").arg(&out).output().unwrap();
    assert!(String::from_utf8_lossy(&card.stdout).contains("A test was accepted."));
    for (words, hint) in [
        (
            &["show", "nothing"][..],
            "`testwright runs list` lists all runs",
        ),
        (&["cancel", &id], "the run has ended"),
        (&["retry", &id], "POST /v1/runs starts a new one"),
        (
            &["export", &id, "--out", &out.display().to_string()],
            "it already exists",
        ),
    ] {
        let (code, _, stderr) = runs(words);
        assert!(code == 2 && stderr.contains(hint), "{code} {stderr}");
    }
    drop(daemon);
    let (code, _, stderr) = runs(&["list"]);
    assert!(
        code == 3 && stderr.contains("testwright serve"),
        "{code} {stderr}"
    );
}

#[test]
fn export_fails_if_the_server_fails() {
    let place = TestDir::new();
    let export = |patch_status: u16| {
        let server =
            MockServer::start(
                move |request| match request.path.rsplit('/').next().unwrap() {
                    "patch" => Response::status(patch_status),
                    "evidence" => Response::status(404),
                    "artifacts" => Response::json(json!({"artifacts": []})),
                    _ => Response::json(json!({"id": "r"})),
                },
            );
        let out = place.path(&format!("exported-{patch_status}"));
        let mut command = place.testwright();
        command.args(["runs", "--server", &server.url, "export", "r", "--out"]);
        command.arg(out).output().unwrap()
    };
    assert_exit_code(&export(404), 0);
    assert_exit_code(&export(503), 3);
    for (status, code, hint) in [
        (401, 2, "hint: set TESTWRIGHT_TOKEN"),
        (403, 2, "hint: set TESTWRIGHT_TOKEN"),
        (429, 3, "hint: wait a minute"),
    ] {
        let output = export(status);
        assert_exit_code(&output, code);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(hint), "{stderr}");
        // The same command can be run again.
        assert!(!place.path(&format!("exported-{status}")).exists());
    }
}
