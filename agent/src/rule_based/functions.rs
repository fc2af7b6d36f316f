//! Test functions in the issue itself.

use testwright_sandboxes::Pattern;

use super::candidates::{Candidate, Expects};
use super::extract::{Issue, Kind};
use super::probe::Subject;
use super::test_body::TestBody;
use super::test_name::{Behaviour, test_name};

/// Returns the test functions in the issue that assert something that could hold, unchanged.
pub(super) fn candidates(issue: &Issue) -> Vec<Candidate> {
    static TEST: Pattern = Pattern::new(r"(?m)^(?:async )?def (test\w*)\(");
    static POINTLESS: Pattern = Pattern::new(
        r"(?m)^\s*(?:assert (?:0|False|1 == 2|not True|1 != 1)\b|raise\b)|pytest\.fail\(",
    );
    let mut all = Vec::new();
    for part in &issue.parts {
        let Kind::Code(source) = &part.kind else {
            continue;
        };
        let tests: Vec<String> = TEST
            .captures_iter(source)
            .map(|f| f[1].to_owned())
            .collect();
        let [name] = tests.as_slice() else { continue };
        if !source.contains("assert ") || POINTLESS.is_match(source) {
            continue;
        }
        let (imports, code): (Vec<&str>, Vec<&str>) = source.lines().partition(|l| {
            l.starts_with("import ") || (l.starts_with("from ") && !l.contains('('))
        });
        let mut function = code.join("\n").trim().to_owned();
        if name == "test" {
            let name = test_name(&called(&function), &Behaviour::AsWritten, &issue.title);
            function = function.replacen("def test(", &format!("def {name}("), 1);
        }
        all.push(Candidate {
            trust: 8600,
            body: TestBody {
                imports: imports.into_iter().map(str::to_owned).collect(),
                ..TestBody::default()
            },
            homes: fixtures(&function),
            function: Some(function),
            subject: Subject::default(),
            behaviour: Behaviour::AsWritten,
            expects: Expects::Assertion,
            sentence: issue.title.clone(),
        });
    }
    all
}

/// Returns the last call of a test, apart from those of builtins and of methods.
fn called(function: &str) -> Subject {
    static CALL: Pattern = Pattern::new(r"(\.?)\b([A-Za-z_]\w*)\(");
    static BUILTIN: Pattern = Pattern::new(
        "^(?:test|assert|len|str|repr|list|tuple|dict|set|sorted|type|isinstance|print)$",
    );
    let names = CALL.captures_iter(function).filter(|c| c[1].is_empty());
    let names = names.map(|c| c[2].to_owned());
    let last = names.filter(|name| !BUILTIN.is_match(name)).last();
    Subject {
        names: last.into_iter().collect(),
        ..Subject::default()
    }
}

/// Returns the arguments of the function, as names to search for.
fn fixtures(function: &str) -> Vec<(String, String)> {
    static ARGUMENTS: Pattern = Pattern::new(r"def test\w*\(([^)]*)\)");
    let Some(captures) = ARGUMENTS.captures(function) else {
        return Vec::new();
    };
    let names = captures[1]
        .split(',')
        .map(|a| a.split([':', '=']).next().unwrap_or("").trim());
    names
        .filter(|n| !n.is_empty())
        .map(|n| (n.to_owned(), format!("{n}.py")))
        .collect()
}
