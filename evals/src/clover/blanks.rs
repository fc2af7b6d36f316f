//! Task I: the assertions of a test, each operand of which can be the blank. Everything after the assertion is removed,
//! so it becomes the test's last line.

use std::collections::{BTreeMap, BTreeSet};

use testwright_tools::python::{
    Assertion, Comparison, Module, SingleTest, all_assertions, assertions,
};

use super::extract::IsolatedTest;
use super::problem::Question;
use super::rejections::{Counts, DropReason};

/// Rarity limit: a reference is excluded if it makes up more than 1/`COMMON` of a repository's references.
const COMMON: usize = 100;

/// An operand that may be the blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blank {
    /// Path of the test file.
    pub path: String,
    /// The test as `Class::function`.
    pub test: String,
    /// Index of the assertion in the test and of the operand in the assertion, both from 0.
    pub place: (usize, usize),
    /// The test file, without the assertion and everything after it in the test.
    pub text: SingleTest,
    /// The question about the operand, a [`Question::Assertion`].
    pub question: Question,
}

impl Blank {
    /// Returns the name of the assertion, which all of its operands share.
    pub fn assertion_name(&self) -> String {
        format!("{}::{}#{}", self.path, self.test, self.place.0)
    }

    /// Returns the name of the blank: that of its assertion and the index of the operand.
    pub fn name(&self) -> String {
        format!("{}.{}", self.assertion_name(), self.place.1)
    }

    /// Returns the operand that the original test has in place of the blank.
    pub fn reference(&self) -> &str {
        match &self.question {
            Question::Assertion { reference, .. } => reference,
            _ => "",
        }
    }
}

/// Returns the blanks of one test.
pub fn blanks(test: &IsolatedTest, counts: &mut Counts) -> Vec<Blank> {
    let text = test.text.text();
    let start = test.text.before.len() + test.text.header.len();
    let stretch = test.text.before.len()..start + test.text.body.len();
    let module = Module::parse(text.clone());
    let body_until = |end: usize| text.get(start..end).unwrap_or_default();
    let mut blanks = Vec::new();
    for (at, assertion) in assertions(&module, &stretch).iter().enumerate() {
        let operands = assertion.comparison.operands();
        counts.found += operands.len().max(1);
        if let Some(why) = rejection_reason(assertion, &text) {
            (0..operands.len().max(1)).for_each(|_| counts.drop(why));
            continue;
        }
        for (side, operand) in operands.iter().enumerate() {
            let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default().to_owned();
            let question = Question::Assertion {
                prefix: part(assertion.bytes.start, operand.bytes.start),
                reference: part(operand.bytes.start, operand.bytes.end),
                suffix: part(operand.bytes.end, assertion.bytes.end),
            };
            blanks.push(Blank {
                path: test.path.clone(),
                test: test.id.clone(),
                place: (at, side),
                text: SingleTest {
                    body: body_until(assertion.bytes.start).to_owned(),
                    ..test.text.clone()
                },
                question,
            });
        }
    }
    blanks
}

/// Returns why an assertion cannot become a problem.
fn rejection_reason(assertion: &Assertion, text: &str) -> Option<DropReason> {
    if assertion.is_nested {
        return Some(DropReason::NestedAssertion);
    }
    if assertion.comparison == Comparison::Chain {
        return Some(DropReason::ChainedComparison);
    }
    if trivial(&assertion.comparison).is_some() {
        return Some(DropReason::TrivialAssertion);
    }
    let own = text.get(assertion.bytes.clone()).unwrap_or_default();
    let above = text.get(..assertion.bytes.start).unwrap_or_default();
    is_copied(own, above).then_some(DropReason::InContext)
}

/// Returns why a comparison says nothing about the code under test, or `None` if it is not trivial.
pub fn trivial(comparison: &Comparison) -> Option<&'static str> {
    match comparison {
        Comparison::Unary { operand, .. } => operand
            .is_constant
            .then_some("the assertion checks a constant"),
        Comparison::Binary { left, right, .. } if left.is_constant && right.is_constant => {
            Some("both sides of the assertion are constants")
        }
        Comparison::Binary {
            left,
            operator,
            right,
        } if matches!(operator.as_str(), "==" | "is") && left.tokens == right.tokens => {
            Some("both sides of the assertion are the same")
        }
        _ => None,
    }
}

/// Returns whether a text contains the same assertion, ignoring messages.
pub fn is_copied(assertion: &str, text: &str) -> bool {
    let own = all_assertions(assertion);
    own.first()
        .is_some_and(|own| all_assertions(text).contains(own))
}

/// Removes references that are too common in the repository.
pub fn without_common(blanks: Vec<Blank>, counts: &mut Counts) -> Vec<Blank> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for blank in &blanks {
        *times.entry(normal(blank.reference())).or_default() += 1;
    }
    let all = blanks.len();
    let common: BTreeSet<String> = times
        .into_iter()
        // A single occurrence is not a pattern, even among fewer than 100 references.
        .filter(|(_, times)| *times > 1 && times * COMMON > all)
        .map(|(reference, _)| reference)
        .collect();
    let (out, remaining_blanks): (Vec<Blank>, Vec<Blank>) = blanks
        .into_iter()
        .partition(|blank| common.contains(&normal(blank.reference())));
    out.iter()
        .for_each(|_| counts.drop(DropReason::CommonReference));
    remaining_blanks
}

fn normal(reference: &str) -> String {
    reference.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
