//! What an error of the database means: it ran out of something, does not answer now, or the request was at fault.

use std::borrow::Cow;

use testwright_sandboxes::Shortage;

use testwright_config::error::{Error, Kind};

/// `what`: follows "failed to …".
pub(super) fn failure(what: &str, error: &(dyn std::error::Error + 'static)) -> Error {
    let known = error.downcast_ref::<sqlx::Error>();
    let failed = match known {
        Some(sqlx::Error::PoolTimedOut) => {
            return Error::unavailable(what)
                .cause("the database does not answer, or all connections are in use")
                .hint("look whether the database runs, and at its log");
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
        Kind::Exhausted(Shortage::Disk) => Some("make room on the disk of the database"),
        Kind::Unavailable => Some("look whether the database runs, and at its log"),
        _ => None,
    };
    let failed = failed.cause(error);
    match hint {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// By a result code of SQLite, extended ones included, or the five characters of an SQLSTATE.
fn kind(code: Option<Cow<'_, str>>) -> Kind {
    let code = code.unwrap_or_default();
    if code.len() == 5 {
        return match &*code {
            "53100" => Kind::Exhausted(Shortage::Disk),
            "53200" => Kind::Exhausted(Shortage::Memory),
            // Deadlocks and conflicts, a server that only reads, and one that cannot reach its own files.
            "25006" | "40001" | "40P01" | "55P03" | "58030" => Kind::Unavailable,
            // No connection, no resources, and the acts of an operator: it ends, starts, or was told to drop the connection.
            _ if code.starts_with("08") || code.starts_with("53") || code.starts_with("57P") => {
                Kind::Unavailable
            }
            _ => Kind::Infrastructure,
        };
    }
    match code.parse().map(|code: i32| code & 0xff) {
        Ok(7) => Kind::Exhausted(Shortage::Memory),
        Ok(13) => Kind::Exhausted(Shortage::Disk),
        // Busy, locked, read-only, an error of the disk, a file that cannot be opened, a lock that cannot be had.
        Ok(5 | 6 | 8 | 10 | 14 | 15) => Kind::Unavailable,
        _ => Kind::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_does_not_answer_may_do_so_later() {
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
    fn codes_of_both_databases_are_known() {
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
