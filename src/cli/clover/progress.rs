//! Progress of `testwright clover` on stderr: a live line on a terminal, otherwise plain lines.

use std::sync::Mutex;

use crate::cli::output::ProgressLine;
use testwright_agent::agent::Progress;
use testwright_config::lock::lock;

pub(super) struct CloverProgress {
    live: ProgressLine,
    is_live: bool,
    /// Last status printed without a terminal, so that it is not repeated.
    last: Mutex<String>,
}

impl CloverProgress {
    /// Creates the progress of `all` questions; `None` shows a spinner instead of a bar.
    pub(super) fn new(all: Option<usize>, quiet: bool) -> Self {
        CloverProgress {
            live: ProgressLine::new(all, quiet),
            is_live: quiet || ProgressLine::is_shown(),
            last: Mutex::default(),
        }
    }

    pub(super) fn status(&self, text: &str) {
        self.live.set_status(text);
        if self.is_live {
            return;
        }
        let mut last = lock(&self.last);
        if *last != text {
            text.clone_into(&mut last);
            self.live.print_line(text);
        }
    }

    pub(super) fn line(&self, text: &str) {
        self.live.print_line(text);
    }

    pub(super) fn advance(&self, fresh: bool) {
        self.live.advance(fresh);
    }

    pub(super) fn clear(&self) {
        self.live.clear();
    }
}

impl Progress for CloverProgress {
    fn phase(&self, name: &str, detail: &str) {
        self.status(&format!("{name}: {detail}"));
    }

    fn note(&self, text: &str) {
        self.live.print_note(text);
    }
}
