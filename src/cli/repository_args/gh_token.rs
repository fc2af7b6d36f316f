//! The token of GitHub's own program, for users who are logged in with it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testwright_config::settings::Settings;
use testwright_sandboxes::programs::command_outside_cwd;

const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_TOKEN_LEN: u64 = 1000;

/// Takes the token for github.com from `gh`, unless the variable for the token is set, even to nothing.
pub(super) fn take(settings: &mut Settings) {
    let variable = settings.github.token_env.clone();
    if settings.github.base_url.is_some() || std::env::var_os(&variable).is_some() {
        return;
    }
    let mut command = command_outside_cwd("gh");
    command.args(["auth", "token", "--hostname", "github.com"]);
    if let Some(token) = word_from(&mut command, TIMEOUT) {
        settings.set_github_token(&token);
        let note = format!("{variable} is not set: using the token of `gh auth token`");
        settings.notes.push(note);
    }
}

/// Returns the word that a program prints within this time; `None` if it fails.
fn word_from(command: &mut Command, timeout: Duration) -> Option<String> {
    let streams = command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = streams.stdout(Stdio::piped()).spawn().ok()?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < timeout => std::thread::sleep(POLL_INTERVAL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    let output = child.stdout.take()?;
    output.take(MAX_TOKEN_LEN).read_to_string(&mut text).ok()?;
    let word = text.trim();
    let is_word = !word.is_empty() && !word.contains(char::is_whitespace);
    (status.success() && is_word).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prompt_success_gives_token() {
        let word = |script: &str, timeout| {
            let mut command = Command::new("/bin/sh");
            word_from(command.args(["-c", script]), timeout)
        };
        assert_eq!(word("echo gho_1", TIMEOUT).as_deref(), Some("gho_1"));
        assert_eq!(word("echo gho_1; exit 1", TIMEOUT), None);
        assert_eq!(word("echo not logged in", TIMEOUT), None);
        assert_eq!(word("exec sleep 60", Duration::from_millis(50)), None);
        assert_eq!(word_from(&mut Command::new("/none"), TIMEOUT), None);
    }
}
