#![allow(clippy::unwrap_used)]
use super::*;

mod running;

/// A build with uv that fails with these lines of the build backend.
fn failed_build(lines: &str) -> String {
    format!(
        "  × Failed to build `mod @ file:///testbed`\n  ├─▶ The build backend returned an error\n  ╰─▶ Call to \
         `setuptools.build_meta.build_editable` failed (exit status: 1)\n\n      [stderr]\n{lines}\n\n      hint: This \
         usually indicates a problem with the package or the build environment.\n"
    )
}

fn resolver(line: &str) -> String {
    format!("  × No solution found when resolving dependencies:\n  ╰─▶ {line}\n")
}

fn assert_hints(cases: &[(String, &str)]) {
    for (output, wanted) in cases {
        let hint = hint(output);
        let fits = hint.as_deref().is_some_and(|hint| hint.contains(wanted));
        assert!(fits, "{output}\n{hint:?} lacks {wanted}");
    }
}

#[test]
fn uninstalled_projects_select_hint() {
    let error = "ImportError: Error importing plugin \"tests.fix\": cannot import name 'sql' from 'shop' (unknown location)";
    assert_hints(&[(format!("{error}\n"), "shop is not installed")]);
}

#[test]
fn missing_files_select_hint() {
    let cases = [
        "E   sqlite3.OperationalError: unable to open database file",
        "E   FileNotFoundError: [Errno 2] No such file or directory: '/testbed/var/app.log'",
    ];
    assert_hints(&cases.map(|line| (format!("{line}\n"), "create its folder")));
    assert_eq!(
        hint("FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"),
        None
    );
}

#[test]
fn missing_tables_select_hint() {
    let cases = [
        "E   asyncpg.exceptions.UndefinedTableError: relation \"users\" does not exist",
        "E   sqlalchemy.exc.ProgrammingError: (psycopg2.errors.UndefinedTable) relation \"users\" does not exist",
        "E   sqlite3.OperationalError: no such table: users",
        "E   pymysql.err.ProgrammingError: (1146, \"Table 'shop.users' doesn't exist\")",
    ];
    assert_hints(&cases.map(|line| (format!("{line}\n"), "to before-tests under")));
    let django = "E   django.db.utils.OperationalError: no such table: shop_item\n";
    assert_hints(&[(django.to_owned(), "manage.py makemigrations")]);
    let first = hint(&format!("{}\n", cases[0]));
    assert!(first.is_some_and(|hint| hint.contains("no table users")));
}

#[test]
fn build_errors_select_hints() {
    let setup = "  File \"build_meta.py\", line 520, in run_setup\n    exec(code)\n";
    assert_hints(&[
        (
            failed_build("error: [Errno 2] No such file or directory: 'gcc'"),
            "build-essential",
        ),
        (
            failed_build(
                "x.c:3:10: fatal error: libxml/tree.h: No such file or directory\ncompilation terminated.\nerror: command '/usr/bin/gcc' failed with exit code 1",
            ),
            "\"libxml2-dev\"",
        ),
        (
            failed_build("x.c:3:10: fatal error: own.h: No such file or directory"),
            "with --sandbox local, install it",
        ),
        (
            failed_build("x.c:3:10: fatal error: Python.h: No such file or directory"),
            "--python X.Y",
        ),
        (
            failed_build(&format!(
                "{setup}ModuleNotFoundError: No module named 'numpy'"
            )),
            "--no-build-isolation",
        ),
        (
            failed_build("ModuleNotFoundError: No module named 'distutils'"),
            "--python 3.11",
        ),
        (
            failed_build("AttributeError: module 'pkgutil' has no attribute 'ImpImporter'"),
            "--python 3.11",
        ),
        (
            failed_build("LookupError: setuptools-scm was unable to detect version for /testbed."),
            "git = true",
        ),
        (
            failed_build(
                "pdm.backend.exceptions.PDMWarning\nValueError: Cannot find the version from SCM or SCM isn't detected.",
            ),
            "git = true",
        ),
        (
            failed_build(
                "error: Multiple top-level packages discovered in a flat-layout: ['mod', 'assets'].",
            ),
            "install = []",
        ),
        (failed_build("error: use_2to3 is invalid."), "setuptools<58"),
        (
            failed_build(
                "meson.build:9:0: ERROR: Dependency \"openblas\" not found, tried pkgconfig and cmake",
            ),
            "libopenblas-dev",
        ),
        (
            failed_build(
                "/usr/bin/ld: cannot find -lpq: No such file or directory\ncollect2: error: ld returned 1 exit status",
            ),
            "libpq-dev",
        ),
        (
            failed_build("Error: pg_config executable not found.").replace("Error: ", "error: "),
            "libpq-dev",
        ),
        (
            failed_build(
                "Exception: Can not find valid pkg-config name.\nSpecify MYSQLCLIENT_CFLAGS and MYSQLCLIENT_LDFLAGS env vars manually",
            ),
            "default-libmysqlclient-dev",
        ),
        (
            failed_build(
                "Error: Please make sure the libxml2 and libxslt development packages are installed.",
            ),
            "libxml2-dev",
        ),
        (failed_build("sh: 1: cargo: not found"), "rustup"),
        (
            "ERROR: /testbed/pyproject.toml: Expected ']'".to_owned(),
            "pyproject.toml is invalid",
        ),
        ("sh: 1: git: not found".to_owned(), "add \"git\""),
    ]);
}

