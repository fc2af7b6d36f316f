//! The plan of an evaluation: every problem of the chosen tasks, with every chosen context, model and approach.

use std::path::Path;

use serde::{Deserialize, Serialize};
use testwright_evals::clover::answer::Form;
use testwright_evals::clover::folder::Benchmark;
use testwright_evals::clover::problem::sha256;
use testwright_evals::clover::{Budget, Problem, Task};
use testwright_evals::folder::{Versioned, json_lines};

use super::PLAN;
use super::prompts::forms;
use crate::record_file::{read_document, write_file};
use testwright_agent::approaches::COVER;
use testwright_config::error::{Error, Result};

/// Name of the approach that calls a model once and uses its reply.
pub const SINGLE_CALL: &str = "single-call";

/// Content of `clover.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Version that made the contexts, [`testwright_evals::clover::VERSION`]; empty if it was not recorded.
    #[serde(default)]
    pub version: String,
    /// Hash of all problems.
    pub problems_sha256: String,
    /// Models to ask, as named in the settings.
    pub models: Vec<String>,
    /// [`SINGLE_CALL`], and names of agents.
    #[serde(default = "single_call")]
    pub approaches: Vec<String>,
    /// Chosen tasks.
    pub tasks: Vec<Task>,
    /// Chosen contexts, as token budgets.
    pub budgets: Vec<Budget>,
    /// Whether answers are operands and completions, in place of assertions and files.
    pub part: bool,
    /// Maximum problems per task.
    pub limit: Option<usize>,
}

fn single_call() -> Vec<String> {
    vec![SINGLE_CALL.to_owned()]
}

/// One question to one model, by a single call or through an agent.
#[derive(Debug, Clone, Copy)]
pub struct ModelQuestion<'p> {
    /// The problem to solve.
    pub problem: &'p Problem,
    /// [`SINGLE_CALL`] or the name of an agent.
    pub approach: &'p str,
    /// The model to ask, as named in the settings.
    pub model: &'p str,
    /// Token budget: for prompt and answer of a single call, for all calls of an agent.
    pub budget: Budget,
    /// Requested form of the answer.
    pub form: Form,
}

/// Returns the name of an approach with a model, as used in reports and comparisons.
pub fn system_name(approach: &str, model: &str) -> String {
    format!("{approach}@{model}")
}

impl ModelQuestion<'_> {
    /// Returns whether an agent asks the question, with several calls to the model.
    pub fn is_for_agent(&self) -> bool {
        self.approach != SINGLE_CALL
    }

    /// Returns the name of the approach with the model; see [`system_name`].
    pub fn system(&self) -> String {
        system_name(self.approach, self.model)
    }
}

/// Checks that the approaches support these tasks.
///
/// # Errors
///
/// Fails if an approach is unknown, or does not support one of the tasks.
pub fn check_approaches(approaches: &[String], tasks: &[Task]) -> Result<()> {
    for name in approaches.iter().filter(|name| *name != SINGLE_CALL) {
        if name != COVER.name {
            return Err(
                Error::usage(format!("use the approach `{name}`")).cause(format!(
                    "the approaches are {SINGLE_CALL} and {}; separate them with a comma to use both",
                    COVER.name
                )),
            );
        }
        if tasks.iter().any(|task| *task != Task::Blocks) {
            return Err(Error::usage(format!("use the agent `{name}`"))
                .cause("it writes tests for given lines, so it only supports task 3")
                .hint("add --tasks 3"));
        }
    }
    Ok(())
}

impl Plan {
    /// Returns the hash of a benchmark's problems.
    ///
    /// # Errors
    ///
    /// Fails if the problems cannot be serialized.
    pub fn hash(benchmark: &Benchmark) -> Result<String> {
        let lines = json_lines(&benchmark.problems);
        let lines =
            lines.map_err(|error| Error::infrastructure("hash the problems").cause(error))?;
        Ok(sha256(&String::from_utf8_lossy(&lines)))
    }

    /// Returns all questions, those with small budgets first.
    pub fn asks<'p>(&'p self, benchmark: &'p Benchmark) -> Vec<ModelQuestion<'p>> {
        let mut asks = Vec::new();
        for budget in &self.budgets {
            for task in &self.tasks {
                let of_task = benchmark.problems.iter().filter(|p| p.task == *task);
                let problems = of_task.take(self.limit.unwrap_or(usize::MAX));
                for problem in problems.filter(|p| p.budgets.contains(budget)) {
                    let systems = self.approaches.iter().flat_map(|approach| {
                        self.models.iter().map(move |model| (approach, model))
                    });
                    asks.extend(systems.map(|(approach, model)| ModelQuestion {
                        problem,
                        approach,
                        model,
                        budget: *budget,
                        form: self.form(approach, *task),
                    }));
                }
            }
        }
        asks
    }

    /// Returns the form of the answer; an agent always leaves a whole file.
    fn form(&self, approach: &str, task: Task) -> Form {
        forms(task)[usize::from(self.part && approach == SINGLE_CALL)]
    }

    /// Returns what the questions of another plan have that these lack; `None` if their answers may be combined.
    pub fn difference(&self, other: &Plan) -> Option<&'static str> {
        if other.problems_sha256 != self.problems_sha256 {
            return Some("other problems");
        }
        (other.version != self.version).then_some("contexts of another version of testwright")
    }

    /// Writes the plan to the folder of results. Questions may be added to an existing evaluation, but its problems
    /// and the version must match.
    ///
    /// # Errors
    ///
    /// Fails if the folder contains answers to other problems or contexts, or cannot be read or written.
    pub fn write(&self, out: &Path) -> Result<()> {
        if let Some(before) = Plan::read(out)?
            && let Some(what) = self.difference(&before)
        {
            return Err(Error::usage(format!("resume in {}", out.display()))
                .cause(format!("the folder contains answers to {what}"))
                .hint("use another folder with --out"));
        }
        let text = serde_json::to_vec_pretty(&Versioned::new(self))
            .map_err(|error| Error::infrastructure("encode the plan").cause(error))?;
        write_file(&out.join(PLAN), &text)
    }

    /// Reads the plan of a folder; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is not a valid plan.
    pub fn read(folder: &Path) -> Result<Option<Plan>> {
        read_document(&folder.join(PLAN), None)
    }
}

#[cfg(test)]
mod tests;
