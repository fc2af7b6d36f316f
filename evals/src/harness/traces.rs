//! Removes traces of the other side from a sandbox. Old and new code must differ in nothing but the code, or else a
//! test could tell them apart without running it: by bytecode, modification times, the archive of the base commit, or
//! git objects.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Files;
use testwright_sandboxes::sandbox::output_with_input;
use testwright_sandboxes::{Command, Sandbox, SandboxError};

const SCRIPT: &str = include_str!("traces.py");
const TIMEOUT: Duration = Duration::from_secs(120);

/// Replaces the repository of git, whose only commit is the old code, by one with the same tracked files and the given
/// ones. Files of the build stay untracked.
const NEW_REPOSITORY: &str = "set -e; [ -d .git ] || exit 0; list=$(mktemp)
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
tags=$(git tag); date=$(git log -1 --format=%cI)
{ git ls-files -z; printf '%s\\0' \"$@\"; } >\"$list\"
rm -rf .git; export GIT_AUTHOR_DATE=\"$date\" GIT_COMMITTER_DATE=\"$date\"
git init -q .
xargs -0 sh -c 'for p; do if [ -f \"$p\" ] || [ -L \"$p\" ]; then printf \"%s\\0\" \"$p\"; fi; done' sh <\"$list\" | xargs -0 -r git add -f --
rm -f \"$list\"
git -c user.name=testwright -c user.email=testwright@localhost -c commit.gpgsign=false commit -q --no-verify -m base
for tag in $tags; do git tag \"$tag\"; done";

/// Input of the script.
#[derive(Serialize)]
struct Request<'a> {
    changed: &'a [&'a str],
    shown: &'a BTreeMap<String, String>,
}

/// Commits the files of a side in the git repository. The files of a prediction are written later.
pub(super) async fn commit_side(sandbox: &dyn Sandbox, files: &Files) -> Result<(), SandboxError> {
    let script = ["sh", "-c", NEW_REPOSITORY, "sh"].into_iter();
    let command = Command::new(script.chain(files.keys().map(String::as_str)));
    let ran = testwright_sandboxes::sandbox::output(sandbox, &command, TIMEOUT).await?;
    check(ran.code, &ran.stderr, "commit the code of a side")
}

/// Removes the traces that writing the changed files left. `shown` are texts of files that show another text than their
/// bytecode has.
pub(super) async fn remove_traces(
    sandbox: &dyn Sandbox,
    environment: &Environment,
    changed: &[&str],
    shown: &BTreeMap<String, String>,
) -> Result<(), SandboxError> {
    let paths = &sandbox.info().paths;
    // Only the model's tools compare files with the base commit.
    let archive = environment.base_archive_in(paths);
    sandbox.upload(&archive, b"", 0o644).await?;
    if changed.is_empty() {
        return Ok(());
    }
    let request = serde_json::to_vec(&Request { changed, shown });
    let request = request.map_err(|e| SandboxError::system(e.to_string()))?;
    let python = environment.python_in(paths).display().to_string();
    // The script needs no installed packages, and looking for them would take most of its time.
    let command = Command::new([python.as_str(), "-I", "-S", "-c", SCRIPT]);
    let ran = output_with_input(sandbox, &command, &request, TIMEOUT).await?;
    check(ran.code, &ran.stderr, "remove traces of the other side")
}

fn check(code: i32, errors: &[u8], action: &str) -> Result<(), SandboxError> {
    if code == 0 {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(errors);
    let last = errors.trim().lines().last().unwrap_or_default().to_owned();
    Err(SandboxError::system(format!("{action}: {last}")))
}
