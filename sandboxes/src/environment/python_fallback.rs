//! Older Pythons for pinned requirements that the newest suitable one cannot install, and for code that uses what newer
//! versions removed.
//!
//! A pin says when the code was written better than its date does. So a version that has a wheel for the pin, or whose
//! compiler interface it knows, is tried before the pin is left out.

use std::time::Duration;

use super::build::Build;
use super::build_sandbox::BuildSandbox;
use super::locked;
use super::removed_features::removed_by;
use super::requirements;
use super::smoke_test::SmokeTestReport;
use super::steps::StepOutput;
use crate::error::SandboxError;
use crate::pattern::Pattern;
use crate::recipe;
use crate::sandbox::{Result, output};

/// The oldest version to go back to. Older ones have few wheels.
const OLDEST: u32 = 8;

/// Time limit for asking the index which versions have a wheel.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A package that uv could not build, or whose release does not support this Python.
static FAILED: Pattern = Pattern::new(concat!(
    r"Failed to (?:build|download and build|prepare) `([\w.-]+)(?:==[^`]*)?`",
    r"|Because (?:only )?([\w.-]+)(?:\[[^\]]*\])?[=<>!~][^\s]* (?:depends on Python|has no (?:usable )?wheels|requires Python)",
    r"|and ([\w.-]+)==[^\s]+ depends on Python",
));

impl Build<'_> {
    /// Returns an older Python for the pinned requirement that could not be installed, if one is likely to help.
    pub(super) async fn older_python(
        &self,
        builder: &BuildSandbox,
        printed: &StepOutput,
    ) -> Result<Option<String>> {
        let Some(current) = self.guessed_python() else {
            return Ok(None);
        };
        let requirements = &self.plan.requirements;
        let own = recipe::declared_requirements(&self.source.tree()?, &self.recipe.projects)?;
        let lines = requirements.lines.iter().chain(&requirements.constraints);
        let Some(pin) = failed_pin(&printed.text, lines.chain(&own)) else {
            return Ok(None);
        };
        let candidates = self.older_pythons(current).await?;
        for version in &candidates {
            if self.has_wheel(builder, &pin, version).await? {
                return Ok(Some(version.clone()));
            }
        }
        // Without any wheel, only errors that a newer Python causes are a reason to go back.
        Ok(newest_with(&printed.text, &candidates))
    }

    /// Returns an older Python that has what the failing tests lack, if newer versions removed it.
    pub(super) async fn older_python_for_tests(
        &self,
        report: &SmokeTestReport,
    ) -> Result<Option<String>> {
        let Some(current) = self.guessed_python() else {
            return Ok(None);
        };
        let mut texts: Vec<&str> = report.complaints().map(|(_, text)| text).collect();
        // An error in a conftest is only printed.
        texts.push(&report.printed.text);
        let text = texts.join("\n");
        if removed_by(&text).next().is_none() {
            return Ok(None);
        }
        Ok(newest_with(&text, &self.older_pythons(current).await?))
    }

    /// Returns the version of the recipe, unless someone states it or an image has it.
    fn guessed_python(&self) -> Option<&str> {
        let is_guess = self.plan.guess.python && self.recipe.image.is_none();
        self.recipe.python.as_deref().filter(|_| is_guess)
    }

    /// Remembers the version for the next attempt, and returns the error of this one.
    pub(super) fn try_older_python(&self, version: String, error: SandboxError) -> SandboxError {
        self.log.line(&format!(
            "-- Python {version} suits the pinned requirements better"
        ));
        *locked(&self.findings.older_python) = Some(version);
        error
    }

    /// Returns the older versions that the backend has and the code allows, newest first.
    async fn older_pythons(&self, current: &str) -> Result<Vec<String>> {
        let mut available = Vec::new();
        for version in recipe::older_pythons(self.source, &self.source.tree()?, current)? {
            let is_recent = recipe::parse_python(&version).is_some_and(|minor| minor >= OLDEST);
            if is_recent && self.backend.check_python(&version).await.is_ok() {
                available.push(version);
            }
        }
        Ok(available)
    }

    /// Returns whether the index has a wheel of a pinned requirement for a version.
    async fn has_wheel(&self, builder: &BuildSandbox, pin: &str, version: &str) -> Result<bool> {
        let file = builder.upload("pin.txt", pin.as_bytes()).await?;
        let mut ask = builder.uv([
            "pip",
            "compile",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--python-version",
            version,
            "--python",
            &builder.python,
            &file,
        ]);
        ask.env = builder.env.clone();
        let answer = output(builder.sandbox.as_ref(), &ask, TIMEOUT).await?;
        Ok(answer.code == 0)
    }
}

/// Returns the first of these versions, newest first, that still has what an error says was removed.
fn newest_with(error: &str, versions: &[String]) -> Option<String> {
    let last = removed_by(error)
        .filter_map(|(_, version)| recipe::parse_python(version))
        .min()?;
    let has = |version: &&String| recipe::parse_python(version).is_some_and(|minor| minor <= last);
    versions.iter().find(has).cloned()
}

/// Returns the pinned line of the first package that the output says could not be installed.
fn failed_pin<'a>(output: &str, lines: impl Iterator<Item = &'a String>) -> Option<String> {
    let names: Vec<String> = FAILED
        .captures_iter(output)
        .filter_map(|found| found.iter().skip(1).flatten().next())
        .map(|name| requirements::name(name.as_str()))
        .collect();
    let is_pin = |line: &&String| {
        let bounds = line.split(';').next().unwrap_or(line);
        ["==", "~=", "<"].iter().any(|sign| bounds.contains(sign)) && !line.contains(" @ ")
    };
    let mut pins = lines.filter(is_pin);
    let pin = pins.find(|line| names.contains(&requirements::name(line)))?;
    // A wheel counts under any condition.
    Some(pin.split(';').next().unwrap_or(pin).trim().to_owned())
}

#[cfg(test)]
mod tests;