#[test]
fn network_and_disk_failures_are_external() {
    for output in [
        "error: Failed to fetch: `http://127.0.0.1:1/simple/x/`\n  \
         Caused by: error sending request for url (http://127.0.0.1:1/simple/x/)",
        "error: invalid peer certificate: UnknownIssuer",
        "OSError: [Errno 28] No space left on device",
    ] {
        assert!(is_external(output), "{output}");
    }
    for output in [
        failed_build("ModuleNotFoundError: No module named 'numpy'"),
        resolver(
            "Because x was not found in the package registry and you require x, we can conclude that your requirements are unsatisfiable.",
        ),
        String::new(),
    ] {
        assert!(!is_external(&output), "{output}");
    }
}

#[test]
fn resolution_errors_select_hints() {
    assert_hints(&[
        (
            resolver(
                "Because x was not found in the package registry and you require x, we can conclude that your requirements are unsatisfiable.",
            ),
            "has no package x",
        ),
        (
            resolver(
                "Because a<1 depends on b>2 and you require b<2, we can conclude that your requirements are unsatisfiable.",
            ),
            "conflict",
        ),
        (
            resolver(
                "Because there is no version of codecov==2.1.7 and you require codecov==2.1.7, we can conclude that your requirements are unsatisfiable.",
            ),
            "codecov==2.1.7",
        ),
        (
            resolver(
                "Because the current Python version (3.13.0) does not satisfy Python>=3.14 and mod==1 depends on Python>=3.14, we can conclude that your requirements are unsatisfiable.",
            ),
            "needs Python >=3.14",
        ),
    ]);
}

/// uv 0.13 puts `error: ` and `cause: ` before its messages.
#[test]
fn newer_uv_messages_select_hints() {
    let unknown = "error: No solution found when resolving dependencies\n  cause: Because acme-ledger was not found in the \
                   package registry and billing==1.0 depends on acme-ledger>=3.2, we can conclude that billing==1.0 cannot be \
                   used.\n         And because only billing==1.0 is available and you require billing, we can conclude that \
                   your requirements are unsatisfiable.\n";
    let build = |stderr: &str| {
        format!(
            "error: Failed to build `gdal==3.8.4`\n  cause: The build backend returned an error\n  cause: Call to \
             `setuptools.build_meta.build_wheel` failed (exit status: 1)\n\n         [stderr]\n         {stderr}\n\nhint: Build \
             failures usually indicate a problem with the package or the build environment\n"
        )
    };
    assert_hints(&[
        (unknown.to_owned(), "has no package acme-ledger"),
        (
            build("FileNotFoundError: [Errno 2] No such file or directory: 'gdal-config'"),
            "libgdal-dev",
        ),
    ]);
    let line = decisive_line(unknown).unwrap();
    assert!(line.starts_with("Because acme-ledger was not"), "{line}");
    // A failed build without an error line of its own explains nothing.
    assert_eq!(decisive_line(&build("this is not supported")), None);
}

