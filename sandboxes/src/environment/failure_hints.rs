//! Hints for failed steps, chosen by the words in their output.

/// Words in the output, and the hint for them. The first match counts.
const KNOWN: [(&[&str], &str); 20] = [
    (
        &["only the package index and the hosts in build.allowed-hosts"],
        "a build can reach only the package index: if you trust the code with more, add the host to build.allowed-hosts in \
         your settings (TESTWRIGHT_BUILD_ALLOWED_HOSTS)",
    ),
    (
        &["is not in the cache, and the build is offline"],
        "a package is not in the cache: build once without --offline",
    ),
    (
        &["missing an upload date"],
        "the package index has no upload dates: set exclude-newer = \"never\" in [environment] of testwright.toml",
    ),
    (
        &["was filtered by `exclude-newer`"],
        "a package is newer than the date of the resolution: set exclude-newer in [environment] of testwright.toml to a later date, \
         or limit the version in the requirement",
    ),
    (
        &["fatal error: Python.h: No such file"],
        "the headers of this Python are missing: add a Debian package such as python3-dev to system-packages in [environment] of testwright.toml, or choose \
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
        "a C header is missing: add the Debian package that contains it to system-packages in [environment] of testwright.toml",
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
        "a certificate is not trusted: set SSL_CERT_FILE to your CA bundle",
    ),
    (
        &["urllib.error.URLError"],
        "the repository's own code needs the network: if an install step failed, check the network and the proxy \
         variables (https_proxy); tests have no network, so download their data beforehand",
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
        "free disk space, or set another cache folder",
    ),
    (
        &["was not found in the package registry"],
        "a required package is not in the index under this name: correct the requirement, or add the index that has it to the settings",
    ),
    (
        &[
            "No solution found when resolving",
            "No matching distribution",
        ],
        "the requirements conflict with each other, or need another Python: set python, requirements or exclude-newer in \
         [environment] of testwright.toml",
    ),
    (
        &[
            "pyproject.toml: ",
            "TOML parse error",
            "invalid pyproject.toml config",
        ],
        "the repository's pyproject.toml is invalid at the reported position: fix it, or choose another commit with --commit",
    ),
    (
        &["No module named "],
        "a module is missing: add the package that provides it to requirements in [environment] of testwright.toml",
    ),
    (
        &["in run_setup\n"],
        "the repository's setup.py fails with the error in the last lines: try another Python (--python X.Y), older \
         build tools (build-constraints) or packages (requirements) in [environment] of testwright.toml",
    ),
];

const DEFAULT_HINT: &str = "add what is missing to [environment] of testwright.toml, e.g. requirements, system-packages or python";

/// C headers, by the beginning of their path, and the Debian packages that contain them.
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
            "a C header is missing: set system-packages = [\"{package}\"] in [environment] of testwright.toml"
        );
    }
    KNOWN
        .iter()
        .find(|(signs, _)| signs.iter().any(|sign| output.contains(sign)))
        .map_or(DEFAULT_HINT, |(_, hint)| hint)
        .to_owned()
}

/// Returns the package for a gcc error such as `x.c:3:10: fatal error: libxml/tree.h: No such file or directory`.
fn header_package(output: &str) -> Option<&'static str> {
    let header = output.split("fatal error: ").nth(1)?.split(':').next()?;
    let known = HEADERS.iter().find(|(known, _)| header.starts_with(known));
    known.map(|(_, package)| *package)
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn hint_names_cause_not_symptoms() {
        let setup = "  File \"build_meta.py\", line 520, in run_setup\n    exec(code)\n";
        for (output, wanted) in [
            (format!("{setup}RuntimeError: no luck"), "setup.py fails"),
            (format!("{setup}error: [Errno 2] No such file or directory: 'gcc'"), "build-essential"),
            (
                "No solution found when resolving dependencies:\nBecause x was not found in the package registry".to_owned(),
                "not in the index",
            ),
            ("No solution found when resolving dependencies:\nBecause a<1".to_owned(), "conflict"),
            ("ERROR: /testbed/pyproject.toml: Expected ']'".to_owned(), "pyproject.toml is invalid"),
            (
                "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>".to_owned(),
                "own code",
            ),
            ("x.c:3:10: fatal error: libxml/tree.h: No such file or directory".to_owned(), "\"libxml2-dev\""),
            ("x.c:3:10: fatal error: own.h: No such file or directory".to_owned(), "add the Debian package"),
            ("E   ModuleNotFoundError: No module named 'x'".to_owned(), "requirements"),
            ("else".to_owned(), "testwright.toml"),
        ] {
            assert!(hint(&output).contains(wanted), "{output}: {}", hint(&output));
        }
    }
}
