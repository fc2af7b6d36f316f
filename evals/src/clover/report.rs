//! The report on systems in a benchmark: rates by task and context as in the paper (tables 3 to 6), the effect of
//! contexts, and the classes of answers.

mod page;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::answer::Form;
use super::evaluation::{AnswerClass, AnswerKey, Grade};
use super::problem::{Budget, Task};
use crate::document::{Section, markdown};
use crate::statistics::{PairedComparison, Rate, bootstrap_of};

pub use page::page;
pub use tables::{costs, figures, system_name};

/// Title of the report.
pub const TITLE: &str = "CLOVER";

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CloverReport {
    /// Facts about the benchmark and the machine.
    pub facts: Vec<(String, String)>,
    /// Results by task, form, system and context.
    pub rows: Vec<Row>,
    /// Effect of contexts on each system.
    pub utilisation: Vec<Utilisation>,
    /// Pairwise comparisons of systems.
    pub pairs: Vec<SystemPair>,
}

/// Results of one system on one task with one context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Approach and model, as `APPROACH@MODEL`.
    pub system: String,
    /// Task of the problems.
    pub task: Task,
    /// Requested form of the answers.
    pub form: Form,
    /// Token budget of the questions.
    pub budget: Budget,
    /// Task I: exact match (EM).
    pub exact: Rate,
    /// Task I: execution rate (ER); otherwise the share of tests that run and pass.
    pub executed: Rate,
    /// Task I: refined execution rate (RER); otherwise the success rate.
    pub success: Rate,
    /// Number of answers by kind.
    pub classes: BTreeMap<AnswerClass, u64>,
    /// Mean cost; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MeanCost>,
}

/// The cost of one answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnswerCost {
    /// Number of model calls.
    pub calls: u32,
    /// Tokens of prompts and replies together.
    pub tokens: u64,
    /// Cost in US dollars; `None` if the model has no price.
    pub dollars: Option<f64>,
}

/// The mean cost of answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeanCost {
    /// Number of answers that the means are over.
    pub answers: u64,
    /// Mean number of model calls.
    pub calls: f64,
    /// Mean number of tokens, of prompts and replies together.
    pub tokens: f64,
    /// Mean cost in US dollars; `None` if a model has no price.
    pub dollars: Option<f64>,
}

impl MeanCost {
    fn from_costs(costs: &[AnswerCost]) -> Option<MeanCost> {
        let mean = |sum: f64| sum / costs.len() as f64;
        let dollars: Option<f64> = costs.iter().map(|cost| cost.dollars).sum();
        (!costs.is_empty()).then(|| MeanCost {
            answers: costs.len() as u64,
            calls: mean(costs.iter().map(|cost| f64::from(cost.calls)).sum()),
            tokens: mean(costs.iter().map(|cost| cost.tokens as f64).sum()),
            dollars: dollars.map(mean),
        })
    }
}

/// Change of a system's rate (RER, success) due to contexts, as shares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Approach and model, as `APPROACH@MODEL`.
    pub system: String,
    /// Task of the problems.
    pub task: Task,
    /// Requested form of the answers.
    pub form: Form,
    /// Number of problems that were asked without context and with every context.
    pub problems: u64,
    /// Best context rate, minus the rate without context.
    pub maximum: f64,
    /// Worst context rate, minus the rate without context.
    pub minimum: f64,
    /// Bootstrap interval of `most` over problems, 95 %.
    pub maximum_interval: Option<[f64; 2]>,
    /// Bootstrap interval of `least` over problems, 95 %.
    pub minimum_interval: Option<[f64; 2]>,
}

/// Comparison of two systems on the same problems with the same context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemPair {
    /// Task of the problems.
    pub task: Task,
    /// Token budget of the questions.
    pub budget: Budget,
    /// Name of the first system.
    pub first: String,
    /// Name of the second system.
    pub second: String,
    /// Paired successes, with McNemar's test.
    pub compared: PairedComparison,
    /// Interval of the difference: bootstrap over problems, 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

type Key = (String, Task, Form);

impl CloverReport {
    /// Computes the report from the grades, the known costs of answers, and facts to show at its top. Of several grades
    /// of the same answer, the last one counts.
    pub fn from_grades(
        judgements: &[Grade],
        costs: &BTreeMap<AnswerKey, AnswerCost>,
        facts: Vec<(String, String)>,
    ) -> CloverReport {
        let by_key = judgements.iter().map(|grade| (grade.key(), grade));
        let by_key: BTreeMap<AnswerKey, &Grade> = by_key.collect();
        let judgements: Vec<&Grade> = by_key.into_values().collect();
        let mut groups: BTreeMap<(Task, Form, String, Budget), Vec<&Grade>> = BTreeMap::new();
        for &judgement in &judgements {
            let key = (
                judgement.task,
                judgement.form,
                judgement.system.clone(),
                judgement.budget,
            );
            groups.entry(key).or_default().push(judgement);
        }
        let rows = groups
            .iter()
            .map(|((task, form, system, budget), all)| {
                let rate = |holds: fn(&Grade) -> bool| {
                    Rate::new(all.iter().filter(|j| holds(j)).count(), all.len())
                };
                let mut classes: BTreeMap<AnswerClass, u64> = BTreeMap::new();
                for judgement in all {
                    *classes.entry(judgement.class).or_default() += 1;
                }
                let costs = all.iter().filter_map(|j| costs.get(&j.key()).copied());
                let costs: Vec<AnswerCost> = costs.collect();
                Row {
                    cost: MeanCost::from_costs(&costs),
                    system: system.clone(),
                    task: *task,
                    form: *form,
                    budget: *budget,
                    exact: rate(|j| j.exact),
                    executed: rate(|j| j.executed),
                    success: rate(|j| j.success),
                    classes,
                }
            })
            .collect();
        CloverReport {
            facts,
            rows,
            utilisation: utilisation(&judgements),
            pairs: pairs(&judgements),
        }
    }

