//! One finding of `testwright doctor`.

use std::borrow::Cow;

use serde::Serialize;

use crate::cli::output::single_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// Optional, or not ideal.
    Note,
    Missing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub area: Cow<'static, str>,
    pub what: &'static str,
    pub state: State,
    pub text: String,
    pub hint: Option<String>,
}

impl Finding {
    pub(super) fn ok(
        area: impl Into<Cow<'static, str>>,
        what: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Finding {
            area: area.into(),
            what,
            state: State::Ok,
            text: text.into(),
            hint: None,
        }
    }

    pub(super) fn note(
        area: impl Into<Cow<'static, str>>,
        what: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Finding {
            state: State::Note,
            ..Finding::ok(area, what, text)
        }
    }

    pub(super) fn missing(
        area: impl Into<Cow<'static, str>>,
        what: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Finding {
            state: State::Missing,
            ..Finding::ok(area, what, text)
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn hint_if(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    pub(super) fn render(&self) -> String {
        let state = match self.state {
            State::Ok => "ok",
            State::Note => "note",
            State::Missing => "missing",
        };
        let text = self.text.trim_end().replace('\n', "\n             ");
        let mut line = format!("  {state:<8} {}: {text}\n", self.what);
        if let Some(hint) = &self.hint {
            line.push_str(&format!("           → {}\n", single_line(hint)));
        }
        line
    }
}
