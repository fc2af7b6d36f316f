//! Yes-or-no judgements by a model.

use testwright_agent_prompts::Prompt;

use super::write::ask;
use crate::agent::{Flow, Run};

/// The judgement of a model.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub is_yes: bool,
    /// Complete text of the reply.
    pub text: String,
}

pub(crate) async fn judge(run: &mut Run, question: &(impl Prompt + Sync)) -> Flow<Judgement> {
    let text = ask(run, question).await?;
    let is_yes = says_yes(&text);
    run.stage("judge", text.trim().lines().next().unwrap_or_default())?;
    Ok(Judgement { is_yes, text })
}

/// Returns whether the first "yes" or "no" in a reply is "yes".
fn says_yes(reply: &str) -> bool {
    let mut words = reply.split(|c: char| !c.is_alphabetic());
    let answer =
        words.find(|word| word.eq_ignore_ascii_case("yes") || word.eq_ignore_ascii_case("no"));
    answer.is_some_and(|word| word.eq_ignore_ascii_case("yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_decides() {
        for (reply, yes) in [
            ("YES\nIt is.", true),
            ("**Yes**, it does", true),
            ("No. Yes would be wrong.", false),
            ("Answer: yes", true),
            ("It cannot be said.", false),
        ] {
            assert_eq!(says_yes(reply), yes, "{reply}");
        }
    }
}
