//! Tests that the issue suggests, the most trusted first.

mod raises;
mod session;
mod values;

use std::collections::BTreeMap;

use testwright_sandboxes::Pattern;

use super::extract::{Issue, RaisedException, messages_only, split_note, wanted_exceptions};
use super::probe::{Probe, ProbedException, Statement, Subject};
use super::steps::Step;
use super::test_body::{self, ExpectedRaises, TestBody};
use super::test_name::Behaviour;
pub(super) use values::is_today;

/// A test, and the failure that would show the issue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub trust: u32,
    pub body: TestBody,
    /// Complete function from the issue, if it has one; then `body` has only its imports.
    pub function: Option<String>,
    /// Function under test.
    pub subject: Subject,
    pub behaviour: Behaviour,
    pub expects: Expects,
    /// Sentence of the issue that the test corresponds to.
    pub sentence: String,
    /// Names that the tested statement uses, with the files that define them; best first.
    pub homes: Vec<(String, String)>,
}

impl Candidate {
    /// Returns a test of a statement that an assertion decides.
    fn new(
        evidence: &Evidence<'_>,
        statement: &Statement,
        trust: u32,
        body: TestBody,
        behaviour: Behaviour,
    ) -> Candidate {
        Candidate {
            trust,
            body,
            function: None,
            subject: statement.subject.clone(),
            behaviour,
            expects: Expects::Assertion,
            sentence: evidence.issue.title.clone(),
            homes: homes(statement, statement.raised.as_ref()),
        }
    }
}

/// The way in which a test fails today.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expects {
    /// The code under test raises this exception.
    Raised(String),
    /// An assertion of the test fails.
    Assertion,
}

/// The inputs for candidates.
pub(super) struct Evidence<'a> {
    pub issue: &'a Issue,
    pub steps: &'a [Step],
    pub probe: &'a Probe,
    pub prose: String,
    /// Exceptions that the issue asks for.
    pub wanted: Vec<String>,
    /// Sentences that name the code which should raise an exception.
    sentences: BTreeMap<usize, String>,
    expected: ExpectedRaises,
    /// Whether the issue names code that should raise an exception; then no other statement is tested for one.
    names_raising_code: bool,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(issue: &'a Issue, steps: &'a [Step], probe: &'a Probe) -> Self {
        let prose = issue.prose();
        let mut evidence = Evidence {
            issue,
            steps,
            probe,
            wanted: wanted_exceptions(&prose),
            prose,
            sentences: BTreeMap::new(),
            expected: ExpectedRaises::default(),
            names_raising_code: false,
        };
        raises::pair(&mut evidence);
        evidence
    }

    /// Returns whether the issue asks for an exception; then no value is right.
    fn expects_exception(&self) -> bool {
        raises::should_fail(&self.prose)
            || !self.wanted.is_empty()
            || self.names_raising_code
            || !self.expected.exceptions.is_empty()
    }

    fn before(&self, targets: &[usize], more: &[String]) -> TestBody {
        test_body::before(self.probe, self.steps, targets, more, &self.expected)
    }

    /// Returns the statement whose exception kept this one from running, or else this one.
    fn cause<'s>(&'s self, statement: &'s Statement) -> &'s Statement {
        let cause = statement
            .blocked
            .and_then(|at| self.probe.statements.get(at));
        cause.unwrap_or(statement)
    }

    /// Returns whether the issue shows the same code elsewhere with an exception; then its output here is the
    /// expected one.
    fn raises_elsewhere(&self, step: &Step) -> bool {
        self.steps
            .iter()
            .any(|other| other.source == step.source && other.raised.is_some())
            && step.raised.is_none()
    }

    /// Returns whether the test runs code of the repository; a fix cannot change other packages.
    fn of_repository(&self, statement: &Statement, body: &TestBody) -> bool {
        let framed = statement
            .raised
            .as_ref()
            .is_some_and(|r| !r.frames.is_empty());
        let names = |line: &String| {
            let module = line.split_whitespace().nth(1).unwrap_or("");
            let package = module.split('.').next().unwrap_or(module);
            self.probe.packages.iter().any(|p| p == package)
        };
        let inside = |line: &&String| line.trim_start().starts_with(['f', 'i']);
        framed
            || !statement.homes.is_empty()
            || body.imports.iter().any(names)
            || body.lines.iter().filter(inside).any(names)
    }

    /// Returns whether the title mentions a name that the statement uses.
    fn in_title(&self, statement: &Statement) -> bool {
        let title = test_body::words(&self.issue.title);
        statement
            .reads
            .iter()
            .any(|n| n.len() > 2 && title.contains(n))
    }
}

