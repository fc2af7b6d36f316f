//! Pages of lists, newest first.

use super::{ApiResult, JobId, Problem};
use crate::fields::check_path;

/// Default and maximum number of items on a page.
const PAGE: u32 = 50;
const MAX_PAGE_SIZE: u32 = 500;

/// Returns the page size that a client asks for, or the default.
///
/// # Errors
///
/// Fails with 400 if the size is not between 1 and 500.
pub fn limit(requested_limit: Option<u32>) -> ApiResult<u32> {
    let limit = requested_limit.unwrap_or(PAGE);
    match (1..=MAX_PAGE_SIZE).contains(&limit) {
        true => Ok(limit),
        false => Err(Problem::bad_request("limit is not between 1 and 500")),
    }
}

/// Parses the id before which a page starts; `what` names the kind of item.
///
/// # Errors
///
/// Fails with 400 if the id is malformed.
pub fn before(raw_id: Option<&str>, what: &str) -> ApiResult<Option<JobId>> {
    let malformed = || Problem::bad_request(format!("before is not the id of a {what}"));
    let parsed = raw_id.map(|id| JobId::parse(id).ok_or_else(malformed));
    parsed.transpose()
}

/// Cuts a list with one extra item to the page size. Returns the last item of the page if there are more pages.
pub fn truncate_page<T>(items: &mut Vec<T>, limit: u32) -> Option<&T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    items.last().filter(|_| more)
}

/// Checks the values of filters.
///
/// # Errors
///
/// Fails with 400 if a value is too long, has invisible characters, or begins or ends with whitespace.
pub fn check_filters(filters: &[(&str, &Option<String>)]) -> ApiResult<()> {
    for (field, text) in filters {
        let text = text.as_deref().unwrap_or_default();
        check_path(field, text).map_err(|error| Problem::bad_request(error.with_cause()))?;
    }
    Ok(())
}
