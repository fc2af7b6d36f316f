//! All output to stdout and stderr. No other module of this crate prints.
//!
//! Output may contain untrusted text: names of files, remotes and tests, keys and values of settings, issues, replies
//! of a model, errors of engines and servers. So all of it goes through [`escape`], even if it does not go to a
//! terminal, because a file may be shown on a terminal later. Styles ([`Text`]) are added after that step, so only this
//! program can add them. Secrets of the settings are removed here too ([`hide_secrets`]), wherever they appear. In a step
//! of GitHub Actions, text cannot contain commands for the runner.

mod escaping;
mod layout;
mod progress_line;
mod workflow;

use std::sync::OnceLock;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use clap::error::ErrorKind;
use serde::Serialize;

use testwright_config::error::{Error, Result};
use testwright_config::settings::Redactor;

pub use escaping::{escape, escape_line};
pub use layout::wrap;
pub use progress_line::ProgressLine;

static SECRETS: OnceLock<Redactor> = OnceLock::new();

/// Width of help that does not go to a terminal, and maximum width of help.
pub const HELP_WIDTH: usize = 100;

/// The amount of output on stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Progress and notes, too.
    #[default]
    Normal,
    /// Details of the sandbox and of the build of the environment, too.
    Verbose,
}

static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Sets the verbosity of this process. Only the first call has an effect.
pub fn set_verbosity(verbosity: Verbosity) {
    let _ = VERBOSITY.set(verbosity);
}

/// Returns the verbosity of this process.
pub fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or_default()
}

/// Sets when to use colours. Without an option, anstream reads NO_COLOR, CLICOLOR and CLICOLOR_FORCE. FORCE_COLOR
/// counts as the last of them.
pub fn set_color(option: clap::ColorChoice) {
    let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = || value("FORCE_COLOR").is_some_and(|value| value != "0");
    match option {
        clap::ColorChoice::Always => ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => ColorChoice::Never.write_global(),
        clap::ColorChoice::Auto if is_forced() && value("NO_COLOR").is_none() => {
            ColorChoice::Always.write_global();
        }
        clap::ColorChoice::Auto => {}
    }
}

/// Hides these secrets in all later output. Only the first call has an effect, since a command reads its settings once.
pub fn hide_secrets(secrets: Redactor) {
    let _ = SECRETS.set(secrets);
}

fn sanitized(text: &str) -> String {
    match SECRETS.get() {
        Some(secrets) => escape(&secrets.text(text)).into_owned(),
        None => escape(text).into_owned(),
    }
}

/// Styled text. Escape sequences in the added text are shown as text.
#[derive(Debug, Default)]
pub struct Text(Vec<(Style, String)>);

impl Text {
    pub fn push(&mut self, style: Style, text: impl Into<String>) -> &mut Self {
        self.0.push((style, text.into()));
        self
    }

    /// Returns the text with the escape sequences of its styles. If `for_runner` is set, it contains no commands for
    /// the runner of GitHub Actions.
    fn rendered(&self, for_runner: bool) -> String {
        let mut all = String::new();
        let mut commands = workflow::CommandEscaper::default();
        for (style, text) in &self.0 {
            let mut text = sanitized(text);
            if for_runner {
                text = commands.escape(&text);
            }
            all.push_str(&format!("{style}{text}{style:#}"));
        }
        all
    }

    /// Returns the text without styles.
    pub fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.rendered(false)).to_string()
    }

    /// Wraps text without styles at a width, and styles its labels.
    fn into_message(self, width: Option<usize>) -> Text {
        match self.0.as_slice() {
            [(style, text)] if *style == Style::new() => {
                // First, since a secret may have several lines.
                let text = sanitized(text);
                match width {
                    Some(width) => with_labels(&wrap(&text, width)),
                    None => with_labels(&text),
                }
            }
            _ => self,
        }
    }
}

const LABELS: &[(&str, Style)] = &[
    ("error:", AnsiColor::Red.on_default().bold()),
    ("note:", AnsiColor::Yellow.on_default().bold()),
    ("cause:", Style::new().bold()),
    ("hint:", AnsiColor::Cyan.on_default().bold()),
    ("tip:", AnsiColor::Cyan.on_default().bold()),
];

/// Styles labels at the beginning of lines.
fn with_labels(text: &str) -> Text {
    let mut styled = Text::default();
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches(' ');
        let (indent, _) = line.split_at(line.len() - rest.len());
        match LABELS.iter().find(|(label, _)| rest.starts_with(label)) {
            Some((label, style)) if indent.len() <= 2 => {
                styled.push(Style::new(), indent).push(*style, *label);
                styled.push(Style::new(), &rest[label.len()..]);
            }
            _ => {
                styled.push(Style::new(), line);
            }
        }
    }
    styled
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Text(vec![(Style::new(), text.into())])
    }
}

