//! The image from which tests start in Docker.
//!
//! If an engine is available but lacks the image, the project's script creates it once. If that is impossible, or no
//! engine is available, the tests are skipped. With `TESTWRIGHT_REQUIRE_DOCKER=1` they fail instead. Tests of other
//! crates use this module too.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const IMAGE: &str = "testwright/python:3.11";
const SCRIPT: &str = "sandboxes/base-images/make-base-image";

pub(crate) fn is_available() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| match find_or_create() {
        Ok(()) => true,
        Err(why) => {
            let is_required = std::env::var("TESTWRIGHT_REQUIRE_DOCKER").is_ok_and(|v| v == "1");
            assert!(!is_required, "TESTWRIGHT_REQUIRE_DOCKER=1, but {why}");
            eprintln!("skipped: {why}");
            false
        }
    })
}

fn find_or_create() -> Result<(), String> {
    let docker = |arguments: &[&str]| {
        let output = Command::new("docker").args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let is_there = || docker(&["image", "inspect", IMAGE]);
    if is_there() {
        return Ok(());
    }
    if !docker(&["version"]) {
        return Err("no Docker engine is available".to_owned());
    }
    // Tests run in many processes: one creates the image, and the others wait.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(folder.join("base-image.lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    if is_there() {
        return Ok(());
    }
    let failed = folder.join("base-image.failed");
    if let Ok(why) = std::fs::read_to_string(&failed)
        && is_fresh(&failed)
    {
        return Err(why);
    }
    say(&format!(
        "{IMAGE} is made by {SCRIPT}, which takes some minutes"
    ));
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join(SCRIPT))
        .find(|script| script.is_file())
        .ok_or("the script that creates the image is missing")?;
    let output = Command::new(script).args(["--python", "3.11"]).output();
    let why = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let why = format!("the engine lacks {IMAGE}, and it could not be created here: {why}");
    let _ = std::fs::write(&failed, &why);
    Err(why)
}

/// Returns whether the last attempt belongs to the current test run, in which it is not repeated.
fn is_fresh(file: &Path) -> bool {
    let modified = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < Duration::from_secs(600)))
}

/// Prints to the terminal, bypassing the capture of test output.
fn say(text: &str) {
    use std::io::Write;
    match File::options().write(true).open("/dev/tty") {
        Ok(mut terminal) => {
            let _ = writeln!(terminal, "{text}");
        }
        Err(_) => eprintln!("{text}"),
    }
}
