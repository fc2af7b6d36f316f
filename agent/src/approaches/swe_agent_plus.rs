//! SWE-Agent+ (SWT-bench §4.1): one command at a time with a shell, a windowed viewer and a line editor. The
//! agent is told to run the new tests and see them fail, and reminded if it submits without doing so. The
//! gate's decision on its submission is only recorded; the agent gets no feedback from it.

use async_trait::async_trait;
use testwright_agent_prompts::{Prompt, RunBeforeSubmit, SweAgentPlusSystem, Task};
use testwright_tools::tool::Tool;
use testwright_tools::tools::{CreateFile, EditLines, Shell, Submit};

use super::swe_agent::{TOOLS, run_with_shell};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Hook, Outcome, Run};
use crate::trajectory::RecordedAnswer;
use testwright_models::ToolCall;

pub(super) static APPROACH: Approach = Approach {
    tools: || TOOLS.to_vec(),
    ..Approach::new(
        "swe-agent-plus",
        "an agent with shell, viewer and line editor, one command at a time; it is told to see its test fail before it submits, and reminded at most twice",
        Workflow::Agent {
            prompts: &[SweAgentPlusSystem::NAME, Task::NAME, RunBeforeSubmit::NAME],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let system = SweAgentPlusSystem {
        max_steps: context.max_steps,
    };
    run_with_shell(run, &system, &context.notes, &mut Reminder::default()).await
}

/// Maximum number of reminders; after them a submission is accepted as it is.
const REMINDERS: u32 = 2;

/// Tracks whether the agent has seen its tests fail since its last change.
#[derive(Default)]
struct Reminder {
    seen_failing: bool,
    /// Command that is running.
    command: String,
    reminded: u32,
}

#[async_trait]
impl Hook for Reminder {
    async fn before(&mut self, _: &mut Run, call: &ToolCall) -> Flow<Option<String>> {
        let command = &call.arguments.value()["command"];
        self.command = command.as_str().unwrap_or_default().to_owned();
        if call.name != Submit::NAME || self.seen_failing || self.reminded == REMINDERS {
            return Ok(None);
        }
        self.reminded += 1;
        Ok(Some(RunBeforeSubmit {}.render()?))
    }

    fn after(&mut self, answer: &RecordedAnswer) {
        match answer.tool.as_str() {
            EditLines::NAME | CreateFile::NAME if !answer.refused => self.seen_failing = false,
            // A later passing run changes nothing: it may use a copy with a fix.
            Shell::NAME if runs_tests(&self.command) => {
                self.seen_failing |= shows_failure(&answer.result.content)
            }
            _ => {}
        }
    }
}

fn runs_tests(command: &str) -> bool {
    let runners = [
        "pytest",
        "py.test",
        "bin/test",
        "unittest",
        "runtests",
        "manage.py test",
    ];
    runners.iter().any(|runner| command.contains(runner))
}

/// Returns whether the output has a test runner's summary that counts failures or errors.
fn shows_failure(output: &str) -> bool {
    output.lines().any(|line| {
        let line = line.to_lowercase();
        let counts = |word: &str| {
            line.split(|c: char| !c.is_alphanumeric())
                .zip(line.split(|c: char| !c.is_alphanumeric()).skip(1))
                .any(|(number, what)| what == word && number.parse::<u32>().is_ok_and(|n| n > 0))
        };
        counts("failed") || counts("error") || counts("errors") || line.starts_with("failed (")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_runners_are_recognized() {
        assert!(runs_tests("cd src && python manage.py test shop"));
        assert!(!runs_tests("python manage.py migrate"));
    }

    #[test]
    fn failures_are_found_in_summaries() {
        for output in [
            "==== 1 failed, 3 passed in 0.12s ====",
            "1 error in 0.10s",
            "FAILED (failures=1)",
            "===== tests finished: 2 passed, 1 failed, in 0.3 seconds =====",
        ] {
            assert!(shows_failure(output), "{output}");
        }
        for output in [
            "==== 3 passed in 0.12s ====",
            "OK",
            "0 failed, 2 passed",
            "failed to open",
        ] {
            assert!(!shows_failure(output), "{output}");
        }
    }
}
