//! Writes the files of a state and of a prediction to a sandbox's workspace.

use std::collections::BTreeSet;
use std::time::Duration;

use testwright_sandboxes::repository::{FileKind, Files};
use testwright_sandboxes::{Command, Sandbox, SandboxError};

/// Maximum paths per command, so that they fit into its arguments.
const MAX_PATHS_PER_COMMAND: usize = 200;

/// Writes files over a sandbox's workspace. They get a new modification time until [`super::traces`] changes it.
pub(super) async fn write_files(sandbox: &dyn Sandbox, files: &Files) -> Result<(), SandboxError> {
    let workspace = sandbox.info().paths.workspace.clone();
    let deleted_paths = files.iter().filter(|(_, file)| file.is_none());
    let deleted_paths: Vec<&str> = deleted_paths.map(|(path, _)| path.as_str()).collect();
    for chunk in deleted_paths.chunks(MAX_PATHS_PER_COMMAND) {
        run_script(sandbox, "rm -f -- \"$@\"", chunk).await?;
    }
    // Git does not track empty folders, and something else may replace them.
    let folders = deleted_paths
        .iter()
        .filter_map(|path| path.rsplit_once('/'));
    let folders: BTreeSet<&str> = folders.map(|(folder, _)| folder).collect();
    let folders: Vec<&str> = folders.into_iter().collect();
    let script = "for f in \"$@\"; do rmdir -p -- \"$f\" 2>/dev/null; done; true";
    for folders in folders.chunks(MAX_PATHS_PER_COMMAND) {
        run_script(sandbox, script, folders).await?;
    }
    for (path, file) in files {
        let Some(file) = file else { continue };
        let mode = match file.kind {
            FileKind::Plain => 0o644,
            FileKind::Executable => 0o755,
            FileKind::Link => {
                let target = String::from_utf8_lossy(&file.content).into_owned();
                let link = "mkdir -p -- \"$(dirname -- \"$2\")\" && ln -sfn -- \"$1\" \"$2\"";
                let script = format!("set -- \"$2\" \"$1\"; {CLEAR}; set -- \"$2\" \"$1\"; {link}");
                run_script(sandbox, &script, &[&target, path]).await?;
                continue;
            }
        };
        let target = workspace.join(path);
        if sandbox.upload(&target, &file.content, mode).await.is_err() {
            // A build may have created a folder at the file's path, or a file at its folder's path.
            run_script(sandbox, CLEAR, &[path]).await?;
            sandbox.upload(&target, &file.content, mode).await?;
        }
    }
    Ok(())
}

/// Script that removes obstacles to a file (first argument): a folder at its path, or files in place of its folders.
const CLEAR: &str = "p=; f=$1; while :; do case $f in */*) p=$p${f%%/*}; f=${f#*/}; \
    if [ ! -d \"$p\" ] && { [ -e \"$p\" ] || [ -L \"$p\" ]; }; then rm -f -- \"$p\"; fi; p=$p/;; *) break;; esac; done; \
    if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then rm -rf -- \"$1\"; fi";

/// Runs a script that must succeed.
async fn run_script(
    sandbox: &dyn Sandbox,
    script: &str,
    words: &[&str],
) -> Result<(), SandboxError> {
    let argv = ["sh", "-c", script, "sh"];
    let command = Command::new(argv.iter().chain(words).copied());
    let done =
        testwright_sandboxes::sandbox::output(sandbox, &command, Duration::from_secs(60)).await?;
    if done.code == 0 {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    let message = format!("change files in the sandbox: {}", errors.trim());
    Err(SandboxError::system(message))
}
