//! Ids and times of jobs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::queries::text_column;

/// The id of a job. Ids sort by creation time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    /// Creates an id from the time (milliseconds, as 11 hexadecimal digits) and 8 random characters.
    pub fn new(now: i64) -> Self {
        let random = std::iter::repeat_with(fastrand::alphanumeric).take(8);
        JobId(format!(
            "{now:011x}{}",
            random.collect::<String>().to_lowercase()
        ))
    }

    /// Parses an id from a client; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == 19
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        is_id.then(|| JobId(text.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for JobId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_column!(JobId, |text| Some(JobId(text.to_owned())));

/// Converts a time of the store: milliseconds since 1970, UTC.
pub fn timestamp(milliseconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default()
}

/// Returns the current time, in milliseconds since 1970, UTC.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