#[test]
fn test_errors_select_hints() {
    assert_hints(&[
        ("E   ModuleNotFoundError: No module named 'x'".to_owned(), "--requirement"),
        ("config.py:2: in <module>\n    NAME = os.environ[\"SERVER_NAME\"]\nE   KeyError: 'SERVER_NAME'".to_owned(), "--env SERVER_NAME=VALUE"),
        ("E   django.core.exceptions.ImproperlyConfigured: Requested setting INSTALLED_APPS, but settings are not configured. You must either define the environment variable DJANGO_SETTINGS_MODULE or call settings.configure()".to_owned(), "DJANGO_SETTINGS_MODULE=MODULE"),
        ("E   redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.".to_owned(), "Redis"),
        ("E   psycopg2.OperationalError: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused".to_owned(), "PostgreSQL"),
        ("usage: pytest\nerror: unrecognized arguments: --cov=x".to_owned(), "--cov=x"),
        ("E   ImportError: cannot import name 'Markup' from 'jinja2' (/env/jinja2/__init__.py)".to_owned(), "version of jinja2"),
    ]);
}

/// The first error belongs to another test file, whose cause is not the one that is reported.
#[test]
fn last_error_decides() {
    let output = "E   ModuleNotFoundError: No module named 'other'\ntests/test_b.py: E   KeyError\n\
                  E   ImportError: cannot import name 'Markup' from 'jinja2'\n";
    assert!(hint(output).unwrap().contains("jinja2"));
    assert_eq!(
        decisive_line(output).unwrap(),
        "ImportError: cannot import name 'Markup' from 'jinja2'"
    );
}

#[test]
fn unknown_errors_have_no_hint() {
    for output in [
        "",
        "all is well",
        "E   AssertionError: assert 1 == 2",
        "error: something else",
        "E   KeyError: 'NAME'",
        // A word of a rule outside the decisive error.
        "warning: No module named 'x' in the index\nE   AssertionError: assert 1 == 2",
        "CERTIFICATE_VERIFY_FAILED is tested here\nE   TypeError: f() missing 1 required argument",
    ] {
        assert_eq!(hint(output), None, "{output}");
    }
}

#[test]
fn refused_host_is_named() {
    let notice = "\nnetwork: files.example.org:443 was refused: a build can reach only the package index and the hosts in build.allowed-hosts\n";
    let output = failed_build(
        "urllib.error.URLError: <urlopen error Tunnel connection failed: 403 Forbidden>",
    ) + notice;
    assert!(
        hint(&output)
            .unwrap()
            .contains("TESTWRIGHT_BUILD_ALLOWED_HOSTS=files.example.org")
    );
    // cargo is there, but the host of a crate was refused.
    let output = failed_build(
        "error: failed to get `kernel` as a dependency of package `fastsum v0.1.0`\n\nCaused by:\n  failed to load source for \
         dependency `kernel`\n\nCaused by:\n  [56] Failure when receiving data from the peer (CONNECT tunnel failed, \
         response 403); class=Net (12)\n💥 maturin failed\n  Caused by: Cargo metadata failed. Does your crate compile with \
         `cargo build`?\n  Caused by: `cargo metadata` exited with an error: ",
    ) + notice;
    assert!(hint(&output).unwrap().contains("needs files.example.org"));
    // The refusal did not cause this failure.
    let output = failed_build("error: use_2to3 is invalid.") + notice;
    assert!(hint(&output).unwrap().contains("setuptools<58"));
}