/// A statement to test.
#[derive(Clone, Copy)]
struct Tested<'a> {
    evidence: &'a Evidence<'a>,
    at: usize,
    statement: &'a Statement,
    step: &'a Step,
}

impl Tested<'_> {
    /// Returns what has to run before the statement; `more` has further names that the test will use.
    fn before(&self, more: &[String]) -> TestBody {
        self.evidence.before(&[self.at], more)
    }

    /// Returns a test of the statement that an assertion decides.
    fn candidate(&self, trust: u32, body: TestBody, behaviour: Behaviour) -> Candidate {
        Candidate::new(self.evidence, self.statement, trust, body, behaviour)
    }
}

/// Returns all candidates, the most trusted first.
pub(super) fn candidates(evidence: &Evidence<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    let count = evidence.probe.statements.len();
    for (at, statement) in evidence.probe.statements.iter().enumerate() {
        let Some(step) = evidence.steps.get(statement.step) else {
            continue;
        };
        let is_dependent = evidence.expected.dependent.contains(&at);
        if statement.syntax.is_some() || statement.slow || is_dependent {
            continue;
        }
        let tested = Tested {
            evidence,
            at,
            statement,
            step,
        };
        let mut statement_candidates = Vec::new();
        let is_expected = evidence.expected.exceptions.contains_key(&at);
        if is_expected {
            statement_candidates.extend(raises::of_named_code(tested));
        }
        if statement.last && !is_expected {
            statement_candidates.extend(values::candidates(tested));
        }
        if statement.blocked.is_none() && !is_expected {
            if let Some(raised) = &statement.raised {
                statement_candidates
                    .extend(as_written(tested, raised).or_else(|| does_not_raise(tested, raised)));
                statement_candidates.extend(says_otherwise(tested, raised));
            }
            if statement.last {
                statement_candidates.extend(raises::of_last(tested));
            }
        }
        for mut candidate in statement_candidates {
            let cause = evidence.cause(statement);
            if !evidence.of_repository(cause, &candidate.body) {
                continue;
            }
            candidate.trust += u32::from(evidence.in_title(cause)) * 4;
            // Of similar candidates prefer the later one, because issues come to the point at the end.
            candidate.trust = candidate.trust * 100 + (at * 50 / count.max(1)) as u32;
            if !all.iter().any(|c: &Candidate| c.body == candidate.body) {
                all.push(candidate);
            }
        }
    }
    if evidence.expects_exception() {
        all.retain(|c| !matches!(c.behaviour, Behaviour::DoesNotGive(_)));
    }
    for mut candidate in session::candidates(evidence) {
        candidate.trust *= 100;
        all.push(candidate);
    }
    all.sort_by_key(|c| std::cmp::Reverse(c.trust));
    all
}

/// Keeps an `assert` of the issue that fails today.
fn as_written(tested: Tested<'_>, raised: &ProbedException) -> Option<Candidate> {
    let (statement, step) = (tested.statement, tested.step);
    let fails = statement.kind == "Assert" && raised.own && raised.exception == "AssertionError";
    if !fails || step.works || tested.evidence.wanted.contains(&raised.exception) {
        return None;
    }
    let mut body = tested.before(&[]);
    let source = match statement.source.contains('\n') {
        true => statement.source.as_str(),
        false => split_note(&statement.source).0,
    };
    body.push_text(source);
    Some(tested.candidate(90, body, Behaviour::AsWritten))
}

