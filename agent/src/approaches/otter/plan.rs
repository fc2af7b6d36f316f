//! The planner: decides what to read and where to write, and reflects until it is satisfied.

use testwright_agent_prompts::{CodeFile, OtterPlan, OtterReflect};

use super::localize::{Localized, strip_list_markers};
use super::repository::{FunctionName, Repository};
use super::{FOCAL, REFINEMENT, TESTS, VALIDATION};
use crate::agent::{Flow, Run};
use crate::approaches::Options;
use crate::approaches::stages::ask;
use crate::approaches::zero_shot_file::new_path;

/// Maximum number of reflections.
const REFLECTIONS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// Write a new test.
    Write,
    /// Modify an existing test.
    Modify,
}

/// The place of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Action {
    pub mode: WriteMode,
    pub name: FunctionName,
}

impl Action {
    /// Plans a new test in the best test file, or in a new file if none was localized.
    pub(super) fn new_test(localized: &Localized, repository: &Repository) -> Action {
        let of_tests = localized.tests.first().map(|test| &test.path);
        let path = of_tests.or_else(|| localized.test_files.first()).cloned();
        let paths = || repository.paths.iter().cloned().collect::<Vec<String>>();
        Action {
            mode: WriteMode::Write,
            name: FunctionName {
                path: path.unwrap_or_else(|| new_path(&paths())),
                function: String::new(),
            },
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub reads: Vec<FunctionName>,
    pub target: Option<Action>,
}

impl Plan {
    /// Creates the plan without a planner, which reads everything localized.
    pub(super) fn from_localized(localized: &Localized, options: &Options) -> Plan {
        let tests = (localized.tests.iter()).filter(|_| options.is_on(&TESTS));
        let focal = (localized.focal.iter()).filter(|_| options.is_on(&FOCAL));
        Plan {
            reads: focal.chain(tests).cloned().collect(),
            target: None,
        }
    }

    fn lines(&self) -> Vec<String> {
        let reads = self.reads.iter().map(|name| format!("read {name}"));
        let target = self.target.iter().map(|target| {
            let verb = match target.mode {
                WriteMode::Write => "write",
                WriteMode::Modify => "modify",
            };
            format!("{verb} {}", target.name)
        });
        reads.chain(target).collect()
    }

    fn code(&self, repository: &Repository) -> Vec<CodeFile> {
        let sources = self.reads.iter().filter_map(|name| repository.source(name));
        sources.collect()
    }
}

pub(super) async fn plan(
    run: &mut Run,
    repository: &Repository,
    localized: &Localized,
    options: &Options,
) -> Flow<Plan> {
    let question = OtterPlan {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
        code: Plan::from_localized(localized, options).code(repository),
    };
    let reply = ask(run, &question).await?;
    let (mut plan, mut invalid) = read(&reply, repository, options);
    run.stage("plan", plan.lines().join("; "))?;
    let reflections = match options.is_on(&REFINEMENT) {
        true => REFLECTIONS,
        false => 0,
    };
    for _ in 0..reflections {
        let question = OtterReflect {
            repository: run.source.name.clone(),
            issue: run.issue.folded_text(),
            valid: plan.lines(),
            invalid: std::mem::take(&mut invalid),
            code: plan.code(repository),
        };
        let reply = ask(run, &question).await?;
        let (improved, impossible) = read(&reply, repository, options);
        // A comment on the plan without actions leaves it as it is.
        if improved != Plan::default() {
            plan = improved;
        }
        invalid = impossible;
        let is_satisfied = is_satisfied(&reply);
        let how = match is_satisfied {
            true => "satisfied",
            false => "not satisfied",
        };
        run.stage("plan", format!("{how}: {}", plan.lines().join("; ")))?;
        if is_satisfied {
            break;
        }
    }
    Ok(plan)
}

/// Returns whether the plan is judged satisfactory, by the first of the three words.
fn is_satisfied(reply: &str) -> bool {
    let mut words = reply
        .split(|c: char| !c.is_alphabetic())
        .map(str::to_lowercase);
    let answer = words.find(|word| ["satisfied", "unsatisfied", "unsure"].contains(&word.as_str()));
    answer.as_deref() == Some("satisfied")
}

/// Returns the possible actions, and the lines of the impossible ones.
fn read(reply: &str, repository: &Repository, options: &Options) -> (Plan, Vec<String>) {
    let (mut plan, mut invalid) = (Plan::default(), Vec::new());
    for line in reply.lines() {
        let action = strip_list_markers(line);
        let Some((verb, name)) = action.split_once(' ') else {
            continue;
        };
        let Some((path, function)) = strip_list_markers(name).split_once("::") else {
            continue;
        };
        let name = FunctionName {
            path: path.to_owned(),
            function: function.replace("::", "."),
        };
        let is_there = repository.source(&name).is_some();
        // The gate accepts only tests.
        let is_test_file = repository.is_test_file(&name.path);
        let (mode, is_possible) = match verb.to_lowercase().as_str() {
            "read" => (None, is_there),
            "modify" => (Some(WriteMode::Modify), is_there && is_test_file),
            "write" => (Some(WriteMode::Write), is_test_file),
            _ => continue,
        };
        match mode {
            _ if !is_possible => {
                invalid.extend((options.is_on(&VALIDATION)).then(|| action.to_owned()));
            }
            Some(mode) => plan.target = Some(Action { mode, name }),
            None if !plan.reads.contains(&name) => plan.reads.push(name),
            None => {}
        }
    }
    (plan, invalid)
}

#[cfg(test)]
mod tests;
