//! An approach with its options, as `NAME` or `NAME:OPTION=on|off:…`, which papers call an ablation.

use std::collections::BTreeMap;

use super::{ALL, Approach, COMMAND, CommandLine, find};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Effort;

/// Minimum similarity (Jaro-Winkler, 0 to 1) of a misspelt name and the name that a hint suggests.
const MIN_SIMILARITY: f64 = 0.85;

/// An option of an approach, which can be on or off.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct ApproachOption {
    /// Name, as in `APPROACH:NAME=on`.
    pub name: &'static str,
    /// Description in one line, for people.
    pub description: &'static str,
    /// Default value.
    pub default: bool,
}

impl ApproachOption {
    /// Returns an option that is on unless it is set.
    pub(super) const fn on_by_default(name: &'static str, description: &'static str) -> Self {
        ApproachOption {
            name,
            description,
            default: true,
        }
    }

    /// Returns an option that is off unless it is set.
    pub(super) const fn off_by_default(name: &'static str, description: &'static str) -> Self {
        ApproachOption {
            default: false,
            ..ApproachOption::on_by_default(name, description)
        }
    }
}

/// The options of an approach that were set; the others have their default values.
#[derive(Debug, Clone, Default)]
pub struct Options(BTreeMap<&'static str, bool>);

/// An approach with its options.
#[derive(Clone)]
pub struct Variant {
    /// The approach without options.
    pub approach: &'static Approach,
    options: Options,
    /// Program of the user, for the approach that runs one.
    command: Option<CommandLine>,
}

impl Options {
    /// Returns the value of an option.
    pub fn is_on(&self, option: &ApproachOption) -> bool {
        self.0.get(option.name).copied().unwrap_or(option.default)
    }

    /// Sets the value of an option.
    pub(super) fn with(mut self, option: &ApproachOption, value: bool) -> Self {
        self.0.insert(option.name, value);
        self
    }
}

impl Variant {
    /// Returns the approach with the defaults of its options.
    pub fn plain(approach: &'static Approach) -> Self {
        Variant {
            approach,
            options: Options::default(),
            command: None,
        }
    }

    /// Parses an approach that the user wrote on the command line, which may also be a program to run:
    /// `command:LINE`. Names from records, settings and requests must not start programs.
    ///
    /// # Errors
    ///
    /// Fails like [`Variant::parse`], or if the command line is invalid.
    pub fn parse_with_commands(text: &str) -> Result<Self> {
        if !CommandLine::is_command(text) {
            return Variant::parse_named(text, &["command:"]);
        }
        Ok(Variant {
            command: Some(CommandLine::parse(text)?),
            ..Variant::plain(COMMAND)
        })
    }

    /// Parses `NAME` or `NAME:OPTION=on|off:…`.
    ///
    /// # Errors
    ///
    /// Fails if the approach or an option is unknown, an option is set twice or to another value, or a program is
    /// named.
    pub fn parse(text: &str) -> Result<Self> {
        if CommandLine::is_command(text) {
            return Err(Error::usage(format!("use the approach `{text}`"))
                .cause("only the command line may name a program to run")
                .hint(
                    "pass it to `testwright run --approach` or `testwright compare --approaches`",
                ));
        }
        Variant::parse_named(text, &[])
    }

    /// Parses `NAME` or `NAME:OPTION=on|off:…`. A hint may suggest an approach or one of these prefixes.
    fn parse_named(text: &str, prefixes: &[&str]) -> Result<Self> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let Some(approach) = find(name) else {
            let names: Vec<&str> = ALL.iter().map(|approach| approach.name).collect();
            let first = name.split('(').next().unwrap_or(name);
            let similarity = |known: &str| strsim::jaro_winkler(first, known.trim_end_matches(':'));
            let scores = names
                .iter()
                .chain(prefixes)
                .map(|known| (similarity(known), known));
            let hint = match scores.max_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((score, known)) if score > MIN_SIMILARITY => {
                    format!("did you mean `{known}`?")
                }
                _ => format!("the approaches are: {}", names.join(", ")),
            };
            return Err(Error::usage(format!("find the approach `{name}`")).hint(hint));
        };
        let mut options = BTreeMap::new();
        for part in parts {
            let (option, value) = read_option(approach, part)?;
            if options.insert(option.name, value).is_some() {
                return Err(Error::usage(format!("read the approach `{text}`"))
                    .cause(format!("`{}` is set twice", option.name))
                    .hint("keep one of the two"));
            }
        }
        Ok(Variant {
            approach,
            options: Options(options),
            command: None,
        })
    }

    /// Parses the name of an approach that writes tests for issues, with its options.
    ///
    /// # Errors
    ///
    /// Fails like [`Variant::parse`], or if the approach needs other inputs than an issue.
    pub fn parse_for_issues(text: &str) -> Result<Self> {
        let variant = Variant::parse(text)?;
        let name = variant.approach.name;
        match ALL.iter().any(|approach| approach.name == name) {
            true => Ok(variant),
            false => Err(Error::usage(format!("use the approach `{name}`"))
                .cause("it does not write tests for issues")
                .hint(format!("use `testwright {name}`"))),
        }
    }

    /// Sets the options of an effort level, except those given explicitly. Returns `None` if the approach has
    /// no levels.
    pub fn at_effort(mut self, effort: Effort) -> Option<Self> {
        for (option, value) in (self.approach.effort)(effort)? {
            self.options.0.entry(option.name).or_insert(*value);
        }
        Some(self)
    }

    /// Returns the canonical name, which does not depend on how the variant was written.
    pub fn name(&self) -> String {
        if let Some(command) = &self.command {
            return command.approach();
        }
        let mut name = self.approach.name.to_owned();
        let defaults = self.approach.options.iter();
        let defaults: Vec<(&str, bool)> = defaults.map(|o| (o.name, o.default)).collect();
        let set = self.options.0.iter();
        for (option, value) in set.filter(|(name, value)| !defaults.contains(&(**name, **value))) {
            let value = if *value { "on" } else { "off" };
            name.push_str(&format!(":{option}={value}"));
        }
        name
    }

    /// Returns the options that were set.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the program of the user, for the approach that runs one.
    pub fn command(&self) -> Option<&CommandLine> {
        self.command.as_ref()
    }

    /// Checks that the program of the user exists, if the approach runs one.
    ///
    /// # Errors
    ///
    /// Fails if this machine does not have the program.
    pub fn check_program(&self) -> Result<()> {
        self.command().map_or(Ok(()), CommandLine::check_program)
    }

    /// Returns the value of an option, or its default.
    pub fn is_on(&self, option: &ApproachOption) -> bool {
        self.options.is_on(option)
    }
}

