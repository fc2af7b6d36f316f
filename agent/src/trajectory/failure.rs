//! A folder of a run that cannot be used, as the command line shows it.

use super::TrajectoryError;
use testwright_config::error::Error;

impl From<TrajectoryError> for Error {
    fn from(error: TrajectoryError) -> Self {
        match &error {
            TrajectoryError::Occupied { path } => Error::usage(error.to_string()).hint(format!(
                "choose another --out, or go on with that run: testwright run --resume {}",
                path.display()
            )),
            TrajectoryError::Link { .. } => Error::usage(error.to_string())
                .hint("name the folder for the results with --out DIR"),
            TrajectoryError::Busy { .. } => {
                Error::usage(error.to_string()).hint("wait for it, or choose another --out")
            }
            _ => match error.shortage() {
                Some(shortage) => Error::exhausted(shortage, error.to_string()),
                None => Error::infrastructure(error.to_string())
                    .hint("see to it that the folder can be written and the disk has room"),
            },
        }
    }
}
