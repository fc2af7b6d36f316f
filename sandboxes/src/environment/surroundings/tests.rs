use super::{failed_port, lacks_display, lacks_git_identity, placeholder};

#[test]
fn missing_display_is_recognized() {
    let text = "qt.qpa.plugin: Could not load the Qt platform plugin \"xcb\" in \"\" even though it was found.\nAborted";
    assert!(lacks_display(text));
    assert!(!lacks_display("AttributeError: display"));
}

#[test]
fn missing_git_identity_is_recognized() {
    for text in [
        "*** Please tell me who you are.",
        "fatal: empty ident name (for <x@y>) not allowed",
        "Command '['git', 'commit', '-qm', 'a']' returned non-zero exit status 128.",
    ] {
        assert!(lacks_git_identity(text), "{text}");
    }
    let clone = "Command '['git', 'clone', 'x']' returned non-zero exit status 128.";
    assert!(!lacks_git_identity(clone));
}

#[test]
fn names_of_variables_give_placeholders() {
    for (name, value) in [
        ("SECRET_KEY", Some("testwright")),
        ("DB_HOST_PASSWORD", Some("testwright")),
        ("SERVER_NAME", Some("localhost")),
        ("MAIL_HOST", Some("localhost")),
        ("DATABASE_URL", None),
    ] {
        assert_eq!(placeholder(name), value, "{name}");
    }
}

#[test]
fn ports_of_failed_connections_are_found() {
    for (text, port) in [
        (
            "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
            Some((6379, true)),
        ),
        (
            "connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused",
            Some((5432, true)),
        ),
        (
            "OSError: Multiple exceptions: [Errno 111] Connect call failed ('::1', 5432, 0, 0), [Errno 111] Connect call failed ('127.0.0.1', 5432)",
            Some((5432, true)),
        ),
        (
            "connection to server on socket \"/var/run/postgresql/.s.PGSQL.5432\" failed: No such file or directory",
            Some((5432, true)),
        ),
        (
            "could not translate host name \"db\" to address: Temporary failure in name resolution",
            Some((5432, false)),
        ),
        (
            "Error -3 connecting to redis:6380. Temporary failure in name resolution.",
            Some((6380, false)),
        ),
        (
            "ConnectionRefusedError: [Errno 111] Connection refused",
            None,
        ),
        ("Error connecting to localhost:6379: timed out", None),
        (
            "Error 111 connecting to cache.example.org:6379. Connection refused.",
            None,
        ),
    ] {
        assert_eq!(failed_port(text), port, "{text}");
    }
}