/// Tests that the issue's exception, which is raised today, no longer is.
fn does_not_raise(tested: Tested<'_>, raised: &ProbedException) -> Option<Candidate> {
    let (evidence, statement, step) = (tested.evidence, tested.statement, tested.step);
    let name = raised.exception.as_str();
    if step.works
        || raised.outside
        || ["NameError", "SyntaxError", "ModuleNotFoundError"].contains(&name)
        || messages_only(&evidence.prose)
        || evidence.wanted.iter().any(|w| w.ends_with(name))
    {
        return None;
    }
    let same = |exception: &RaisedException| exception.name() == name;
    let close =
        |exception: &RaisedException| same(exception) && alike(&exception.message, &raised.message);
    let issue_exceptions = evidence.issue.raised();
    let words = test_body::words(&evidence.prose).contains(&raised.exception);
    let fits_step = statement.last && step.raised.as_ref().is_some_and(same);
    let trust = if fits_step && step.raised.as_ref().is_some_and(close) {
        92
    } else if issue_exceptions.iter().any(|s| close(s)) {
        88
    } else if fits_step || issue_exceptions.iter().any(|s| same(s)) {
        80
    } else if words {
        74
    } else if issue_exceptions.is_empty()
        && speaks_of_failure(&evidence.prose)
        && step.outputs.is_empty()
        && !raised.own
        && !is_setup_error(name)
    {
        50
    } else {
        return None;
    };
    let mut body = tested.before(&[]);
    if raised.own {
        // The statement itself raises, so a test that just ran it would look like a broken test.
        body.imports.push("import pytest".to_owned());
        body.push_block("try:", &statement.source);
        let exception = builtin_or_exception(name);
        body.push_text(&format!("except {exception} as error:"));
        body.push_text("    pytest.fail('raised {!r}'.format(error))");
    } else if statement.in_repr {
        body.lines
            .push(format!("assert repr({})", statement.source.trim()));
    } else {
        let source = statement.shown.as_ref().unwrap_or(&statement.source);
        // Past today's exception the code may use the network, which a test should not need.
        let reaches_out = source.contains("http://") || source.contains("https://");
        if reaches_out && !raised.bases.iter().any(|b| b == "OSError") {
            body.imports.push("import contextlib".to_owned());
            body.push_block("with contextlib.suppress(OSError):", source);
        } else {
            body.push_text(source);
        }
    }
    let behaviour = Behaviour::DoesNotRaise(name.to_owned());
    Some(match raised.own {
        true => tested.candidate(trust - 6, body, behaviour),
        false => Candidate {
            expects: Expects::Raised(name.to_owned()),
            ..tested.candidate(trust, body, behaviour)
        },
    })
}

/// Tests that the message of an exception is no longer the one that the issue shows and complains about.
fn says_otherwise(tested: Tested<'_>, raised: &ProbedException) -> Option<Candidate> {
    let (evidence, statement) = (tested.evidence, tested.statement);
    let issue_exceptions = evidence.issue.raised();
    let complete =
        |s: &&RaisedException| s.name() == raised.exception && s.message == raised.message;
    let fleeting = raised.message.contains(" at 0x") || raised.message.contains('\n');
    if !messages_only(&evidence.prose)
        || raised.own
        || raised.outside
        || statement.in_repr
        || raised.message.is_empty()
        || fleeting
        || !issue_exceptions.iter().any(complete)
    {
        return None;
    }
    let mut body = tested.before(&[]);
    body.imports.push("import pytest".to_owned());
    let source = statement.shown.as_ref().unwrap_or(&statement.source);
    body.push_block("with pytest.raises(Exception) as raised:", source);
    let message = values::quoted(&raised.message);
    body.push_text(&format!("assert str(raised.value) != {message}"));
    Some(tested.candidate(70, body, Behaviour::RaisesWithOtherMessage))
}

/// Returns the functions that the tested statement is about, with their files: the innermost that failed first.
fn homes(statement: &Statement, raised: Option<&ProbedException>) -> Vec<(String, String)> {
    let frames = raised.iter().flat_map(|r| r.frames.iter().rev());
    let frames = frames.map(|(file, function)| (function.clone(), file.clone()));
    let mut all: Vec<(String, String)> = Vec::new();
    for home in frames.take(3).chain(statement.homes.iter().cloned()) {
        if !all.contains(&home) {
            all.push(home);
        }
    }
    all
}

/// Returns whether two messages are equal except for numbers, addresses and truncation.
fn alike(issue_message: &str, now: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_alphabetic())
            .take(40)
            .collect()
    };
    let (issue_message, now) = (letters(issue_message), letters(now));
    issue_message.is_empty()
        || now.is_empty()
        || issue_message.starts_with(&now)
        || now.starts_with(&issue_message)
}

fn speaks_of_failure(prose: &str) -> bool {
    static FAILURE: Pattern =
        Pattern::new(r"(?i)fails|error|raises|crash|exception|throws|does not work|doesn't work");
    FAILURE.is_match(prose)
}

/// Returns whether the exception says that Django has no settings, as in a script outside of a project.
fn is_setup_error(name: &str) -> bool {
    ["ImproperlyConfigured", "AppRegistryNotReady"].contains(&name)
}

fn builtin_or_exception(name: &str) -> &str {
    static BUILTIN: Pattern = Pattern::new(
        "^(?:Type|Value|Attribute|Key|Index|Runtime|NotImplemented|ZeroDivision|Assertion|Overflow|Recursion|UnboundLocal|Import)Error$",
    );
    match BUILTIN.is_match(name) {
        true => name,
        false => "Exception",
    }
}