fn read_option(approach: &'static Approach, part: &str) -> Result<(&'static ApproachOption, bool)> {
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    let all = approach.options;
    let Some(option) = all.iter().find(|option| option.name == name) else {
        let names: Vec<&str> = all.iter().map(|option| option.name).collect();
        let error = Error::usage(format!(
            "find the option `{name}` of the approach `{}`",
            approach.name
        ));
        return Err(error.hint(match names.as_slice() {
            [] => "it has no options".to_owned(),
            names => format!("its options are: {}", names.join(", ")),
        }));
    };
    match value {
        "on" => Ok((option, true)),
        "off" => Ok((option, false)),
        other => Err(Error::usage(format!("set the option `{name}`"))
            .cause(format!("`{other}` is neither on nor off"))
            .hint(format!("write {}:{name}=off", approach.name))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn equal_variants_share_a_name() {
        let name = |text: &str| Variant::parse(text).map(|variant| variant.name());
        assert_eq!(name("otter").unwrap(), "otter");
        assert_eq!(name("otter:planner=on").unwrap(), "otter");
        assert_eq!(
            name("otter:validation=off:planner=off").unwrap(),
            "otter:planner=off:validation=off"
        );
        let error = |text: &str| Variant::parse(text).err().unwrap().render();
        assert!(error("outer:planner=off").contains("failed to find the approach `outer`"));
        assert!(error("oter").contains("did you mean `otter`?"));
        insta::assert_snapshot!(error("otter:plan=off"), @r"
        error: failed to find the option `plan` of the approach `otter`
          hint: its options are: planner, refinement, validation, focal, tests, imports, import-repair
        ");
        insta::assert_snapshot!(error("otter:planner=no"), @r"
        error: failed to set the option `planner`
          cause: `no` is neither on nor off
          hint: write otter:planner=off
        ");
        insta::assert_snapshot!(error("otter:planner=off:planner=off"), @r"
        error: failed to read the approach `otter:planner=off:planner=off`
          cause: `planner` is set twice
          hint: keep one of the two
        ");
        insta::assert_snapshot!(error("snippet:planner=off"), @r"
        error: failed to find the option `planner` of the approach `snippet`
          hint: it has no options
        ");
    }

    #[test]
    fn effort_keeps_explicit_options() {
        let name = |text: &str, level| {
            let variant = Variant::parse(text).unwrap().at_effort(level);
            variant.map(|variant| variant.name())
        };
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(
            name("testwright", Effort::Low),
            own("testwright:fix=off:review=off")
        );
        assert_eq!(name("testwright", Effort::Medium), own("testwright"));
        assert_eq!(
            name("testwright:review=off", Effort::High),
            own("testwright:drafts=on:review=off")
        );
        assert_eq!(
            name("testwright:fix=on", Effort::Low),
            own("testwright:review=off")
        );
        assert_eq!(name("otter", Effort::High), None);
    }

    #[test]
    fn only_users_name_programs() {
        let text = "command(mine):python 'a b.py' --x=1,2:3";
        let variant = Variant::parse_with_commands(text).unwrap();
        assert_eq!(variant.name(), text);
        assert!(variant.command().is_some());
        for text in [text, "command:rm", "command"] {
            assert!(Variant::parse(text).is_err(), "{text}");
            assert!(Variant::parse_for_issues(text).is_err(), "{text}");
        }
        let otter = Variant::parse_with_commands("otter").unwrap();
        assert!(otter.command().is_none());
    }

    #[test]
    fn misspelt_command_prefix_has_a_suggestion() {
        let hint = |text| Variant::parse_with_commands(text).err().unwrap().hint;
        for text in ["comand:python x.py", "commnad(mine):x", "Command:x"] {
            assert_eq!(hint(text).unwrap(), "did you mean `command:`?", "{text}");
        }
        assert_eq!(hint("oter:x").unwrap(), "did you mean `otter`?");
        // Programs that settings and requests name are refused, so no hint suggests one.
        let refused = Variant::parse("comand:x").err().unwrap().render();
        assert!(!refused.contains("command:"), "{refused}");
    }

    #[test]
    fn option_names_are_unique() {
        for approach in ALL {
            let mut names: Vec<&str> = approach.options.iter().map(|o| o.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", approach.name);
            let is_fit = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(names.iter().all(|name| name.chars().all(is_fit)));
        }
    }
}