    /// Returns the sections of the report, for any output format.
    pub fn sections(&self) -> Vec<Section> {
        tables::sections(self)
    }

    /// Returns the report as Markdown. `full_file` names the file that contains the tables in full.
    pub fn markdown(&self, full_file: &str) -> String {
        markdown(TITLE, &self.facts, &self.sections(), full_file)
    }

    /// Returns the names of the systems, with the form of their answers, in alphabetical order.
    pub fn systems(&self) -> Vec<String> {
        let names = self.rows.iter();
        let names = names.map(|row| system_name(&row.system, row.form));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Groups success by problem and context.
fn by_problem<'g>(
    judgements: &[&'g Grade],
) -> BTreeMap<Key, BTreeMap<&'g str, BTreeMap<Budget, bool>>> {
    let mut groups: BTreeMap<Key, BTreeMap<&'g str, BTreeMap<Budget, bool>>> = BTreeMap::new();
    for &judgement in judgements {
        let key = (judgement.system.clone(), judgement.task, judgement.form);
        let problem = groups.entry(key).or_default().entry(&judgement.problem);
        problem
            .or_default()
            .insert(judgement.budget, judgement.success);
    }
    groups
}

fn utilisation(judgements: &[&Grade]) -> Vec<Utilisation> {
    let of_key =
        |((system, task, form), problems): (Key, BTreeMap<&str, BTreeMap<Budget, bool>>)| {
            let budgets: BTreeSet<Budget> = problems
                .values()
                .flat_map(BTreeMap::keys)
                .copied()
                .collect();
            let contexts: Vec<Budget> = budgets
                .iter()
                .copied()
                .filter(|b| b.tokens().is_some())
                .collect();
            if contexts.is_empty() || !budgets.contains(&Budget::ProblemOnly) {
                return None;
            }
            // Only problems with all contexts are counted, since rates over different problems are not comparable.
            let complete_problems: Vec<&BTreeMap<Budget, bool>> = problems
                .values()
                .filter(|of| of.len() == budgets.len())
                .collect();
            if complete_problems.is_empty() {
                return None;
            }
            let gain = |drawn: &[usize], choose: fn(f64, f64) -> f64, from: f64| {
                let rate = |budget: Budget| {
                    let solved = drawn
                        .iter()
                        .filter(|at| complete_problems[**at].get(&budget) == Some(&true));
                    solved.count() as f64 / drawn.len() as f64
                };
                let chosen = contexts
                    .iter()
                    .map(|budget| rate(*budget))
                    .fold(from, choose);
                chosen - rate(Budget::ProblemOnly)
            };
            let most = |drawn: &[usize]| gain(drawn, f64::max, f64::MIN);
            let least = |drawn: &[usize]| gain(drawn, f64::min, f64::MAX);
            let all: Vec<usize> = (0..complete_problems.len()).collect();
            Some(Utilisation {
                system,
                task,
                form,
                problems: complete_problems.len() as u64,
                maximum: most(&all),
                minimum: least(&all),
                maximum_interval: bootstrap_of(complete_problems.len(), most),
                minimum_interval: bootstrap_of(complete_problems.len(), least),
            })
        };
    by_problem(judgements)
        .into_iter()
        .filter_map(of_key)
        .collect()
}

fn pairs(judgements: &[&Grade]) -> Vec<SystemPair> {
    let mut solved: BTreeMap<(Task, Budget, String), BTreeMap<&str, bool>> = BTreeMap::new();
    for judgement in judgements {
        let system = system_name(&judgement.system, judgement.form);
        let key = (judgement.task, judgement.budget, system);
        let problems = solved.entry(key).or_default();
        problems.insert(&judgement.problem, judgement.success);
    }
    let mut pairs = Vec::new();
    for ((task, budget, first), of_first) in &solved {
        let others = solved
            .iter()
            .filter(|((t, b, second), _)| t == task && b == budget && second > first);
        for ((_, _, second), of_second) in others {
            let both = of_first
                .iter()
                .filter_map(|(problem, one)| Some((*one, *of_second.get(problem)?)));
            let both: Vec<(bool, bool)> = both.collect();
            pairs.push(SystemPair {
                task: *task,
                budget: *budget,
                first: first.clone(),
                second: second.clone(),
                interval: bootstrap_of(both.len(), |drawn| difference(&both, drawn)),
                compared: PairedComparison::from_pairs(both),
            });
        }
    }
    pairs
}

/// Returns the rate of the first system minus that of the second.
fn difference(both: &[(bool, bool)], drawn: &[usize]) -> f64 {
    let points = drawn
        .iter()
        .filter_map(|at| both.get(*at))
        .map(|(first, second)| f64::from(*first) - f64::from(*second));
    points.sum::<f64>() / drawn.len() as f64
}

#[cfg(test)]
mod tests;
