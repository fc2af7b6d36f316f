//! Classifies errors of the database: a shortage, an outage, or a faulty request.

use std::borrow::Cow;

use testwright_sandboxes::Shortage;

use testwright_config::error::{Error, Kind};

/// Wraps an error; `what` follows "failed to".
pub(super) fn failure(what: &str, error: &(dyn std::error::Error + 'static)) -> Error {
    let sqlx_error = error.downcast_ref::<sqlx::Error>();
    let failed = match sqlx_error {
        Some(sqlx::Error::PoolTimedOut) => {
            return Error::unavailable(what)
                .cause("the database does not respond, or all connections are in use")
                .hint("check that the database is running, and see its log");
        }
        Some(sqlx::Error::Io(error)) => match Shortage::reported_by(error) {
            Some(shortage) => Error::exhausted(shortage, what),
            None => Error::unavailable(what),
        },
        Some(sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed) => Error::unavailable(what),
        Some(sqlx::Error::Database(error)) => Error::new(kind(error.code()), what),
        _ => Error::infrastructure(what),
    };
    let hint = match failed.kind {
        Kind::Exhausted(Shortage::Disk) => Some("free space on the disk of the database"),
        Kind::Unavailable => Some("check that the database is running, and see its log"),
        _ => None,
    };
    failed.cause(error).hint_if(hint)
}

/// Classifies a result code of SQLite (possibly extended) or an SQLSTATE of five characters.
fn kind(code: Option<Cow<'_, str>>) -> Kind {
    let code = code.unwrap_or_default();
    if code.len() == 5 {
        return match &*code {
            "53100" => Kind::Exhausted(Shortage::Disk),
            "53200" => Kind::Exhausted(Shortage::Memory),
            // Deadlocks, conflicts, a read-only server, and a server that cannot reach its own files.
            "25006" | "40001" | "40P01" | "55P03" | "58030" => Kind::Unavailable,
            // Connection failures, lack of resources, and operator interventions: the server is stopping, starting, or
            // closed the connection.
            _ if code.starts_with("08") || code.starts_with("53") || code.starts_with("57P") => {
                Kind::Unavailable
            }
            _ => Kind::Infrastructure,
        };
    }
    match code.parse().map(|code: i32| code & 0xff) {
        Ok(7) => Kind::Exhausted(Shortage::Memory),
        Ok(13) => Kind::Exhausted(Shortage::Disk),
        // Busy, locked, read-only, an I/O error, a file that cannot be opened, and a lock that cannot be acquired.
        Ok(5 | 6 | 8 | 10 | 14 | 15) => Kind::Unavailable,
        _ => Kind::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unresponsive_database_is_unavailable() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        for error in [sqlx::Error::PoolTimedOut, sqlx::Error::Io(refused)] {
            let failed = failure("list the runs", &error);
            assert_eq!(failed.kind, Kind::Unavailable);
            assert!(failed.hint.is_some());
        }
        let failed = failure("list the runs", &sqlx::Error::RowNotFound);
        assert_eq!(failed.kind, Kind::Infrastructure);
    }

    #[test]
    fn error_codes_are_classified() {
        for (code, expected) in [
            ("13", Kind::Exhausted(Shortage::Disk)),
            ("5", Kind::Unavailable),
            // BUSY_SNAPSHOT and IOERR_WRITE.
            ("517", Kind::Unavailable),
            ("778", Kind::Unavailable),
            ("1555", Kind::Infrastructure),
            ("53100", Kind::Exhausted(Shortage::Disk)),
            ("57P01", Kind::Unavailable),
            ("25006", Kind::Unavailable),
            ("23505", Kind::Infrastructure),
        ] {
            assert_eq!(kind(Some(code.into())), expected, "{code}");
        }
    }
}
