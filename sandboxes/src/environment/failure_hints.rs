//! Hints for failed steps, chosen by the error that decided the failure.
//!
//! A rule looks at that error, not at the whole output: output contains warnings, other files' errors and consequences.
//! If no rule fits, there is no hint.

mod decisive;
mod rules;

use decisive::Failure;
pub(super) use decisive::{decisive_line, shortened};
pub(super) use rules::missing_variables;
pub(super) use rules::omissions::SET;

/// Returns advice for a failed step, one imperative, from its output.
pub(super) fn hint(output: &str) -> Option<String> {
    let failure = Failure::read(output)?;
    rules::all().find_map(|rule| rule.recognize(&failure))
}

/// Returns whether a step failed for a reason outside of the code: the network, the settings for it, a missing toolchain,
/// or a full disk.
pub(super) fn is_external(output: &str) -> bool {
    let failure = Failure::read(output);
    failure.is_some_and(|failure| {
        rules::all().any(|rule| rule.external && rule.recognize(&failure).is_some())
    })
}

/// Returns advice if the failure follows from what was left out of the environment, does not fit in it or was guessed, as
/// stated in `notes`.
pub(super) fn hint_for_omission(output: &str, notes: &[String]) -> Option<String> {
    rules::omissions::advice(&Failure::read(output)?, notes)
}

/// Returns advice on the variables that pydantic's settings miss, with the prefix of their names.
pub(super) fn hint_for_settings(output: &str, prefix: &str) -> Option<String> {
    rules::unset_settings(&Failure::read(output)?, Some(prefix))
}

#[cfg(test)]
mod tests;
