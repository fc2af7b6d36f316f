//! Detects errors of the artifact store that are caused by an outage or a shortage, so that a later attempt can
//! succeed.

use std::error::Error;
use std::io::{self, ErrorKind};

use object_store::client::{HttpError, HttpErrorKind};
use testwright_sandboxes::Shortage;

/// Finds the shortage behind an error or its causes; `None` if the same request would fail again.
pub(super) fn find_shortage(error: &(dyn Error + 'static)) -> Option<Shortage> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let shortage = Shortage::reported_by(error);
            if let Some(shortage) = shortage.or_else(|| unreachable_file_system(error)) {
                return Some(shortage);
            }
            // source() skips the error that an I/O error wraps.
            next = match error.get_ref() {
                Some(wrapped) => Some(wrapped),
                None => error.source(),
            };
            continue;
        }
        if let Some(error) = error.downcast_ref::<HttpError>() {
            let is_outage = matches!(
                error.kind(),
                HttpErrorKind::Connect
                    | HttpErrorKind::Request
                    | HttpErrorKind::Timeout
                    | HttpErrorKind::Interrupted
            );
            return is_outage.then_some(Shortage::Service);
        }
        next = error.source();
    }
    None
}

/// Returns a shortage if the folder's file system is unreachable: it can be a network file system.
fn unreachable_file_system(error: &io::Error) -> Option<Shortage> {
    let is_outage = matches!(
        error.kind(),
        ErrorKind::StaleNetworkFileHandle
            | ErrorKind::TimedOut
            | ErrorKind::NotConnected
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    );
    is_outage.then_some(Shortage::Service)
}
