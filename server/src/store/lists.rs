//! Lists of what is stored, the newest first and a page at a time: ids sort by the time at which what they name was made.

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Executor};

use super::Store;

/// What has to hold for a row: of a column, `=` or `<`, a value; where there is none, it holds for all.
pub(super) type Condition<'c> = (&'static str, char, Option<&'c str>);

impl Store {
    /// Rows of a statement, at most so many, those with the largest value of a column first.
    pub(super) async fn newest(
        &self,
        statement: &str,
        conditions: &[Condition<'_>],
        sorted_by: &'static str,
        limit: u32,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        let (mut statement, mut values) = (statement.to_owned(), Vec::new());
        for (column, comparison, value) in conditions {
            let Some(value) = value else { continue };
            let word = if values.is_empty() { "WHERE" } else { "AND" };
            values.push((*value).to_owned());
            let place = values.len();
            statement.push_str(&format!(" {word} {column} {comparison} ${place}"));
        }
        statement.push_str(&format!(" ORDER BY {sorted_by} DESC LIMIT {limit}"));
        let mut query = sqlx::query(sqlx::AssertSqlSafe(statement));
        for value in values {
            query = query.bind(value);
        }
        query.fetch_all(&self.pool).await
    }

    /// Rows of a statement that ends where a list of values belongs; none where there are no values. `rest` follows the list.
    pub(super) async fn of_all(
        &self,
        statement: &str,
        values: &[&str],
        rest: &str,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<String> = (1..=values.len()).map(|n| format!("${n}")).collect();
        let statement = format!("{statement} ({}) {rest}", places.join(", "));
        let mut query = sqlx::query(sqlx::AssertSqlSafe(statement));
        for value in values {
            query = query.bind((*value).to_owned());
        }
        query.fetch_all(&self.pool).await
    }
}

/// The row that a writing statement returns. The statement is run to its end: SQLite commits there, and a full disk would not be
/// noticed before.
pub(super) async fn returned_row<'q>(
    query: Query<'q, Any, AnyArguments>,
    executor: impl Executor<'_, Database = Any>,
) -> std::result::Result<Option<AnyRow>, sqlx::Error> {
    Ok(query.fetch_all(executor).await?.pop())
}
