//! Ends processes that code left running in a container, before its state is saved.

use std::time::Duration;

use super::archive::Ids;
use super::container::Container;
use crate::error::SandboxError;
use crate::sandbox::{Command, Process, Result};

/// Script that stops all processes at once, so that none can start another. Then it kills all except itself, the
/// container's first process, and the sleeping one (its eldest child).
const SCRIPT: &str = r#"
kill -STOP -1
keep=
for status in /proc/[0-9]*/stat; do
    read -r line <"$status" || continue
    pid=${line%% *}; rest=${line##*) }; set -- $rest
    [ "$2" = 1 ] && { [ -z "$keep" ] || [ "$pid" -lt "$keep" ]; } && keep=$pid
done
for status in /proc/[0-9]*/stat; do
    pid=${status#/proc/}; pid=${pid%/stat}
    [ "$pid" = 1 ] || [ "$pid" = $$ ] || [ "$pid" = "$keep" ] || kill -KILL "$pid"
done
kill -CONT "$keep"
"#;

/// Ends the processes as the container's root user, so those of root end too.
pub(super) async fn end_processes(container: &Container) -> Result<()> {
    let mut command = Command::shell(SCRIPT);
    command.directory = Some("/".into());
    let Process { exit, .. } = container.exec(&command, Ids::ROOT).await?;
    match tokio::time::timeout(Duration::from_secs(30), exit).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(e)) => Err(e),
        Err(_) => Err(SandboxError::system(
            "stop the container's processes: it took too long",
        )),
    }
}
