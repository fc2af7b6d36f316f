//! Running statements and reading rows.

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Executor, FromRow};

use super::{Store, failure};
use testwright_config::error::Result;

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Any, AnyArguments>;

/// A condition on a column: `=` or `<`, and a value; without a value, the condition is ignored.
pub(super) type Condition<'c> = (&'static str, char, Option<&'c str>);

/// Lets a record be read from a row whose columns have the names of its fields. Flags are stored as 0 or 1.
macro_rules! from_row {
    ($record:ident { $($field:ident),+ $(,)? } $(flags { $($flag:ident),+ })?) => {
        impl<'r> sqlx::FromRow<'r, sqlx::any::AnyRow> for $record {
            fn from_row(row: &'r sqlx::any::AnyRow) -> std::result::Result<Self, sqlx::Error> {
                Ok($record {
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)+
                    $($($flag: sqlx::Row::try_get::<i64, _>(row, stringify!($flag))? != 0,)+)?
                })
            }
        }
    };
}
pub(super) use from_row;

/// Lets a type be read from a column of texts; `$parse` returns `None` for an unexpected text.
macro_rules! text_column {
    ($type:ty, $parse:expr) => {
        impl sqlx::Type<sqlx::Any> for $type {
            fn type_info() -> sqlx::any::AnyTypeInfo {
                <str as sqlx::Type<sqlx::Any>>::type_info()
            }
        }

        impl<'r> sqlx::Decode<'r, sqlx::Any> for $type {
            fn decode(
                value: sqlx::any::AnyValueRef<'r>,
            ) -> std::result::Result<Self, sqlx::error::BoxDynError> {
                let text = <&str as sqlx::Decode<'r, sqlx::Any>>::decode(value)?;
                let parse: fn(&str) -> Option<$type> = $parse;
                parse(text).ok_or_else(|| format!("unexpected text {text}").into())
            }
        }
    };
}
pub(super) use text_column;

impl Store {
    /// Runs a statement. `what` follows "failed to".
    pub(super) async fn execute(&self, what: &str, statement: Statement<'_>) -> Result<()> {
        self.changed_rows(what, statement).await.map(drop)
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(super) async fn changed_rows(&self, what: &str, statement: Statement<'_>) -> Result<u64> {
        let done = statement.execute(&self.pool).await;
        done.map(|done| done.rows_affected())
            .map_err(|e| failure(what, &e))
    }

    /// Reads the first row that a statement selects.
    pub(super) async fn find<T: for<'r> FromRow<'r, AnyRow>>(
        &self,
        what: &str,
        statement: Statement<'_>,
    ) -> Result<Option<T>> {
        let row = statement.fetch_optional(&self.pool).await;
        row.and_then(|row| row.as_ref().map(T::from_row).transpose())
            .map_err(|e| failure(what, &e))
    }

    /// Reads all rows that a statement selects.
    pub(super) async fn list<T: for<'r> FromRow<'r, AnyRow>>(
        &self,
        what: &str,
        statement: Statement<'_>,
    ) -> Result<Vec<T>> {
        let rows = statement.fetch_all(&self.pool).await;
        rows.and_then(|rows| rows.iter().map(T::from_row).collect())
            .map_err(|e| failure(what, &e))
    }

    /// Reads the texts in the only column that a statement selects.
    pub(super) async fn list_texts(
        &self,
        what: &str,
        statement: Statement<'_>,
    ) -> Result<Vec<String>> {
        let rows: Vec<(String,)> = self.list(what, statement).await?;
        Ok(rows.into_iter().map(|(text,)| text).collect())
    }

    /// Reads up to `limit` rows, with the largest values of a column first.
    pub(super) async fn list_newest<T: for<'r> FromRow<'r, AnyRow>>(
        &self,
        what: &str,
        statement: &str,
        conditions: &[Condition<'_>],
        sorted_by: &'static str,
        limit: u32,
    ) -> Result<Vec<T>> {
        let (mut statement, mut values) = (statement.to_owned(), Vec::new());
        for (column, comparison, value) in conditions {
            let Some(value) = value else { continue };
            let word = if values.is_empty() { "WHERE" } else { "AND" };
            values.push((*value).to_owned());
            let place = values.len();
            statement.push_str(&format!(" {word} {column} {comparison} ${place}"));
        }
        statement.push_str(&format!(" ORDER BY {sorted_by} DESC LIMIT {limit}"));
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for value in values {
            query = query.bind(value);
        }
        self.list(what, query).await
    }

    /// Reads the rows of a statement that ends before a list of values; without values, there are no rows. `rest`
    /// follows the list.
    pub(super) async fn list_in<T: for<'r> FromRow<'r, AnyRow>>(
        &self,
        what: &str,
        statement: &str,
        values: &[&str],
        rest: &str,
    ) -> Result<Vec<T>> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<String> = (1..=values.len()).map(|n| format!("${n}")).collect();
        let statement = format!("{statement} ({}) {rest}", places.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for value in values {
            query = query.bind((*value).to_owned());
        }
        self.list(what, query).await
    }
}

/// Returns the row of a writing statement. The statement must run to completion: SQLite commits only then, so a full
/// disk would otherwise go unnoticed.
pub(super) async fn returned_row<T: for<'r> FromRow<'r, AnyRow>>(
    statement: Statement<'_>,
    executor: impl Executor<'_, Database = Any>,
) -> std::result::Result<Option<T>, sqlx::Error> {
    let row = statement.fetch_all(executor).await?.pop();
    row.as_ref().map(T::from_row).transpose()
}
