//! Flags that take a name from a list. Help and completions are derived from the list.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use testwright_agent::approaches;
use testwright_agent::backends;

/// Names with their descriptions.
///
/// As a parser it accepts any text. Settings check the name, because it may also come from a file or a variable.
#[derive(Debug, Clone)]
pub(crate) struct NameList(Vec<(&'static str, &'static str)>);

/// Returns all approaches.
pub(crate) fn approaches() -> NameList {
    let entry = |approach: &&approaches::Approach| (approach.name, approach.description);
    NameList(approaches::ALL.iter().map(entry).collect())
}

/// Returns all kinds of sandboxes.
pub(crate) fn sandboxes() -> NameList {
    let entry = |kind: &&dyn backends::Connector| (kind.name(), kind.description());
    NameList(backends::ALL.iter().map(entry).collect())
}

impl NameList {
    /// Formats the names as `a, b or c`.
    pub(crate) fn to_sentence(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        match names.as_slice() {
            [others @ .., last] if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            names => names.concat(),
        }
    }

    /// Formats each name with its description on one line.
    pub(crate) fn to_table(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max();
        let width = width.unwrap_or_default();
        let line = |(name, what): &(&str, &str)| format!("  {name:<width$}  {what}");
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl TypedValueParser for NameList {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value =
            |(name, what): &(&'static str, &'static str)| PossibleValue::new(*name).help(*what);
        Some(Box::new(self.0.iter().map(value)))
    }
}
