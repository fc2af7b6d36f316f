//! LIBRO as SWT-bench ported it (§4.1): several samples of `zero-shot-plus`; those that cannot be carried out or do not
//! fail on the old code are dropped; the model says of each failure whether it is the issue's; of those that are, else of
//! all that are left, the shortest is handed in.

use async_trait::async_trait;
use testwright_agent_prompts::{LibroJudge, Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::stages::{Draft, SAMPLE_TEMPERATURE, SAMPLES, judge, retrieve, system_and_user, write};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Outcome, Run};
use crate::formats::function_blocks;

pub(super) struct Libro;

#[async_trait]
impl Approach for Libro {
    fn name(&self) -> &'static str {
        "libro"
    }

    fn description(&self) -> &'static str {
        "five samples, run; a judge of their failures; the shortest of the best"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Pipeline {
            stages: &["retrieve", "write", "run", "judge", "choose"],
            model_calls: "5, and one for each sample that fails",
            prompts: &[
                ZeroShotPlusSystem::NAME,
                ZeroShotTask::NAME,
                LibroJudge::NAME,
            ],
        }
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome {
        let outcome = stages(run, context.code_tokens()).await;
        outcome.unwrap_or_else(|outcome| outcome)
    }
}

/// A sample that fails on the old code.
struct FailingSample {
    draft: Draft,
    is_of_issue: bool,
}

async fn stages(run: &mut Run, code_tokens: usize) -> Result<Outcome, Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, code_tokens)?;
    let messages = system_and_user(&ZeroShotPlusSystem {}, &task)?;
    let mut failing: Vec<FailingSample> = Vec::new();
    for _ in 0..SAMPLES {
        let messages = messages.clone();
        let written = write(
            run,
            &tree,
            messages,
            Some(SAMPLE_TEMPERATURE),
            function_blocks::read,
        )
        .await?;
        let Ok(draft) = written else {
            continue;
        };
        let is_known =
            |sample: &&FailingSample| sample.draft.proposed.files == draft.proposed.files;
        if let Some(same) = failing.iter().find(is_known) {
            let is_of_issue = same.is_of_issue;
            failing.push(FailingSample { draft, is_of_issue });
            continue;
        }
        run.put_files(&draft.proposed.files).await?;
        let ran = run.run_changed_tests().await?;
        if ran.kind.is_none() {
            run.stage("run", "passes on the old code: dropped")?;
            continue;
        }
        let question = LibroJudge {
            issue: run.issue.folded_text(),
            test: draft.reply.trim().to_owned(),
            failure: ran.text,
        };
        let is_of_issue = judge(run, &question).await?.is_yes;
        failing.push(FailingSample { draft, is_of_issue });
    }
    let Some(chosen) = choose(&failing) else {
        return Ok(Outcome::Nothing {
            reason: format!("none of {SAMPLES} samples fails on the old code"),
        });
    };
    run.stage(
        "choose",
        format!("sample {} of {} that fail", chosen + 1, failing.len()),
    )?;
    failing[chosen].draft.hand_in(run).await
}

/// Of those that the judge prefers, else of all, the shortest; of equals the first.
fn choose(failing: &[FailingSample]) -> Option<usize> {
    let has_preferred = failing.iter().any(|sample| sample.is_of_issue);
    let length = |sample: &FailingSample| {
        let added = sample.draft.proposed.files.values().flatten();
        added.map(String::len).sum::<usize>()
    };
    let fit = failing
        .iter()
        .enumerate()
        .filter(|(_, sample)| sample.is_of_issue || !has_preferred);
    fit.min_by_key(|(_, sample)| length(sample))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::ProposedFiles;

    #[test]
    fn the_shortest_of_the_preferred_is_chosen() {
        let sample = |text: &str, is_of_issue| FailingSample {
            draft: Draft {
                proposed: ProposedFiles {
                    files: [("t.py".to_owned(), Some(text.to_owned()))].into(),
                    repairs: Vec::new(),
                },
                reply: String::new(),
            },
            is_of_issue,
        };
        let all = [
            sample("a", false),
            sample("abc", true),
            sample("ab", true),
            sample("cd", true),
        ];
        assert_eq!(choose(&all), Some(2));
        assert_eq!(choose(&all[..1]), Some(0));
        assert_eq!(choose(&[]), None);
    }
}
