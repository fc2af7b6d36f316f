//! Work that may be rejected, such as a patch that does not apply.

use crate::sandbox::Result;

/// The outer error says why the work failed, and the inner one why it was rejected.
pub(super) type Accepted<T> = Result<std::result::Result<T, String>>;

/// Returns the value, or leaves the function with the reason for the rejection.
macro_rules! accepted {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(reason) => return Ok(Err(reason)),
        }
    };
}

pub(super) use accepted;
