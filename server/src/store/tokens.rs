//! Bearer tokens and their scopes. Only the SHA-256 hash of a token is stored. Tokens have 256 random bits, so they
//! cannot be found from the hash, and need neither salt nor a slow hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use sqlx::any::AnyRow;
use sqlx::{FromRow, Row};

use super::job_id::now;
use super::{Store, failure};
use testwright_config::error::{Error, Result};
use testwright_config::hex::hex;

/// Prefix by which secret scanners recognize tokens.
const PREFIX: &str = "testwright_";
const RANDOM_BYTES: usize = 32;
/// Precision of the time of the last use, in milliseconds, so that not every read causes a write.
const LAST_USE_PRECISION: i64 = 60_000;

/// The permissions of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// Read runs and their results
    Read,
    /// Create, cancel and retry runs
    Write,
}

impl Scope {
    const ALL: [Scope; 2] = [Scope::Read, Scope::Write];

    /// Returns the name of the scope.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
        }
    }
}

/// A token of the API, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Unique name of the token.
    pub name: String,
    /// Owner of the requests that use the token.
    pub owner: String,
    /// Permissions of the token.
    pub scopes: Vec<Scope>,
    /// Creation time, in milliseconds since 1970, UTC; the other times use the same format.
    pub created_at: i64,
    /// Time from which the token is rejected; `None` if it does not expire.
    pub expires_at: Option<i64>,
    /// Time of the latest use, to the precision of `LAST_USE_PRECISION`.
    pub last_used_at: Option<i64>,
}

impl Store {
    /// Creates a token. Only this call returns it in plain text.
    ///
    /// # Errors
    ///
    /// Fails if a token with this name exists, random bytes are not available, or the database query fails.
    pub async fn add_token(
        &self,
        name: &str,
        owner: &str,
        scopes: &[Scope],
        expires_at: Option<i64>,
    ) -> Result<SecretString> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|e| failure("create a token", &e))?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let insertion = sqlx::query(
            "INSERT INTO tokens (name, hash, owner, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(name)
        .bind(hash(&token))
        .bind(owner)
        .bind(names.join(","))
        .bind(now())
        .bind(expires_at);
        match self.changed_rows("store the token", insertion).await? {
            0 => Err(Error::usage(format!("create the token {name}"))
                .cause("a token with this name already exists")
                .hint("choose another name, or revoke the existing token first")),
            _ => Ok(token.into()),
        }
    }

    /// Lists tokens, sorted by name.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        let query = sqlx::query("SELECT * FROM tokens ORDER BY name");
        self.list("list the tokens", query).await
    }

    /// Revokes a token; `false` if there is no token of that name.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn revoke_token(&self, name: &str) -> Result<bool> {
        let deletion = sqlx::query("DELETE FROM tokens WHERE name = $1").bind(name);
        Ok(self.changed_rows("revoke the token", deletion).await? > 0)
    }

    /// Finds the token that a client sent, unless it was revoked or has expired.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn token(&self, secret: &SecretString) -> Result<Option<Token>> {
        let hash = hash(secret.expose_secret());
        let query = sqlx::query("SELECT * FROM tokens WHERE hash = $1").bind(&hash);
        let token: Option<Token> = self.find("look up a token", query).await?;
        let now = now();
        let Some(token) = token.filter(|token| token.expires_at.is_none_or(|end| now < end)) else {
            return Ok(None);
        };
        if token
            .last_used_at
            .is_none_or(|at| at + LAST_USE_PRECISION < now)
        {
            let update = sqlx::query("UPDATE tokens SET last_used_at = $2 WHERE hash = $1")
                .bind(&hash)
                .bind(now);
            // A full database can still be read.
            if let Err(error) = self.execute("store the use of a token", update).await {
                tracing::warn!(
                    error = error.with_cause(),
                    "could not store the use of a token"
                );
            }
        }
        Ok(Some(token))
    }
}

fn hash(token: &str) -> String {
    hex(&Sha256::digest(token))
}

impl<'r> FromRow<'r, AnyRow> for Token {
    fn from_row(row: &'r AnyRow) -> std::result::Result<Self, sqlx::Error> {
        let names: String = row.try_get("scopes")?;
        let is_granted = |scope: &Scope| names.split(',').any(|name| name == scope.as_str());
        Ok(Token {
            name: row.try_get("name")?,
            owner: row.try_get("owner")?,
            scopes: Scope::ALL.into_iter().filter(is_granted).collect(),
            created_at: row.try_get("created_at")?,
            expires_at: row.try_get("expires_at")?,
            last_used_at: row.try_get("last_used_at")?,
        })
    }
}

#[cfg(test)]
mod tests;
