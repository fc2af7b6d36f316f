//! All output to stdout and stderr. No other module of this crate prints.
//!
//! Output may contain untrusted text: names of files, remotes and tests, keys and values of settings, issues, replies
//! of a model, errors of engines and servers. So all of it goes through [`escape`], even if it does not go to a
//! terminal, because a file may be shown on a terminal later. Styles ([`Text`]) are added after that step, so only this
//! program can add them. Secrets of the settings are removed here too ([`hide_secrets`]), wherever they appear.

mod escaping;

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::Style;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use testwright_config::error::{Error, Result};
use testwright_config::settings::Redactor;

pub use escaping::{escape, escape_line};

static SECRETS: OnceLock<Redactor> = OnceLock::new();

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

    /// Returns the text with the escape sequences of its styles.
    fn rendered(&self) -> String {
        let mut all = String::new();
        for (style, text) in &self.0 {
            all.push_str(&format!("{style}{}{style:#}", sanitized(text)));
        }
        all
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Text(vec![(Style::new(), text.into())])
    }
}

/// Returns whether stdin and stdout are terminals.
pub fn is_interactive() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Prints text to stdout, without adding a newline.
pub fn print_stdout(text: impl Into<Text>) {
    anstream::print!("{}", text.into().rendered());
}

/// Prints text to stderr, followed by a newline.
pub fn print_stderr(text: impl Into<Text>) {
    anstream::eprintln!("{}", text.into().rendered());
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
    anstream::println!("{}", escaping::in_json(&text));
    Ok(())
}

/// Prints help as clap formats it. Prints usage errors as plain text, because they quote arguments.
pub fn usage(error: &clap::Error) {
    if error.use_stderr() {
        print_stderr(error.render().to_string().trim_end());
    } else {
        let _ = error.print();
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

/// A live status line on stderr, below permanent lines. If stderr is not a terminal, only the permanent lines appear.
pub struct ProgressLine(Option<ProgressBar>);

impl ProgressLine {
    /// Creates a bar of `all` steps, or a spinner if the number is unknown.
    pub fn new(all: Option<u64>, style: &str, hidden: bool) -> ProgressLine {
        if hidden || !std::io::stderr().is_terminal() {
            return ProgressLine(None);
        }
        let bar = all.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(if all.is_some() { 200 } else { 120 }));
        ProgressLine(Some(bar))
    }

    /// Returns whether stderr is a terminal, so that the live line is visible.
    pub fn is_shown() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Prints a permanent line.
    pub fn print_line(&self, text: &str) {
        match &self.0 {
            Some(bar) => bar.println(sanitized(text)),
            None => print_stderr(text),
        }
    }

    /// Sets the text of the live line.
    pub fn set_status(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(escape_line(&sanitized(text)).into_owned());
        }
    }

    /// Counts one more step. `fresh` is false for steps done earlier, which must not affect the estimated rate.
    pub fn advance(&self, fresh: bool) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
            if !fresh {
                bar.reset_eta();
            }
        }
    }

    /// Removes the live line, so that results can be printed.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Text {
    /// Returns the text without styles.
    pub fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.rendered()).to_string()
    }
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
            text.rendered(),
            "\x1b[1ma\\u{1b}[31mb\x1b[0m\\u{1b}]0;title\\u{7}\\u{9b}31m"
        );
    }
}
