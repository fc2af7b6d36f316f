//! Modules of Python's standard library, from 3.6 to 3.13 together.

/// Returns whether the first part of this dotted name is a module of the standard library.
pub fn is_standard_library(module: &str) -> bool {
    let top = module.split('.').next().unwrap_or_default();
    top.starts_with('_') || MODULES.binary_search(&top).is_ok()
}

#[rustfmt::skip]
const MODULES: &[&str] = &[
    "abc", "aifc", "argparse", "array", "ast", "asynchat", "asyncio", "asyncore", "atexit", "audioop", "base64",
    "bdb", "binascii", "binhex", "bisect", "builtins", "bz2", "cProfile", "calendar", "cgi", "cgitb", "chunk",
    "cmath", "cmd", "code", "codecs", "codeop", "collections", "colorsys", "compileall", "concurrent",
    "configparser", "contextlib", "contextvars", "copy", "copyreg", "crypt", "csv", "ctypes", "curses",
    "dataclasses", "datetime", "dbm", "decimal", "difflib", "dis", "distutils", "doctest", "email", "encodings",
    "ensurepip", "enum", "errno", "faulthandler", "fcntl", "filecmp", "fileinput", "fnmatch", "formatter",
    "fractions", "ftplib", "functools", "gc", "genericpath", "getopt", "getpass", "gettext", "glob", "graphlib",
    "grp", "gzip", "hashlib", "heapq", "hmac", "html", "http", "imaplib", "imghdr", "imp", "importlib", "inspect",
    "io", "ipaddress", "itertools", "json", "keyword", "lib2to3", "linecache", "locale", "logging", "lzma",
    "macpath", "mailbox", "mailcap", "marshal", "math", "mimetypes", "mmap", "modulefinder", "multiprocessing",
    "netrc", "nis", "nntplib", "ntpath", "nturl2path", "numbers", "opcode", "operator", "optparse", "os",
    "ossaudiodev", "parser", "pathlib", "pdb", "pickle", "pickletools", "pipes", "pkgutil", "platform", "plistlib",
    "poplib", "posix", "posixpath", "pprint", "profile", "pstats", "pty", "pwd", "py_compile", "pyclbr", "pydoc",
    "pydoc_data", "pyexpat", "queue", "quopri", "random", "re", "readline", "reprlib", "resource", "rlcompleter",
    "runpy", "sched", "secrets", "select", "selectors", "shelve", "shlex", "shutil", "signal", "site", "smtpd",
    "smtplib", "sndhdr", "socket", "socketserver", "spwd", "sqlite3", "sre_compile", "sre_constants", "sre_parse",
    "ssl", "stat", "statistics", "string", "stringprep", "struct", "subprocess", "sunau", "symbol", "symtable",
    "sys", "sysconfig", "syslog", "tabnanny", "tarfile", "telnetlib", "tempfile", "termios", "textwrap",
    "threading", "time", "timeit", "tkinter", "token", "tokenize", "tomllib", "trace", "traceback", "tracemalloc",
    "tty", "turtle", "types", "typing", "unicodedata", "unittest", "urllib", "uu", "uuid", "venv", "warnings",
    "wave", "weakref", "webbrowser", "wsgiref", "xdrlib", "xml", "xmlrpc", "zipapp", "zipfile", "zipimport", "zlib",
    "zoneinfo",
];

/// Returns whether this module of the standard library was deprecated, so importing it gives a warning in some versions.
pub(super) fn is_deprecated(module: &str) -> bool {
    DEPRECATED.binary_search(&module).is_ok()
}

#[rustfmt::skip]
const DEPRECATED: &[&str] = &[
    "aifc", "asynchat", "asyncore", "audioop", "binhex", "cgi", "cgitb", "chunk", "crypt", "distutils", "formatter",
    "imghdr", "imp", "lib2to3", "macpath", "mailcap", "nis", "nntplib", "ossaudiodev", "parser", "pipes", "smtpd",
    "sndhdr", "spwd", "sre_compile", "sre_constants", "sre_parse", "sunau", "symbol", "telnetlib", "uu", "xdrlib",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_sorted() {
        assert!(MODULES.is_sorted() && DEPRECATED.is_sorted());
        assert!(DEPRECATED.iter().all(|name| is_standard_library(name)));
        assert!(is_standard_library("os.path") && !is_standard_library("numpy"));
    }
}
