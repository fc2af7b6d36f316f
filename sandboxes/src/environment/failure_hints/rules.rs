//! The rules of `hints.toml`, and those that need code. The file explains its keys.

mod code;
mod network;
pub(super) mod omissions;
mod services;

pub(in crate::environment) use code::missing_variables;
pub(super) use code::unset_settings;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::decisive::Failure;
use crate::recipe::normalized_name;

#[allow(clippy::expect_used)] // tests read the file
static HINTS: LazyLock<Hints> = LazyLock::new(|| {
    toml::from_str(include_str!("hints.toml")).expect("the file is part of the program")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hints {
    rules: Vec<Rule>,
    services: Vec<services::KnownService>,
    /// Debian packages by what they contain, by kind.
    debian: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rule {
    when: Signs,
    any: Signs,
    unless: Signs,
    advice: String,
    debian: Option<String>,
    #[serde(deserialize_with = "coded")]
    code: Option<CodedRule>,
    pub external: bool,
    omission: bool,
}

/// A function that returns advice if it recognizes the error.
type CodedRule = fn(&Failure<'_>) -> Option<String>;

const CODED: [(&str, CodedRule); 8] = [
    ("asked_command", code::asked_command),
    ("missing_module", code::missing_module),
    ("missing_name", code::missing_name),
    ("refused_host", network::refused_host),
    ("removed_feature", code::removed_feature),
    ("rust_toolchain", network::rust_toolchain),
    ("service", services::service),
    ("variable", code::variable),
];

fn coded<'de, D: Deserializer<'de>>(from: D) -> Result<Option<CodedRule>, D::Error> {
    let name = String::deserialize(from)?;
    let rule = CODED.iter().find(|(known, _)| *known == name);
    rule.map(|(_, rule)| Some(*rule))
        .ok_or_else(|| D::Error::custom(name))
}

/// Expressions, by the part of a failure that they search.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Signs {
    #[serde(deserialize_with = "expressions")]
    line: Vec<Regex>,
    #[serde(deserialize_with = "expressions")]
    error: Vec<Regex>,
    #[serde(deserialize_with = "expressions")]
    output: Vec<Regex>,
}

fn expressions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Regex>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let expressions = texts.iter().map(|text| Regex::new(text));
    expressions
        .map(|expression| expression.map_err(D::Error::custom))
        .collect()
}

impl Signs {
    /// Searches for each expression.
    fn search<'a>(
        &'a self,
        failure: &'a Failure<'_>,
    ) -> impl Iterator<Item = Option<Captures<'a>>> {
        let line = self
            .line
            .iter()
            .map(move |sign| sign.captures(&failure.line));
        let error = self
            .error
            .iter()
            .map(move |sign| sign.captures(&failure.error));
        let output = self
            .output
            .iter()
            .map(move |sign| sign.captures(failure.output));
        line.chain(error).chain(output)
    }
}

/// Returns all rules, the most specific first.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    HINTS.rules.iter()
}

impl Rule {
    /// Returns the advice if the rule recognizes the error.
    pub(super) fn recognize(&self, failure: &Failure<'_>) -> Option<String> {
        if let Some(rule) = self.code {
            return rule(failure);
        }
        let all: Vec<Captures<'_>> = self.when.search(failure).collect::<Option<_>>()?;
        let mut any = self.any.search(failure).peekable();
        let needs_one = any.peek().is_some();
        let one = any.flatten().next();
        let is_exempt = self.unless.search(failure).flatten().next().is_some();
        if needs_one && one.is_none() || is_exempt {
            return None;
        }
        let captures = all.iter().chain(&one);
        let mut groups = captures.flat_map(|captures| captures.iter().skip(1).flatten());
        let word = groups.next().map_or("", |group| group.as_str());
        let advice = self.advice.replace("{1}", word);
        let advice = advice.replace("{name}", &normalized_name(word));
        let Some(kind) = &self.debian else {
            return Some(advice);
        };
        let package = debian_package(kind, word);
        // Any word can be taken for a program.
        (package.is_some() || kind != "programs").then(|| system_package(&advice, package))
    }
}

/// Returns the Debian package with a header, a program or a library. Headers are known by the beginning of their path, and
/// compilers may be named with the machine, as `x86_64-linux-gnu-gcc`.
fn debian_package(kind: &str, word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let short = name.rsplit("-linux-gnu-").next().unwrap_or(name);
    let fits = |known: &str| match kind {
        "headers" => word.starts_with(known),
        _ => [lower.as_str(), name, short].contains(&known),
    };
    let mut packages = HINTS.debian.get(kind)?.iter();
    let (_, package) = packages.find(|(known, _)| fits(known))?;
    Some(package)
}

fn system_package(what: &str, package: Option<&str>) -> String {
    match package {
        Some(package) => format!(
            "{what}: set system-packages = [\"{package}\"] in [environment] of testwright.toml (with --sandbox local, \
             install it on this machine)"
        ),
        None => format!(
            "{what}: add the Debian package that contains it (`apt-file search` finds it) to system-packages in \
             [environment] of testwright.toml (with --sandbox local, install it on this machine)"
        ),
    }
}

/// Returns the first group of a pattern in the text.
fn captured(pattern: &str, text: &str) -> Option<String> {
    let pattern = Regex::new(pattern).ok()?;
    Some(pattern.captures(text)?.get(1)?.as_str().to_owned())
}
