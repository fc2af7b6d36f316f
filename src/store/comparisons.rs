//! Comparisons whose runs are in the store.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::any::AnyRow;

use super::runs::{RunId, StoredRun, now};
use super::{Store, failure};
use crate::error::Result;

#[derive(Debug, Clone, PartialEq)]
pub struct StoredComparison {
    /// The batch of its runs.
    pub id: RunId,
    pub created_at: i64,
    pub owner: String,
    /// Of the dataset.
    pub name: String,
    /// comparison.json
    pub plan: String,
    /// It was graded.
    pub has_report: bool,
    /// Of all runs together.
    pub max_dollars: Option<f64>,
    /// No more runs are to be asked for.
    pub is_cancelled: bool,
}

/// One to be stored.
#[derive(Debug, Clone)]
pub struct NewComparison<'n> {
    pub id: &'n RunId,
    pub owner: &'n str,
    pub name: &'n str,
    /// comparison.json
    pub plan: &'n str,
    pub max_dollars: Option<f64>,
}

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonReport {
    /// report.json
    pub report: String,
    /// report.html
    pub page: String,
}

const COLUMNS: &str = "id, created_at, owner, name, plan, max_dollars, cancelled, CASE WHEN report IS NULL THEN 0 ELSE 1 END AS has_report";

impl Store {
    /// Stores what is compared; of one that is there already, what it is now. It goes on where it was cancelled.
    pub async fn put_comparison(&self, new: &NewComparison<'_>) -> Result<()> {
        sqlx::query(
            "INSERT INTO comparisons (id, created_at, owner, name, plan, max_dollars, cancelled) VALUES ($1, $2, $3, $4, $5, $6, 0) \
             ON CONFLICT (id) DO UPDATE SET plan = excluded.plan, max_dollars = excluded.max_dollars, cancelled = 0",
        )
        .bind(new.id.as_str())
        .bind(now())
        .bind(new.owner)
        .bind(new.name)
        .bind(new.plan)
        .bind(new.max_dollars)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure("store the comparison", &e))
    }

    pub async fn put_comparison_report(&self, id: &RunId, report: &ComparisonReport) -> Result<()> {
        sqlx::query("UPDATE comparisons SET report = $2, page = $3 WHERE id = $1")
            .bind(id.as_str())
            .bind(&report.report)
            .bind(&report.page)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|e| failure("store the report", &e))
    }

    /// The newest first.
    pub async fn comparisons(&self, most: u32) -> Result<Vec<StoredComparison>> {
        let statement = format!("SELECT {COLUMNS} FROM comparisons ORDER BY id DESC LIMIT $1");
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await
            .map_err(|e| failure("list the comparisons", &e))?;
        rows.iter().map(read).collect()
    }

    pub async fn comparison(&self, id: &RunId) -> Result<Option<StoredComparison>> {
        let statement = format!("SELECT {COLUMNS} FROM comparisons WHERE id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(|e| failure("read the comparison", &e))?;
        row.as_ref().map(read).transpose()
    }

    pub async fn comparison_report(&self, id: &RunId) -> Result<Option<ComparisonReport>> {
        let failed = |e: &sqlx::Error| failure("read the report", e);
        let row = sqlx::query(
            "SELECT report, page FROM comparisons WHERE id = $1 AND report IS NOT NULL",
        )
        .bind(id.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(|e| failed(&e))?;
        let read = |row: AnyRow| {
            Ok(ComparisonReport {
                report: row.try_get("report")?,
                page: row.try_get("page")?,
            })
        };
        row.map(read)
            .transpose()
            .map_err(|e: sqlx::Error| failed(&e))
    }

    /// How many of the runs of these comparisons are where: all from the oldest to the newest.
    pub async fn batch_statuses(
        &self,
        oldest: &RunId,
        newest: &RunId,
    ) -> Result<BTreeMap<String, BTreeMap<String, i64>>> {
        let failed = |e: &sqlx::Error| failure("count the runs", e);
        let rows = sqlx::query(
            "SELECT batch, status, COUNT(*) AS runs FROM runs WHERE batch >= $1 AND batch <= $2 GROUP BY batch, status",
        )
        .bind(oldest.as_str())
        .bind(newest.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(|e| failed(&e))?;
        let mut counted: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for row in &rows {
            let read = || -> std::result::Result<(String, String, i64), sqlx::Error> {
                Ok((
                    row.try_get("batch")?,
                    row.try_get("status")?,
                    row.try_get("runs")?,
                ))
            };
            let (batch, status, runs) = read().map_err(|e| failed(&e))?;
            counted.entry(batch).or_default().insert(status, runs);
        }
        Ok(counted)
    }

    /// Asks for the end of all its runs, of those to come as well; says how many had not ended.
    pub async fn cancel_comparison(&self, id: &RunId) -> Result<u64> {
        sqlx::query("UPDATE comparisons SET cancelled = 1 WHERE id = $1")
            .bind(id.as_str())
            .execute(&self.pool)
            .await
            .map_err(|e| failure("cancel the comparison", &e))?;
        let asked = self.cancel_all("runs", "batch", id.as_str()).await;
        asked.map_err(|e| failure("cancel the comparison", &e))
    }

    /// The run that was asked for under a key.
    pub async fn run_of_key(&self, key: &str) -> Result<Option<StoredRun>> {
        self.run_where("idempotency_key", key).await
    }
}

fn read(row: &AnyRow) -> Result<StoredComparison> {
    let read = || -> std::result::Result<StoredComparison, sqlx::Error> {
        Ok(StoredComparison {
            id: RunId::stored(row.try_get("id")?),
            created_at: row.try_get("created_at")?,
            owner: row.try_get("owner")?,
            name: row.try_get("name")?,
            plan: row.try_get("plan")?,
            has_report: row.try_get::<i64, _>("has_report")? != 0,
            max_dollars: row.try_get("max_dollars")?,
            is_cancelled: row.try_get::<i64, _>("cancelled")? != 0,
        })
    };
    read().map_err(|e| failure("read a comparison", &e))
}
