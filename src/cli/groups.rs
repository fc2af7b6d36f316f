//! The commands in groups, as `testwright --help` lists them.

use anstyle::Style;
use clap::{Arg, ArgAction, Subcommand as _};

use super::Command;
use super::headings::GLOBAL;

/// The groups, with the names of their commands.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Write tests",
        &[
            "run", "revise", "cover", "check", "show", "apply", "pr", "history", "inspect", "list",
            "replay",
        ],
    ),
    (
        "Benchmarks",
        &["eval", "compare", "select", "mine", "clover"],
    ),
    ("Server", &["serve", "worker", "runs", "tokens", "mcp"]),
    (
        "Setup",
        &[
            "doctor",
            "environment",
            "approaches",
            "models",
            "tools",
            "schema",
            "prompts",
            "config",
            "cache",
            "completions",
            "man",
            "version",
        ],
    ),
];

/// Returns the template of the main help, since clap has no groups of commands.
pub(super) fn help_template() -> String {
    let (head, name) = (Style::new().bold().underline(), Style::new().bold());
    let commands = commands();
    let mut list = String::new();
    for (title, names) in GROUPS {
        list.push_str(&format!("{head}{title}:{head:#}\n"));
        let commands = names
            .iter()
            .filter_map(|name| commands.find_subcommand(name));
        for command in commands {
            let about = command.get_about().map(ToString::to_string);
            list.push_str(&format!(
                "  {name}{:<11}{name:#}  {}\n",
                command.get_name(),
                about.unwrap_or_default()
            ));
        }
        list.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{head}Options:{head:#}\n{{options}}{{after-help}}"
    )
}

/// Returns the option `--help`. The one of clap would be listed first, under its own heading.
pub(super) fn help_argument() -> Arg {
    Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .global(true)
        .help_heading(GLOBAL)
        .help("Print help (-h prints a summary)")
}

fn commands() -> clap::Command {
    Command::augment_subcommands(clap::Command::new("testwright"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::output::HELP_WIDTH;
    use super::*;

    #[test]
    fn descriptions_fit_on_one_line() {
        for command in commands().get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            let len = 15 + about.chars().count();
            assert!(len <= HELP_WIDTH, "{about}");
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let mut names: Vec<&str> = names.collect();
        let commands = commands();
        let mut existing: Vec<&str> = commands
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        names.sort_unstable();
        existing.sort_unstable();
        assert_eq!(names, existing);
    }
}
