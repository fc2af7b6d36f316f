//! Retries the start of a sandbox if the machine, not the request, caused the failure.

use std::time::Duration;

use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

const MAX_TRIES: u32 = 3;
/// Delay before the second attempt; each further delay is four times as long.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// Calls `start` until it succeeds, at most three times. The delays between the calls add up to less than two seconds.
///
/// # Errors
///
/// Kind `NotStarted` after the last attempt, or `Exhausted` if the machine lacks a resource. An error that another
/// attempt would also meet (unknown input, a missing state, a failed build) is returned unchanged at once.
pub async fn retry_start<T, F: Future<Output = Result<T>>>(start: impl Fn() -> F) -> Result<T> {
    retry(start, FIRST_DELAY).await
}

async fn retry<T, F: Future<Output = Result<T>>>(
    start: impl Fn() -> F,
    mut delay: Duration,
) -> Result<T> {
    let mut attempt = 1;
    loop {
        match start().await {
            Err(error) if !may_start_later(error.kind) => return Err(error),
            Err(error) if attempt == MAX_TRIES => {
                let kind = match error.kind {
                    ErrorKind::Exhausted(_) => error.kind,
                    _ => ErrorKind::NotStarted,
                };
                return Err(SandboxError { kind, ..error });
            }
            Err(error) => tracing::warn!(%error, attempt, "the sandbox did not start"),
            started => return started,
        }
        tokio::time::sleep(delay).await;
        attempt += 1;
        delay *= 4;
    }
}

fn may_start_later(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Dead | ErrorKind::System | ErrorKind::Unavailable | ErrorKind::Exhausted(_) => {
            true
        }
        ErrorKind::Input | ErrorKind::NotFound | ErrorKind::Build | ErrorKind::NotStarted => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Returns the result, and the number of attempts, if the first `failing` ones fail.
    async fn start(failing: u32, kind: ErrorKind) -> (Result<u32>, u32) {
        let tries = AtomicU32::new(0);
        let begin = || async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                attempt if attempt < failing => Err(SandboxError::new(kind, "start it")),
                attempt => Ok(attempt),
            }
        };
        let started = retry(begin, Duration::ZERO).await;
        (started, tries.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn machine_failures_are_retried() {
        let started = start(2, ErrorKind::Dead).await;
        assert_eq!(started, (Ok(2), 3));
        let (failed, tries) = start(9, ErrorKind::System).await;
        assert_eq!(
            (failed.unwrap_err().kind, tries),
            (ErrorKind::NotStarted, 3)
        );
        let (failed, tries) = start(9, ErrorKind::Build).await;
        assert_eq!((failed.unwrap_err().kind, tries), (ErrorKind::Build, 1));
    }
}
