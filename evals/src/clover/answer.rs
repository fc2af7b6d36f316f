//! From the code of an answer to the test file that is run.

use serde::{Deserialize, Serialize};
use testwright_tools::python::edit::reindented;
use testwright_tools::python::{Assertion, Comparison, Module, Operand, assertions, flatten};

use super::problem::{Problem, Question};
use super::refusals::forbidden;

/// What an answer is asked to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Task I: what stands in the blank, alone.
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
pub struct Usable {
    /// The whole test file.
    pub source: String,
    /// Of task I.
    pub filled: Option<Filled>,
}

/// A filled blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    pub assertion: String,
    pub comparison: Comparison,
    /// It says the same as the reference.
    pub is_exact: bool,
}

/// An answer that is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// It is no Python, or says nothing of what was asked.
    Gibberish(String),
    Refused(String),
}

/// Reads the code of an answer.
pub fn read(problem: &Problem, form: Form, code: &str) -> Result<Usable, Unusable> {
    if code.trim().is_empty() {
        return Err(Unusable::Gibberish("the answer is empty".to_owned()));
    }
    let usable = match &problem.question {
        Question::Assertion {
            lead,
            reference,
            tail,
        } => fill(problem, form, code, [lead, reference, tail])?,
        _ => test_file(problem, form, code)?,
    };
    match forbidden(&usable.source, &problem.golden()) {
        None => Ok(usable),
        Some(name) => Err(Unusable::Refused(format!(
            "it names `{name}`, which is for measuring and ending runs"
        ))),
    }
}

fn fill(
    problem: &Problem,
    form: Form,
    code: &str,
    [lead, reference, tail]: [&str; 3],
) -> Result<Usable, Unusable> {
    let (_, golden) = one_assertion(&format!("{lead}{reference}{tail}"))
        .ok_or_else(|| Unusable::Refused("the golden assertion cannot be read".to_owned()))?;
    let side = golden
        .comparison
        .operands()
        .iter()
        .position(|operand| operand.bytes.start == lead.len());
    let frame = Frame {
        golden: &golden,
        side: side.unwrap_or_default(),
    };
    let code = reindented(code.trim_matches('\n').trim_end(), "");
    let operand = match form {
        Form::Operand => frame.operand_alone(&code, lead, tail),
        _ => frame.operand_of(&code),
    }?;
    let mut assertion = format!("{lead}{operand}{tail}");
    // What stood on several lines inside of brackets needs them here too.
    if operand.contains('\n') && operand != reference {
        assertion = format!("{lead}({operand}){tail}");
    }
    let Some((_, read)) = one_assertion(&assertion).filter(|(_, read)| frame.fits(read)) else {
        return Err(not_asked_for());
    };
    let is_exact = frame.is_exact(&read);
    Ok(Usable {
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

fn not_asked_for() -> Unusable {
    Unusable::Refused("the assertion is not the one that was asked for".to_owned())
}

/// A text that is one assertion and nothing else.
fn one_assertion(text: &str) -> Option<(Module, Assertion)> {
    let module = Module::parse(text);
    let mut found = assertions(&module, &(0..text.len()));
    let is_alone = module.errors().is_empty() && module.root().named_child_count() == 1;
    (is_alone && found.len() == 1).then(|| (module, found.remove(0)))
}

/// The assertion that is asked for, and which of its operands is the blank.
struct Frame<'g> {
    golden: &'g Assertion,
    side: usize,
}

impl Frame<'_> {
    /// All but the blank is as it was given.
    fn fits(&self, other: &Assertion) -> bool {
        let is_same = match (&self.golden.comparison, &other.comparison) {
            (
                Comparison::Binary {
                    left,
                    operator,
                    right,
                },
                Comparison::Binary {
                    left: other_left,
                    operator: other_operator,
                    right: other_right,
                },
            ) => {
                let rest = match self.side {
                    0 => right.tokens == other_right.tokens,
                    _ => left.tokens == other_left.tokens,
                };
                operator == other_operator && rest
            }
            (Comparison::Unary { negated: true, .. }, Comparison::Unary { negated, .. }) => {
                *negated
            }
            // Whatever can be asserted fills a blank that is the whole condition.
            (Comparison::Unary { negated: false, .. }, _) => true,
            _ => false,
        };
        is_same && self.golden.message == other.message
    }

    /// The blank holds the same, brackets and quotes aside.
    fn is_exact(&self, other: &Assertion) -> bool {
        let is_same_kind = match (&self.golden.comparison, &other.comparison) {
            (Comparison::Unary { negated, .. }, Comparison::Unary { negated: other, .. }) => {
                negated == other
            }
            (Comparison::Binary { .. }, Comparison::Binary { .. }) => true,
            _ => false,
        };
        let golden = self.operand(&self.golden.comparison);
        let given = self.operand(&other.comparison);
        is_same_kind
            && golden.map(|operand| &operand.tokens) == given.map(|operand| &operand.tokens)
    }

    fn operand<'o>(&self, comparison: &'o Comparison) -> Option<&'o Operand> {
        comparison.operands().get(self.side).copied()
    }

    /// The blank's text in an assertion.
    fn text<'t>(&self, assertion: &Assertion, source: &'t str) -> Option<&'t str> {
        let is_whole = matches!(
            self.golden.comparison,
            Comparison::Unary { negated: false, .. }
        );
        if is_whole {
            return source.get(condition(assertion, source)?);
        }
        source.get(self.operand(&assertion.comparison)?.bytes.clone())
    }

    fn operand_alone(&self, code: &str, lead: &str, tail: &str) -> Result<String, Unusable> {
        let code = code.trim().trim_matches('`').trim();
        let (mut text, mut read) = (
            code.to_owned(),
            one_assertion(&format!("{lead}{code}{tail}")),
        );
        if read.is_none() && code.contains('\n') {
            text = format!("({code})");
            read = one_assertion(&format!("{lead}{text}{tail}"));
        }
        match read {
            Some((_, read)) if self.fits(&read) => Ok(text),
            None if !Module::parse(code).errors().is_empty() => {
                Err(Unusable::Gibberish("it is no Python expression".to_owned()))
            }
            _ => Err(not_asked_for()),
        }
    }

    /// The blank's text in the last assertion of a code that fits.
    fn operand_of(&self, code: &str) -> Result<String, Unusable> {
        let module = Module::parse(code);
        let found = assertions(&module, &(0..code.len()));
        let fitting = found.iter().rev().find(|assertion| self.fits(assertion));
        if let Some(text) = fitting.and_then(|assertion| self.text(assertion, code)) {
            return Ok(text.trim().to_owned());
        }
        match found.is_empty() {
            true => Err(Unusable::Gibberish("it holds no assertion".to_owned())),
            false => Err(not_asked_for()),
        }
    }
}

