//! Builds the test file to run from the code of an answer.

use serde::{Deserialize, Serialize};
use testwright_tools::python::edit::reindented;
use testwright_tools::python::{Assertion, Comparison, Module, Operand, assertions, flatten};

use super::forbidden_names::forbidden;
use super::problem::{Problem, Question};

/// The form in which an answer is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Task I: only the content of the blank.
    Operand,
    /// Task I: the assertion with its blank filled in.
    Assertion,
    /// Tasks II and III: the test file.
    Full,
    /// Tasks II and III: the statements of the test.
    Part,
}

/// An answer that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnableAnswer {
    /// The whole test file.
    pub source: String,
    /// The filled blank (task I only).
    pub filled: Option<Filled>,
}

/// A filled blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The assertion with its blank filled in, as it is run.
    pub assertion: String,
    /// The condition of that assertion.
    pub comparison: Comparison,
    /// Whether the answer equals the reference.
    pub is_exact: bool,
}

/// An answer that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectedAnswer {
    /// The answer is not Python, or does not address the question.
    Gibberish(String),
    /// The answer does not do what was asked, or does more, for this reason.
    Refused(String),
}

/// Parses the code of an answer.
///
/// # Errors
///
/// Fails if the answer is not Python, or does not do what was asked.
pub fn read(problem: &Problem, form: Form, code: &str) -> Result<RunnableAnswer, RejectedAnswer> {
    if code.trim().is_empty() {
        return Err(gibberish("the answer is empty"));
    }
    let usable = match &problem.question {
        Question::Assertion {
            prefix,
            reference,
            suffix,
        } => fill(problem, form, code, [prefix, reference, suffix])?,
        _ => test_file(problem, form, code)?,
    };
    match forbidden(&usable.source, &problem.golden()) {
        None => Ok(usable),
        Some(name) => Err(RejectedAnswer::Refused(format!(
            "the answer uses `{name}`, which can measure or end the run"
        ))),
    }
}

fn fill(
    problem: &Problem,
    form: Form,
    code: &str,
    [prefix, reference, suffix]: [&str; 3],
) -> Result<RunnableAnswer, RejectedAnswer> {
    let (_, golden) = one_assertion(&format!("{prefix}{reference}{suffix}"))
        .ok_or_else(|| RejectedAnswer::Refused("the golden assertion does not parse".to_owned()))?;
    let side = golden
        .comparison
        .operands()
        .iter()
        .position(|operand| operand.bytes.start == prefix.len());
    let frame = AssertionFrame {
        golden: &golden,
        side: side.unwrap_or_default(),
    };
    let code = reindented(code.trim_matches('\n').trim_end(), "");
    let operand = match form {
        Form::Operand => frame.operand_alone(&code, prefix, suffix),
        _ => frame.operand_of(&code),
    }?;
    let mut assertion = format!("{prefix}{operand}{suffix}");
    // A multi-line operand may have relied on brackets around it, so add them.
    if operand.contains('\n') && operand != reference {
        assertion = format!("{prefix}({operand}){suffix}");
    }
    let Some((_, read)) = one_assertion(&assertion).filter(|(_, read)| frame.fits(read)) else {
        return Err(wrong_assertion());
    };
    let is_exact = frame.is_exact(&read);
    Ok(RunnableAnswer {
        source: problem
            .text
            .with_body(&format!("{}{assertion}\n", problem.text.body)),
        filled: Some(Filled {
            assertion,
            comparison: read.comparison,
            is_exact,
        }),
    })
}

fn gibberish(reason: &str) -> RejectedAnswer {
    RejectedAnswer::Gibberish(reason.to_owned())
}

fn wrong_assertion() -> RejectedAnswer {
    RejectedAnswer::Refused("the assertion is not the requested one".to_owned())
}

/// Parses a text that consists of exactly one assertion.
fn one_assertion(text: &str) -> Option<(Module, Assertion)> {
    let module = Module::parse(text);
    let mut candidates = assertions(&module, &(0..text.len()));
    let is_alone = module.errors().is_empty() && module.root().named_child_count() == 1;
    (is_alone && candidates.len() == 1).then(|| (module, candidates.remove(0)))
}

/// The requested assertion, and which of its operands is the blank.
struct AssertionFrame<'g> {
    golden: &'g Assertion,
    side: usize,
}

