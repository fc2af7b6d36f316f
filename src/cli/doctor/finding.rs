//! One finding of `testwright doctor`.

use std::borrow::Cow;

use serde::Serialize;

use crate::cli::evidence_card::{GREEN, PLAIN, RED, YELLOW};
use crate::cli::output::{Text, escape_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum FindingStatus {
    Ok,
    /// Optional, or not ideal.
    Note,
    Missing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Finding {
    pub area: Cow<'static, str>,
    pub name: &'static str,
    pub state: FindingStatus,
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
            name: what,
            state: FindingStatus::Ok,
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
            state: FindingStatus::Note,
            ..Finding::ok(area, what, text)
        }
    }

    pub(super) fn missing(
        area: impl Into<Cow<'static, str>>,
        what: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Finding {
            state: FindingStatus::Missing,
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

    /// Adds the finding and its hint to a text.
    pub(super) fn render(&self, text: &mut Text) {
        let (style, state) = match self.state {
            FindingStatus::Ok => (GREEN, "ok"),
            FindingStatus::Note => (YELLOW, "note"),
            FindingStatus::Missing => (RED, "missing"),
        };
        let detail = self.text.trim_end().replace('\n', "\n             ");
        text.push(PLAIN, "  ")
            .push(style, format!("{state:<8}"))
            .push(PLAIN, format!(" {}: {detail}\n", self.name));
        if let Some(hint) = &self.hint {
            text.push(PLAIN, format!("           → {}\n", escape_line(hint)));
        }
    }
}
