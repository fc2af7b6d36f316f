use super::*;

fn answer(status_code: u16, message: &str) -> SandboxError {
    let message = message.to_owned();
    to_sandbox_error(
        "start a container",
        Error::DockerResponseServerError {
            status_code,
            message,
        },
    )
}

#[test]
fn refusals_are_distinguished() {
    assert_eq!(answer(404, "No such container: abc").kind, ErrorKind::Dead);
    assert_eq!(
        answer(409, "Container abc is not running").kind,
        ErrorKind::Dead
    );
    assert_eq!(
        answer(404, "No such image: python:3.11").kind,
        ErrorKind::NotFound
    );
    assert_eq!(
        answer(404, "Could not find the file /x in container abc").kind,
        ErrorKind::NotFound
    );
    let full = answer(500, "write /x: no space left on device");
    assert_eq!(full.kind, ErrorKind::Exhausted(Shortage::Disk));
    assert!(full.hint.is_some_and(|h| h.contains("free disk space")));
    let no_init = answer(
        500,
        "container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file or directory",
    );
    assert!(no_init.hint.is_some_and(|h| h.contains("catatonit")));
}

#[test]
fn closed_and_forbidden_sockets_are_distinguished() {
    let io = |kind| {
        to_sandbox_error(
            "reach the engine",
            Error::IOError {
                err: io::Error::from(kind),
            },
        )
    };
    let closed = io(io::ErrorKind::ConnectionRefused);
    let forbidden = io(io::ErrorKind::PermissionDenied);
    assert!(closed.message.contains("the engine does not answer"));
    assert_eq!(
        (closed.kind, forbidden.kind),
        (ErrorKind::Unavailable, ErrorKind::Unavailable)
    );
    assert!(closed.hint.is_some_and(|h| h.contains("start Docker")));
    assert!(forbidden.hint.is_some_and(|h| h.contains("group")));
}
