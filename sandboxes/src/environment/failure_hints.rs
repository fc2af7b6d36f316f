//! What the user can do about a step that failed, from the words of its output.

/// Words, and what helps where they turn up. The first that fits counts.
const KNOWN: [(&[&str], &str); 20] = [
    (
        &["what build.allowed-hosts names"],
        "a build reaches the package index alone: if you trust the code with more, name the host in build.allowed-hosts of \
         your own settings (TESTWRIGHT_BUILD_ALLOWED_HOSTS)",
    ),
    (
        &["is not in the cache, and the build is offline"],
        "a package is not in the cache: build once without --offline",
    ),
    (
        &["missing an upload date"],
        "the package index tells no upload dates: set exclude-newer = \"never\" in [environment] of testwright.toml",
    ),
    (
        &["was filtered by `exclude-newer`"],
        "a package is newer than the date as of which packages are resolved: set exclude-newer in [environment] of testwright.toml to a later date, \
         or bound the requirement",
    ),
    (
        &["fatal error: Python.h: No such file"],
        "the headers of this Python are missing: name a Debian package such as python3-dev in system-packages in [environment] of testwright.toml, or choose \
         a Python that has them",
    ),
    (
        &[
            "error: command 'gcc' failed: No such file",
            "unable to execute 'gcc'",
            "unable to execute 'cc'",
            "gcc' failed: No such file",
            "No such file or directory: 'gcc'",
            "No such file or directory: 'cc'",
            "No such file or directory: 'g++'",
            "No such file or directory: 'c++'",
            "No such file or directory: 'clang'",
            "No such file or directory: 'x86_64-linux-gnu-gcc'",
            "No such file or directory: 'aarch64-linux-gnu-gcc'",
            "gcc: not found",
        ],
        "a C compiler is missing: add \"build-essential\" to system-packages in [environment] of testwright.toml",
    ),
    (
        &["fatal error: "],
        "a C header is missing: name the Debian package that has it in system-packages in [environment] of testwright.toml",
    ),
    (
        &["pg_config executable not found"],
        "add \"libpq-dev\" to system-packages in [environment] of testwright.toml",
    ),
    (
        &[
            "use_2to3 is invalid",
            "invalid command 'develop'",
            "cannot import name 'Feature' from 'setuptools'",
        ],
        "the code is too old for this setuptools: set build-constraints = [\"setuptools<58\"] in [environment] of testwright.toml",
    ),
    (
        &[
            "unable to get local issuer certificate",
            "invalid peer certificate",
            "CERTIFICATE_VERIFY_FAILED",
            "UnknownIssuer",
        ],
        "a certificate is not trusted: name your CA bundle in SSL_CERT_FILE",
    ),
    (
        &["urllib.error.URLError"],
        "the repository's own code asks for something on the network: in a step that installs, check the network and the proxy \
         variables (https_proxy); tests have no network, so what they need must be there before",
    ),
    (
        &[
            "error sending request",
            "dns error",
            "failed to lookup address",
            "Temporary failure in name resolution",
            "Connection refused",
            "tunnel error",
            "502 Bad Gateway",
        ],
        "the package index cannot be reached: check the network, the proxy variables (https_proxy) or the index in the settings",
    ),
    (
        &[
            "Network connectivity is disabled",
            "needs to be downloaded from a registry",
        ],
        "a package is not in the cache: build once without --offline",
    ),
    (
        &[
            "git: not found",
            "git: command not found",
            "unable to find git",
        ],
        "git is missing in the sandbox: add \"git\" to system-packages in [environment] of testwright.toml",
    ),
    (
        &["No space left on device"],
        "make room on the disk, or set another cache folder",
    ),
    (
        &["was not found in the package registry"],
        "a required package is not in the index under this name: correct the requirement, or name the index that has it in the settings",
    ),
    (
        &[
            "No solution found when resolving",
            "No matching distribution",
        ],
        "requirements contradict each other, or need another Python: set python, requirements or exclude-newer in \
         [environment] of testwright.toml",
    ),
    (
        &[
            "pyproject.toml: ",
            "TOML parse error",
            "invalid pyproject.toml config",
        ],
        "the repository's pyproject.toml is broken at the place that is named: fix it, or choose another commit with --commit",
    ),
    (
        &["No module named "],
        "a module is missing: add the package that has it to requirements in [environment] of testwright.toml",
    ),
    (
        &["in run_setup\n"],
        "the repository's setup.py fails, with the error in the last lines: it may need another Python (--python X.Y), older \
         build tools (build-constraints) or packages (requirements) in [environment] of testwright.toml",
    ),
];

