//! Errors about an unusable run folder, as the command line shows them.

use std::path::Path;

use testwright_sandboxes::sandbox::quote;

use super::{Event, Events, TrajectoryError};
use testwright_config::error::Error;

/// Returns whether the run in this folder has ended, so that it cannot be resumed.
fn has_ended(folder: &Path) -> bool {
    let events = Events::open(folder).ok();
    let last = events.and_then(|events| events.map_while(Result::ok).last());
    matches!(last, Some(Event::Ended { .. }))
}

impl From<TrajectoryError> for Error {
    fn from(error: TrajectoryError) -> Self {
        match &error {
            TrajectoryError::Occupied { path } => {
                let hint = match has_ended(path) {
                    true => "choose another --out".to_owned(),
                    false => format!(
                        "choose another --out, or resume that run: testwright run --resume {}",
                        quote(&path.to_string_lossy())
                    ),
                };
                Error::usage(error.to_string()).hint(hint)
            }
            TrajectoryError::Link { .. } => Error::usage(error.to_string())
                .hint("pass the folder for the results with --out DIR"),
            TrajectoryError::Busy { .. } => {
                Error::usage(error.to_string()).hint("wait for it, or choose another --out")
            }
            _ => match error.shortage() {
                Some(shortage) => Error::exhausted(shortage, error.to_string()),
                None => Error::infrastructure(error.to_string())
                    .hint("make sure the folder is writable and the disk is not full"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_in_hint_quotes_folder() {
        let path = "runs/a b".into();
        let error = Error::from(TrajectoryError::Occupied { path });
        let command = "testwright run --resume 'runs/a b'";
        assert!(error.hint.is_some_and(|hint| hint.ends_with(command)));
    }
}
