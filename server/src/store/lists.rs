//! Paginated lists of stored items, newest first: ids sort by creation time.

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Executor};

use super::Store;

/// A condition on a column: `=` or `<`, and a value; without a value, the condition is ignored.
pub(super) type Condition<'c> = (&'static str, char, Option<&'c str>);

impl Store {
    /// Selects up to `limit` rows, with the largest values of a column first.
    pub(super) async fn select_newest(
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

    /// Runs a statement that ends before a list of values; without values, returns no rows. `rest` follows the list.
    pub(super) async fn select_in(
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

/// Returns the row of a writing statement. The statement must run to completion: SQLite commits only then, so a full
/// disk would otherwise go unnoticed.
pub(super) async fn returned_row<'q>(
    query: Query<'q, Any, AnyArguments>,
    executor: impl Executor<'_, Database = Any>,
) -> std::result::Result<Option<AnyRow>, sqlx::Error> {
    Ok(query.fetch_all(executor).await?.pop())
}