impl AssertionFrame<'_> {
    /// Returns whether everything but the blank is unchanged.
    fn fits(&self, other: &Assertion) -> bool {
        let is_same = match (&self.golden.comparison, &other.comparison) {
            (
                golden @ Comparison::Binary { operator, .. },
                other @ Comparison::Binary {
                    operator: other_operator,
                    ..
                },
            ) => {
                let rest = 1 - self.side;
                let is_same = golden.operands()[rest].tokens == other.operands()[rest].tokens;
                operator == other_operator && is_same
            }
            (Comparison::Unary { negated: true, .. }, Comparison::Unary { negated, .. }) => {
                *negated
            }
            // Any condition fits if the blank is the whole condition.
            (Comparison::Unary { negated: false, .. }, _) => true,
            _ => false,
        };
        is_same && self.golden.message == other.message
    }

    /// Returns whether the blank has the same content, ignoring brackets and quotes.
    fn is_exact(&self, other: &Assertion) -> bool {
        let is_same_kind = match (&self.golden.comparison, &other.comparison) {
            (Comparison::Unary { negated, .. }, Comparison::Unary { negated: other, .. }) => {
                negated == other
            }
            (Comparison::Binary { .. }, Comparison::Binary { .. }) => true,
            _ => false,
        };
        let golden = self.operand(&self.golden.comparison);
        let answer_operand = self.operand(&other.comparison);
        is_same_kind
            && golden.map(|operand| &operand.tokens)
                == answer_operand.map(|operand| &operand.tokens)
    }

    fn operand<'o>(&self, comparison: &'o Comparison) -> Option<&'o Operand> {
        comparison.operands().get(self.side).copied()
    }

    /// Returns the blank's text in an assertion.
    fn text<'t>(&self, assertion: &Assertion, source: &'t str) -> Option<&'t str> {
        let is_condition = matches!(
            self.golden.comparison,
            Comparison::Unary { negated: false, .. }
        );
        if is_condition {
            return source.get(condition(assertion, source)?);
        }
        source.get(self.operand(&assertion.comparison)?.bytes.clone())
    }

    fn operand_alone(
        &self,
        code: &str,
        prefix: &str,
        suffix: &str,
    ) -> Result<String, RejectedAnswer> {
        let code = code.trim().trim_matches('`').trim();
        let (mut text, mut read) = (
            code.to_owned(),
            one_assertion(&format!("{prefix}{code}{suffix}")),
        );
        if read.is_none() && code.contains('\n') {
            text = format!("({code})");
            read = one_assertion(&format!("{prefix}{text}{suffix}"));
        }
        match read {
            Some((_, read)) if self.fits(&read) => Ok(text),
            None if !Module::parse(code).errors().is_empty() => {
                Err(gibberish("the answer is not a Python expression"))
            }
            _ => Err(wrong_assertion()),
        }
    }

    /// Returns the blank's text from the last assertion in the code that fits.
    fn operand_of(&self, code: &str) -> Result<String, RejectedAnswer> {
        let module = Module::parse(code);
        let candidates = assertions(&module, &(0..code.len()));
        let fitting = candidates
            .iter()
            .rev()
            .find(|assertion| self.fits(assertion));
        if let Some(text) = fitting.and_then(|assertion| self.text(assertion, code)) {
            return Ok(text.trim().to_owned());
        }
        match candidates.is_empty() {
            true => Err(gibberish("the answer has no assertion")),
            false => Err(wrong_assertion()),
        }
    }
}

/// Returns the range of an assertion's condition: after `assert`, up to the message.
fn condition(assertion: &Assertion, source: &str) -> Option<std::ops::Range<usize>> {
    let operands = assertion.comparison.operands();
    match (&assertion.comparison, operands.as_slice()) {
        (Comparison::Unary { negated: false, .. }, [operand]) => Some(operand.bytes.clone()),
        _ if assertion.message.is_empty() => {
            let start = assertion.bytes.start + "assert".len();
            Some(start..assertion.bytes.end)
        }
        // The condition ends with the last operand and any closing brackets.
        (_, [.., last]) => {
            let end = source.get(last.bytes.end..assertion.bytes.end)?.find(',')?;
            Some(assertion.bytes.start + "assert".len()..last.bytes.end + end)
        }
        _ => None,
    }
}

/// Builds the test file with the answer's test.
fn test_file(problem: &Problem, form: Form, code: &str) -> Result<RunnableAnswer, RejectedAnswer> {
    let module = Module::parse(code);
    // A part of a file may be indented.
    if module.root().has_error() && is_no_code(&module) {
        return Err(gibberish("the answer is not Python"));
    }
    let source = match form {
        Form::Full => format!("{}\n", code.trim_end()),
        _ => problem.text.with_body(&completion(problem, code)),
    };
    let written = Module::parse(source.clone());
    if let Some(error) = written.errors().first() {
        return Err(RejectedAnswer::Refused(format!(
            "the answer does not parse: line {}: {}",
            error.line, error.what
        )));
    }
    if written.find(&problem.test).is_empty() {
        return Err(RejectedAnswer::Refused(format!(
            "the answer does not contain the test {}",
            problem.test
        )));
    }
    Ok(RunnableAnswer {
        source,
        filled: None,
    })
}

/// Returns whether the text contains no definition, import, assertion or assignment.
fn is_no_code(module: &Module) -> bool {
    let has_definitions = !module.outline().is_empty() || !module.imports().is_empty();
    let has_assertions = !assertions(module, &(0..module.text().len())).is_empty();
    !has_definitions && !has_assertions && module.assignments().is_empty()
}

/// Returns the statements of the test, also if the answer repeats the whole test.
fn completion(problem: &Problem, code: &str) -> String {
    let code = reindented(code.trim_matches('\n').trim_end(), "");
    let module = Module::parse(code.clone());
    let outline = module.outline();
    let own = flatten(&outline)
        .into_iter()
        .rfind(|d| d.name == problem.name());
    let own = own.and_then(|own| code.get(line_start(&code, own.body.start)..own.bytes.end));
    let is_definition = |text: &str| text.starts_with("def ") || text.starts_with("async ");
    let body = match own {
        // One-line definition such as `def test(): pass`.
        Some(line) if is_definition(line.trim_start()) => {
            line.split_once(':').map_or("", |(_, body)| body.trim())
        }
        Some(body) => body,
        None => code.as_str(),
    };
    let gap = if problem.text.header.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{gap}{}\n",
        reindented(body, &problem.text.indent).trim_end()
    )
}

fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