#[test]
fn omissions_explain_later_failures() {
    let notes = [
        "submodules were left empty: extern/boost, extern/json (why)".to_owned(),
        "requirement Jinja2==2.9 could not be installed and was omitted (error: x)".to_owned(),
        "requirement my-utils @ git+https://example.org/u.git@1 could not be installed and was omitted \
         (example.org:443 was refused)"
            .to_owned(),
        "requirement mysqlclient>=2 could not be installed and was omitted (src/_mysql.c:29:10: fatal error: mysql.h: \
         No such file or directory)"
            .to_owned(),
        "requirement gdal==3.8.4 could not be installed and was omitted (FileNotFoundError: [Errno 2] No such file or \
         directory: 'gdal-config')"
            .to_owned(),
        "requirement pysqlite==2.8.3 could not be installed and was omitted (pysqlite is not supported on Python 3.)"
            .to_owned(),
        "requirement acme-ledger>=3.2 could not be installed and was omitted (Because acme-ledger was not found in the \
         package registry and you require acme-ledger>=3.2, we can conclude that your requirements are unsatisfiable.)"
            .to_owned(),
    ];
    for (output, wanted) in [
        (
            "E   ModuleNotFoundError: No module named 'pysqlite2'",
            "pysqlite==2.8.3, whose code is for Python 2",
        ),
        (
            "E   ModuleNotFoundError: No module named 'osgeo'",
            "gdal-config is missing: set system-packages = [\"libgdal-dev\"]",
        ),
        (
            "E   ModuleNotFoundError: No module named 'acme_ledger'",
            "the package index has no package acme-ledger",
        ),
        (
            "CMake Error at CMakeLists.txt:9 (add_subdirectory):\n  The source directory\n    /testbed/extern/boost\n  does not contain a CMakeLists.txt file.",
            "extern/boost is empty",
        ),
        (
            "E   FileNotFoundError: [Errno 2] No such file or directory: 'extern/json/a.json'",
            "extern/json is empty",
        ),
        (
            "E   ImportError: cannot import name 'Markup' from 'jinja2'",
            "Jinja2==2.9",
        ),
        (
            "E   ModuleNotFoundError: No module named 'my_utils'",
            "my-utils, whose installation needs example.org, but",
        ),
        (
            "E   ModuleNotFoundError: No module named 'MySQLdb'",
            "mysql.h is missing: set system-packages = [\"default-libmysqlclient-dev\"]",
        ),
    ] {
        let hint = hint_for_omission(output, &notes).unwrap();
        assert!(hint.contains(wanted), "{hint}");
    }
    assert_eq!(hint_for_omission("E   AssertionError: 1", &notes), None);
    assert_eq!(
        hint_for_omission("E   ModuleNotFoundError: No module named 'x'", &notes[1..]),
        None
    );
}

#[test]
fn missing_variables_are_recognized() {
    for (report, name) in [
        (
            "E   Exception: You must set the COOKIE_SECRET environment variable.",
            "COOKIE_SECRET",
        ),
        (
            "E   RuntimeError: Environment variable 'API_TOKEN' not set",
            "API_TOKEN",
        ),
        ("E   ValueError: missing env var: DB_URL", "DB_URL"),
        ("<frozen os>:716: in __getitem__\nE   KeyError: 'TZ'", "TZ"),
        (
            "E   ValueError: Please provide DB_URL as an environment variable",
            "DB_URL",
        ),
        (
            "E   UndefinedValueError: SECRET_KEY not found. Declare it as envvar or define a default value.",
            "SECRET_KEY",
        ),
        (
            "E   ImproperlyConfigured: Set the DATABASE_URL environment variable",
            "DATABASE_URL",
        ),
        (
            "E   pydantic.error_wrappers.ValidationError: 1 validation error for AppSettings\nE   database_url\nE     field \
             required (type=value_error.missing)",
            "DATABASE_URL",
        ),
        (
            "1 validation error for Settings\nsecret_key\n  Field required [type=missing, input_value={}, input_type=dict]",
            "SECRET_KEY",
        ),
    ] {
        assert_eq!(missing_variables(report).names, [name], "{report}");
    }
    let fields = "E   pydantic_core.ValidationError: 2 validation errors for Config\nE   db_dsn\nE     Field required \
                  [type=missing]\nE       For further information visit https://errors.pydantic.dev/2/v/missing\nE   \
                  POSTGRES_DB\nE     Field required [type=missing]\npydantic_settings/main.py";
    assert_eq!(missing_variables(fields).names, ["DB_DSN", "POSTGRES_DB"]);
    assert_hints(&[(fields.to_owned(), "--env DB_DSN=VALUE and so on")]);
    let hint = hint_for_settings(fields, "ACME_").unwrap();
    assert!(
        hint.contains("variables ACME_DB_DSN, ACME_POSTGRES_DB: pass --env ACME_DB_DSN=VALUE"),
        "{hint}"
    );
    for report in [
        "E   KeyError: 'NAME'",
        "E   AssertionError: the environment variable HOME was kept",
        "E   ValueError: the environment is not set",
        "1 validation error for Order\nprice\n  Field required [type=missing]",
    ] {
        assert!(missing_variables(report).names.is_empty(), "{report}");
    }
}
