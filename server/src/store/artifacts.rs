//! Records of files that runs and server comparisons produced. Their content is in the artifact store
//! ([`crate::artifacts`]).

use super::job_id::JobId;
use super::jobs::Attempt;
use super::queries::from_row;
use super::{Store, failure};
use testwright_config::error::{Error, Result};

/// A file of a run or a comparison, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// Path in the folder of the run or comparison.
    pub name: String,
    /// SHA-256 hash of its content, as hexadecimal digits.
    pub digest: String,
    /// Size in bytes.
    pub bytes: i64,
}

from_row! { StoredArtifact { name, digest, bytes } }

/// Marks the content of a run's files as no longer used by the run.
pub(super) const MARK_REMOVED: &str = "INSERT INTO removed_artifacts (digest) SELECT DISTINCT digest FROM artifacts WHERE run = $1 \
     ON CONFLICT (digest) DO NOTHING";

impl Store {
    /// Adds a file of an attempt at a run or a comparison; replaces a file with the same name.
    ///
    /// # Errors
    ///
    /// Fails if another process has claimed the job since, or if the database query fails.
    pub async fn put_artifact(&self, attempt: &Attempt, artifact: &StoredArtifact) -> Result<()> {
        let what = "record a file";
        let failed = |error: sqlx::Error| failure(what, &error);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        sqlx::query(
            "INSERT INTO removed_artifacts (digest) SELECT digest FROM artifacts WHERE run = $1 AND name = $2 AND digest <> $3 \
             ON CONFLICT (digest) DO NOTHING",
        )
        .bind(attempt.id.as_str())
        .bind(&artifact.name)
        .bind(&artifact.digest)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        let statement = format!(
            "INSERT INTO artifacts (run, name, digest, bytes) SELECT id, $3, $4, $5 FROM {} WHERE id = $1 AND attempt = $2 \
             AND status = 'running' ON CONFLICT (run, name) DO UPDATE SET digest = excluded.digest, bytes = excluded.bytes",
            attempt.kind.table()
        );
        let added = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(attempt.id.as_str())
            .bind(attempt.number)
            .bind(&artifact.name)
            .bind(&artifact.digest)
            .bind(artifact.bytes)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        if added.rows_affected() == 0 {
            return Err(Error::infrastructure(what).cause("another process has claimed the job"));
        }
        transaction.commit().await.map_err(failed)
    }

    /// Lists the files of a run or a comparison, sorted by name.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn artifacts(&self, run: &JobId) -> Result<Vec<StoredArtifact>> {
        let query =
            sqlx::query("SELECT name, digest, bytes FROM artifacts WHERE run = $1 ORDER BY name")
                .bind(run.as_str());
        self.list("list the files of a run", query).await
    }

    /// Returns up to `most` digests that runs no longer use. Their content can be removed unless another run uses it.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn removed_artifacts(&self, most: i64) -> Result<Vec<String>> {
        let query =
            sqlx::query("SELECT digest FROM removed_artifacts ORDER BY digest LIMIT $1").bind(most);
        self.list_texts("list files to remove", query).await
    }

    /// Returns whether a run uses the content with a digest.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn has_artifact(&self, digest: &str) -> Result<bool> {
        let query =
            sqlx::query("SELECT digest FROM artifacts WHERE digest = $1 LIMIT 1").bind(digest);
        let found = self.list_texts("check whether a run uses a file", query);
        Ok(!found.await?.is_empty())
    }

    /// Forgets a digest, once its content was removed or found in use.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn forget_removed_artifact(&self, digest: &str) -> Result<()> {
        let deletion = sqlx::query("DELETE FROM removed_artifacts WHERE digest = $1").bind(digest);
        self.execute("store that a file was removed", deletion)
            .await
    }
}
