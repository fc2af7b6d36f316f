//! The one way to the terminal. Whatever is printed may hold text of strangers (names of files, remotes and tests,
//! keys and values of settings, issues, replies of a model, errors of engines and servers), so all of it goes through
//! [`visible`] here, on stdout and stderr, on a terminal and elsewhere: what is in a file today is on a terminal
//! tomorrow. Styles are added behind it ([`Text`]), and come from us alone. Secrets of the settings are taken out
//! here as well ([`hide`]), no matter who quoted them. Nothing else in this crate prints.

mod visible;

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::Style;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use testwright_config::error::{Error, Result};
use testwright_config::settings::Redactor;

pub use visible::{single_line, visible};

static SECRETS: OnceLock<Redactor> = OnceLock::new();

/// From now on these secrets do not show. The first call counts: a command reads its settings once.
pub fn hide(secrets: Redactor) {
    let _ = SECRETS.set(secrets);
}

fn sanitized(text: &str) -> String {
    match SECRETS.get() {
        Some(secrets) => visible(&secrets.text(text)).into_owned(),
        None => visible(text).into_owned(),
    }
}

/// Text with styles: what is pushed is shown as text, whatever it holds.
#[derive(Debug, Default)]
pub struct Text(Vec<(Style, String)>);

impl Text {
    pub fn push(&mut self, style: Style, text: impl Into<String>) -> &mut Self {
        self.0.push((style, text.into()));
        self
    }

    /// With the control sequences of its styles.
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

/// Somebody can look at the screen and press keys.
pub fn is_interactive() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// To stdout, as it is.
pub fn out(text: impl Into<Text>) {
    anstream::print!("{}", text.into().rendered());
}

/// To stderr, with a line end.
pub fn err(text: impl Into<Text>) {
    anstream::eprintln!("{}", text.into().rendered());
}

/// A record for programs, to stdout. It stays the same JSON: what would not show is written as an escape.
pub fn json(value: &impl Serialize) -> Result<()> {
    let failed = |error: serde_json::Error| Error::infrastructure("encode the record").cause(error);
    let mut value = serde_json::to_value(value).map_err(failed)?;
    if let Some(secrets) = SECRETS.get() {
        secrets.json(&mut value);
    }
    let text = serde_json::to_string_pretty(&value).map_err(failed)?;
    anstream::println!("{}", visible::in_json(&text));
    Ok(())
}

/// What the parser of the command line has to say: help as it made it, errors, which quote arguments, as plain text.
pub fn usage(error: &clap::Error) {
    if error.use_stderr() {
        err(error.render().to_string().trim_end());
    } else {
        let _ = error.print();
    }
}

/// A panic is reported like everything else: its message may quote anything.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        err(format!("internal error: {panic}"));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            err(trace.to_string());
        }
    }));
}

/// A line on stderr that changes, with lines that stay above it. Where stderr is not a terminal there are only those.
pub struct Live(Option<ProgressBar>);

impl Live {
    /// Of so many; `None` where nobody knows how many.
    pub fn new(all: Option<u64>, style: &str, hidden: bool) -> Live {
        if hidden || !std::io::stderr().is_terminal() {
            return Live(None);
        }
        let bar = all.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(if all.is_some() { 200 } else { 120 }));
        Live(Some(bar))
    }

    /// Somebody sees it change.
    pub fn is_shown() -> bool {
        std::io::stderr().is_terminal()
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        match &self.0 {
            Some(bar) => bar.println(sanitized(text)),
            None => err(text),
        }
    }

    /// What the line says now.
    pub fn status(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(single_line(&sanitized(text)).into_owned());
        }
    }

    /// One more is done; `fresh` is false for what was there from before, which says nothing of the rate.
    pub fn advance(&self, fresh: bool) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
            if !fresh {
                bar.reset_eta();
            }
        }
    }

    /// Takes the line away, so that results can be printed.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Text {
    /// As it is where there is no terminal.
    pub fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.rendered()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_ours_and_text_is_text() {
        let mut text = Text::default();
        text.push(Style::new().bold(), "a\x1b[31mb")
            .push(Style::new(), "\x1b]0;title\x07\u{9b}31m");
        assert_eq!(
            text.rendered(),
            "\x1b[1ma\\u{1b}[31mb\x1b[0m\\u{1b}]0;title\\u{7}\\u{9b}31m"
        );
    }
}
