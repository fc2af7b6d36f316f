//! A single call in which a model writes changes of files.

use testwright_agent_prompts::Prompt;
use testwright_sandboxes::repository::Tree;

use crate::agent::{ChangedTests, FailureKind, Flow, Outcome, Run};
use crate::formats::{FormatError, OldFiles, ProposedFiles};
use testwright_models::Message;

/// Number of samples of a method that chooses among several (SWT-bench §5.1).
pub(crate) const SAMPLES: usize = 5;
pub(crate) const SAMPLE_TEMPERATURE: f64 = 0.7;

/// Parses a reply, given the old files.
pub(crate) type ReplyFormat = fn(&str, &dyn OldFiles) -> Result<ProposedFiles, FormatError>;

/// A model's reply that could be read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub proposed: ProposedFiles,
    pub reply: String,
}

impl Draft {
    /// Runs the tests on the old code.
    pub(crate) async fn run_on_old_code(&self, run: &mut Run) -> Flow<ChangedTests> {
        run.write_files(&self.proposed.files).await?;
        run.run_changed_tests().await
    }

    /// Runs the tests on the old code. Returns the kind of their failure and the result; `None` if none fails, so that
    /// the draft is dropped.
    pub(crate) async fn failure(&self, run: &mut Run) -> Flow<Option<(FailureKind, String)>> {
        let ran = self.run_on_old_code(run).await?;
        if ran.kind.is_none() {
            run.stage("run", "passes on the old code: dropped")?;
        }
        Ok(ran.kind.map(|kind| (kind, ran.text)))
    }

    /// Puts the files into the workspace and submits them.
    pub(crate) async fn hand_in(&self, run: &mut Run) -> Flow<Outcome> {
        run.write_files(&self.proposed.files).await?;
        run.submit_tests().await
    }
}

/// A reply that cannot be read or applied.
#[derive(Debug)]
pub(crate) struct UnusableReply {
    pub reply: String,
    pub error: FormatError,
}

/// Asks the model once. Returns its draft, or why the reply cannot be used; both are recorded.
pub(crate) async fn write(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
    temperature: f64,
    format: ReplyFormat,
) -> Flow<Result<Draft, UnusableReply>> {
    let reply = run.prompt_reply(messages, temperature).await?.content;
    let read = format(&reply, tree);
    let result = match &read {
        Ok(proposed) => {
            let paths: Vec<&str> = proposed.files.keys().map(String::as_str).collect();
            let mut result = format!("changes {}", paths.join(", "));
            for repair in &proposed.repairs {
                result.push_str(&format!("; repaired: {repair}"));
            }
            result
        }
        Err(why) => format!("the reply cannot be used: {why}"),
    };
    run.stage("write", result)?;
    Ok(match read {
        Ok(proposed) => Ok(Draft { proposed, reply }),
        Err(error) => Err(UnusableReply { reply, error }),
    })
}

/// Asks the model once and submits the result.
pub(crate) async fn write_and_hand_in(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
    temperature: f64,
    format: ReplyFormat,
) -> Flow<Outcome> {
    match write(run, tree, messages, temperature, format).await? {
        Ok(draft) => draft.hand_in(run).await,
        Err(why) => Ok(Outcome::nothing(format!(
            "the model's reply cannot be used: {}",
            why.error
        ))),
    }
}

/// Returns the two messages. The part shared by all calls comes first, so that the provider can cache it.
pub(crate) fn system_and_user(
    system: &(impl Prompt + Sync),
    user: &(impl Prompt + Sync),
) -> Flow<Vec<Message>> {
    let content = system.render()?;
    Ok(vec![Message::System { content }, user_message(user)?])
}

/// Returns a prompt as a message of the user.
pub(crate) fn user_message(text: &(impl Prompt + Sync)) -> Flow<Message> {
    let content = text.render()?;
    Ok(Message::User { content })
}

/// Asks the model in a call with a context of its own, with greedy decoding.
pub(crate) async fn ask(run: &mut Run, question: &(impl Prompt + Sync)) -> Flow<String> {
    let messages = vec![user_message(question)?];
    Ok(run.prompt_reply(messages, 0.0).await?.content)
}
