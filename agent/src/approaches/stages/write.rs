//! One call in which a model writes a change of files.

use testwright_agent_prompts::Prompt;
use testwright_sandboxes::repository::Tree;

use crate::agent::{Flow, Outcome, Run, prompt};
use crate::formats::{FormatError, OldFiles, ProposedFiles};
use testwright_models::Message;

/// Samples of a method that chooses among several, and how they are decoded (SWT-bench §5.1).
pub const SAMPLES: usize = 5;
pub const SAMPLE_TEMPERATURE: f64 = 0.7;

/// Reads a reply, given the old files.
pub type ReplyFormat = fn(&str, &dyn OldFiles) -> Result<ProposedFiles, FormatError>;

/// What a model wrote, where it could be read.
#[derive(Debug)]
pub struct Draft {
    pub proposed: ProposedFiles,
    pub reply: String,
}

impl Draft {
    /// Puts its files into the workspace, and hands them in.
    pub async fn hand_in(&self, run: &mut Run) -> Flow<Outcome> {
        run.put_files(&self.proposed.files).await?;
        run.hand_in().await
    }
}

/// A reply that cannot be read or carried out.
#[derive(Debug)]
pub struct UnusableReply {
    pub reply: String,
    pub error: FormatError,
}

/// What a model wrote, or why it cannot be used; either is on record.
pub async fn write(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
    temperature: Option<f64>,
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

/// Asks once, and hands in what comes back.
pub async fn write_and_hand_in(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
    temperature: f64,
    format: ReplyFormat,
) -> Flow<Outcome> {
    match write(run, tree, messages, Some(temperature), format).await? {
        Ok(draft) => draft.hand_in(run).await,
        Err(why) => Ok(Outcome::Nothing {
            reason: format!("the model's reply cannot be used: {}", why.error),
        }),
    }
}

/// What does not differ between calls stands first, for the providers' caches.
pub fn system_and_user(
    system: &(impl Prompt + Sync),
    user: &(impl Prompt + Sync),
) -> Flow<Vec<Message>> {
    Ok(vec![
        Message::System {
            content: prompt(system.render())?,
        },
        Message::User {
            content: prompt(user.render())?,
        },
    ])
}