/// Prints text to stdout, without adding a newline.
pub fn print_stdout(text: impl Into<Text>) {
    let for_runner = workflow::reads(std::io::stdout());
    anstream::print!("{}", text.into().rendered(for_runner));
}

/// Prints text to stderr, followed by a newline.
pub fn print_stderr(text: impl Into<Text>) {
    let text = text.into().into_message(stderr_columns());
    anstream::eprintln!("{}", text.rendered(workflow::reads(std::io::stderr())));
}

/// Prints a note or a path to stderr, unless output is quiet.
pub fn print_status(text: impl Into<Text>) {
    if verbosity() != Verbosity::Quiet {
        print_stderr(text);
    }
}

/// Prints a note or a path to stderr, unless output is quiet. It is not wrapped, so that a command in it can be copied.
pub fn print_status_line(text: impl Into<Text>) {
    if verbosity() != Verbosity::Quiet {
        let text = text.into().into_message(None);
        anstream::eprintln!("{}", text.rendered(workflow::reads(std::io::stderr())));
    }
}

/// Prints an error to stderr. In a step of GitHub Actions it becomes an annotation.
pub fn print_error(error: &Error) {
    print_error_text(&error.render());
}

fn print_error_text(text: &str) {
    if is_in_workflow() {
        let text = sanitized(text.trim_start_matches("error: "));
        anstream::eprintln!("{}", workflow::command("error", &text));
    } else {
        print_stderr(text);
    }
}

/// Starts a group of lines on stderr that GitHub Actions folds. Does nothing elsewhere.
pub fn start_group(title: &str) {
    if is_in_workflow() {
        anstream::eprintln!("{}", workflow::command("group", &sanitized(title)));
    }
}

/// Ends a group of lines.
pub fn end_group() {
    if is_in_workflow() {
        anstream::eprintln!("{}", workflow::command("endgroup", ""));
    }
}

/// Returns whether stderr is the log of a step of GitHub Actions.
pub fn is_in_workflow() -> bool {
    workflow::reads(std::io::stderr())
}

/// Shortens text to one line of at most `max_len` characters. Secrets are hidden first, so that none is cut in two.
pub fn cut(text: &str, max_len: usize) -> String {
    layout::cut(&escape_line(&sanitized(text)), max_len).into_owned()
}

/// Returns the columns of stdout, if it is a terminal.
pub fn stdout_columns() -> Option<usize> {
    layout::columns(std::io::stdout())
}

/// Returns the columns of stderr, if it is a terminal.
pub fn stderr_columns() -> Option<usize> {
    layout::columns(std::io::stderr())
}

/// Prints a record as JSON to stdout. Invisible characters are escaped, which does not change the JSON value.
///
/// # Errors
///
/// Fails if the value cannot be serialized as JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let failed = |error: serde_json::Error| Error::infrastructure("encode the record").cause(error);
    let mut value = serde_json::to_value(value).map_err(failed)?;
    if let Some(secrets) = SECRETS.get() {
        secrets.json(&mut value);
    }
    let text = serde_json::to_string_pretty(&value).map_err(failed)?;
    let mut text = escaping::in_json(&text);
    if workflow::reads(std::io::stdout()) {
        text = workflow::escape_json(&text);
    }
    anstream::println!("{text}");
    Ok(())
}

/// Prints help, wrapped. Prints usage errors without the styles of clap, because they quote arguments.
pub fn usage(error: &clap::Error) {
    let help = |columns: Option<usize>| {
        let width = columns.map_or(HELP_WIDTH, |columns| columns.min(HELP_WIDTH));
        wrap(&error.render().ansi().to_string(), width)
    };
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            anstream::eprint!("{}", help(stderr_columns()));
        }
        _ if error.use_stderr() => print_error_text(error.render().to_string().trim_end()),
        _ => anstream::print!("{}", help(stdout_columns())),
    }
}

/// Reports panics through [`print_stderr`], because their messages may quote untrusted text.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        print_stderr(format!("internal error: {panic}"));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            print_stderr(trace.to_string());
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_styles_add_escapes() {
        let mut text = Text::default();
        text.push(Style::new().bold(), "a\x1b[31mb")
            .push(Style::new(), "\x1b]0;title\x07\u{9b}31m");
        assert_eq!(
            text.rendered(false),
            "\x1b[1ma\\u{1b}[31mb\x1b[0m\\u{1b}]0;title\\u{7}\\u{9b}31m"
        );
    }

    #[test]
    fn labels_are_styled_at_line_starts() {
        let text = Text::from("error: a\n  hint: b\n       note: c").into_message(None);
        let [red, cyan] = [AnsiColor::Red, AnsiColor::Cyan].map(|color| color.on_default().bold());
        assert_eq!(
            text.rendered(false),
            format!("{red}error:{red:#} a\n  {cyan}hint:{cyan:#} b\n       note: c")
        );
    }
}
