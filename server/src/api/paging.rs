//! Pages of lists, the newest first.

use axum::http::StatusCode;

use super::{ApiResult, Problem};
use crate::fields::check_path;

/// What a page holds, unless told otherwise, and at most.
const PAGE: u32 = 50;
const MAX_PAGE_SIZE: u32 = 500;

/// How many a client asks for.
pub fn limit(asked: Option<u32>) -> ApiResult<u32> {
    let limit = asked.unwrap_or(PAGE);
    match (1..=MAX_PAGE_SIZE).contains(&limit) {
        true => Ok(limit),
        false => Err(bad("limit is not between 1 and 500")),
    }
}

/// The one before which a client asks for others; `what` says what it is to be the id of.
pub fn before<I>(
    asked: Option<&str>,
    parse: impl Fn(&str) -> Option<I>,
    what: &str,
) -> ApiResult<Option<I>> {
    let parsed =
        asked.map(|id| parse(id).ok_or_else(|| bad(&format!("before is not the id of a {what}"))));
    parsed.transpose()
}

/// Of one more than a page holds, those of the page, and the last of them where there are others behind it.
pub fn cut<T>(found: &mut Vec<T>, limit: u32) -> Option<&T> {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    found.last().filter(|_| more)
}

/// Checks the texts by which a list is filtered, as those of requests are.
pub fn check_filters(filters: &[(&str, &Option<String>)]) -> ApiResult<()> {
    for (field, text) in filters {
        let text = text.as_deref().unwrap_or_default();
        check_path(field, text).map_err(|error| bad(&error.with_cause()))?;
    }
    Ok(())
}

fn bad(detail: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}
