//! Features that newer versions of Python removed, as errors of old code show them.

/// Errors of old code under a newer Python, and the last version without them.
const REMOVED: [(&str, &str); 26] = [
    ("No module named 'cgi'", "3.12"),
    ("No module named 'crypt'", "3.12"),
    ("No module named 'imghdr'", "3.12"),
    ("No module named 'pipes'", "3.12"),
    ("No module named 'telnetlib'", "3.12"),
    ("No module named 'lib2to3'", "3.12"),
    ("No module named 'nntplib'", "3.12"),
    ("module 'unittest' has no attribute 'makeSuite'", "3.12"),
    ("No module named 'asyncore'", "3.11"),
    ("No module named 'asynchat'", "3.11"),
    ("No module named 'smtpd'", "3.11"),
    ("has no attribute 'assertEquals'", "3.11"),
    ("module 'inspect' has no attribute 'getargspec'", "3.10"),
    ("cannot import name 'getargspec' from 'inspect'", "3.10"),
    ("module 'asyncio' has no attribute 'coroutine'", "3.10"),
    ("from 'collections' (", "3.9"),
    ("ImpImporter", "3.11"),
    ("No module named 'distutils'", "3.11"),
    ("No module named 'imp'", "3.11"),
    ("SafeConfigParser", "3.11"),
    ("longintrepr.h", "3.10"),
    ("cframe", "3.12"),
    ("_PyLong_AsByteArray", "3.12"),
    ("ob_digit", "3.11"),
    ("module 'collections' has no attribute", "3.9"),
    ("module 'ast' has no attribute 'Str'", "3.11"),
];

/// Returns the signs in an error that newer versions of Python removed something, each with the last version that has it.
pub(super) fn removed_by(error: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let signs = REMOVED.into_iter();
    signs.filter(move |(sign, _)| error.contains(sign))
}
