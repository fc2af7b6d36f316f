//! Errors about an unusable run folder, as the command line shows them.

use super::TrajectoryError;
use testwright_config::error::Error;

impl From<TrajectoryError> for Error {
    fn from(error: TrajectoryError) -> Self {
        match &error {
            TrajectoryError::Occupied { path } => Error::usage(error.to_string()).hint(format!(
                "choose another --out, or resume that run: testwright run --resume {}",
                path.display()
            )),
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