const ELSE: &str = "set what is missing in [environment] of testwright.toml, e.g. requirements, system-packages or python";

/// C headers, by the beginning of their path, and the Debian packages that have them.
const HEADERS: [(&str, &str); 24] = [
    ("bzlib.h", "libbz2-dev"),
    ("cairo", "libcairo2-dev"),
    ("curl/", "libcurl4-openssl-dev"),
    ("ev.h", "libev-dev"),
    ("expat.h", "libexpat1-dev"),
    ("ffi.h", "libffi-dev"),
    ("freetype", "libfreetype6-dev"),
    ("ft2build.h", "libfreetype6-dev"),
    ("gmp.h", "libgmp-dev"),
    ("jpeglib.h", "libjpeg-dev"),
    ("lber.h", "libldap2-dev"),
    ("ldap.h", "libldap2-dev"),
    ("libpq-fe.h", "libpq-dev"),
    ("librdkafka", "librdkafka-dev"),
    ("libxml/", "libxml2-dev"),
    ("lzma.h", "liblzma-dev"),
    ("mysql.h", "default-libmysqlclient-dev"),
    ("openssl/", "libssl-dev"),
    ("png.h", "libpng-dev"),
    ("sasl/", "libsasl2-dev"),
    ("sqlite3.h", "libsqlite3-dev"),
    ("yaml.h", "libyaml-dev"),
    ("zlib.h", "zlib1g-dev"),
    ("zmq.h", "libzmq3-dev"),
];

pub(super) fn hint(output: &str) -> String {
    if let Some(package) = header_package(output) {
        return format!(
            "a C header is missing: write system-packages = [\"{package}\"] into [environment] of testwright.toml"
        );
    }
    KNOWN
        .iter()
        .find(|(signs, _)| signs.iter().any(|sign| output.contains(sign)))
        .map_or(ELSE, |(_, hint)| hint)
        .to_owned()
}

/// gcc: `x.c:3:10: fatal error: libxml/tree.h: No such file or directory`.
fn header_package(output: &str) -> Option<&'static str> {
    let header = output.split("fatal error: ").nth(1)?.split(':').next()?;
    let known = HEADERS.iter().find(|(known, _)| header.starts_with(known));
    known.map(|(_, package)| *package)
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_cause_is_found_among_what_follows_from_it() {
        let setup = "  File \"build_meta.py\", line 520, in run_setup\n    exec(code)\n";
        for (output, wanted) in [
            (format!("{setup}RuntimeError: no luck"), "setup.py fails"),
            (format!("{setup}error: [Errno 2] No such file or directory: 'gcc'"), "build-essential"),
            (
                "No solution found when resolving dependencies:\nBecause x was not found in the package registry".to_owned(),
                "not in the index",
            ),
            ("No solution found when resolving dependencies:\nBecause a<1".to_owned(), "contradict"),
            ("ERROR: /testbed/pyproject.toml: Expected ']'".to_owned(), "pyproject.toml is broken"),
            (
                "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>".to_owned(),
                "own code",
            ),
            ("x.c:3:10: fatal error: libxml/tree.h: No such file or directory".to_owned(), "\"libxml2-dev\""),
            ("x.c:3:10: fatal error: own.h: No such file or directory".to_owned(), "name the Debian package"),
            ("E   ModuleNotFoundError: No module named 'x'".to_owned(), "requirements"),
            ("else".to_owned(), "testwright.toml"),
        ] {
            assert!(hint(&output).contains(wanted), "{output}: {}", hint(&output));
        }
    }
}