/// Where the condition of an assertion stands: behind `assert`, up to the message.
fn condition(assertion: &Assertion, source: &str) -> Option<std::ops::Range<usize>> {
    let operands = assertion.comparison.operands();
    match (&assertion.comparison, operands.as_slice()) {
        (Comparison::Unary { negated: false, .. }, [operand]) => Some(operand.bytes.clone()),
        _ if assertion.message.is_empty() => {
            let start = assertion.bytes.start + "assert".len();
            Some(start..assertion.bytes.end)
        }
        // The last operand ends the condition, but for brackets around it.
        (_, [.., last]) => {
            let end = source.get(last.bytes.end..assertion.bytes.end)?.find(',')?;
            Some(assertion.bytes.start + "assert".len()..last.bytes.end + end)
        }
        _ => None,
    }
}

/// The test file with the answer's test.
fn test_file(problem: &Problem, form: Form, code: &str) -> Result<Usable, Unusable> {
    let module = Module::parse(code);
    if !module.errors().is_empty() && is_no_code(&module) {
        return Err(Unusable::Gibberish("it is no Python".to_owned()));
    }
    let source = match form {
        Form::Full => format!("{}\n", code.trim_end()),
        _ => problem.text.with_body(&completion(problem, code)),
    };
    let written = Module::parse(source.clone());
    if let Some(error) = written.errors().first() {
        return Err(Unusable::Refused(format!(
            "it does not parse: line {}: {}",
            error.line, error.what
        )));
    }
    if written.find(&problem.test).is_empty() {
        return Err(Unusable::Refused(format!(
            "it does not hold the test {}",
            problem.test
        )));
    }
    Ok(Usable {
        source,
        filled: None,
    })
}

/// No statement that a test is made of is found in it.
fn is_no_code(module: &Module) -> bool {
    let has_definitions = !module.outline().is_empty() || !module.imports().is_empty();
    let has_assertions = !assertions(module, &(0..module.text().len())).is_empty();
    !has_definitions && !has_assertions && module.assignments().is_empty()
}

/// The statements of the test, where the answer has it as a whole too.
fn completion(problem: &Problem, code: &str) -> String {
    let code = reindented(code.trim_matches('\n').trim_end(), "");
    let module = Module::parse(code.clone());
    let outline = module.outline();
    let own = flatten(&outline)
        .into_iter()
        .rfind(|d| d.name == problem.name());
    let body = match own.and_then(|own| code.get(line_start(&code, own.body.start)..own.bytes.end))
    {
        // `def test(): pass` on one line.
        Some(body)
            if body.trim_start().starts_with("def ") || body.trim_start().starts_with("async ") =>
        {
            body.split_once(':')
                .map_or("", |(_, body)| body.trim())
                .to_owned()
        }
        Some(body) => body.to_owned(),
        None => code.clone(),
    };
    let gap = if problem.text.header.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{gap}{}\n",
        reindented(&body, &problem.text.indent).trim_end()
    )
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
