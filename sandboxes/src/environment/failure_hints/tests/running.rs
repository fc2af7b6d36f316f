//! Hints for errors of code and tests that run.

use super::*;

#[test]
fn services_that_do_not_run_select_hints() {
    let cases = [
        (
            "E   pymysql.err.OperationalError: (2003, \"Can't connect to MySQL server on '127.0.0.1' ([Errno 111] Connection \
             refused)\")",
            "MySQL, and nothing listens at port 3306: install the Debian package mariadb-server",
        ),
        (
            "E   pymongo.errors.ServerSelectionTimeoutError: localhost:27017: [Errno 111] Connection refused (configured \
             timeouts: socketTimeoutMS: 20000.0ms), Timeout: 0.3s",
            "MongoDB, and nothing listens at port 27017: install its server",
        ),
        (
            "E   pika.exceptions.AMQPConnectionError",
            "RabbitMQ, and nothing listens at port 5672",
        ),
        (
            "E   elastic_transport.ConnectionError: Connection error caused by: NewConnectionError(HTTPConnection(\
             host='localhost', port=9200): Failed to establish a new connection: [Errno 111] Connection refused))",
            "Elasticsearch",
        ),
        (
            "E   psycopg2.OperationalError: could not translate host name \"db\" to address: Name or service not known",
            "under env the variable with its address",
        ),
        (
            "E   django.db.utils.OperationalError: (2002, \"Can't connect to local server through socket \
             '/run/mysqld/mysqld.sock' (2)\")",
            "MySQL, and nothing listens at port 3306",
        ),
        (
            "E   django.db.utils.OperationalError: connection to server on socket \"/var/run/postgresql/.s.PGSQL.5432\" \
             failed: No such file or directory",
            "PostgreSQL, and nothing listens at port 5432",
        ),
        (
            "E   kombu.exceptions.OperationalError: Error 111 connecting to localhost:6379. Connection refused.",
            "Redis, and nothing listens",
        ),
        (
            "E   kombu.exceptions.OperationalError: [Errno 111] Connection refused",
            "RabbitMQ, and nothing listens at port 5672",
        ),
        (
            "E   docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.', \
             FileNotFoundError(2, 'No such file or directory'))",
            "the tests start containers",
        ),
        (
            "E   ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', 4000)",
            "nothing listens at port 4000",
        ),
    ];
    assert_hints(&cases.map(|(line, wanted)| (format!("{line}\n"), wanted)));
    // Tests have no network, so a web site is not a service to add.
    let site = "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='example.org', port=443): Max retries \
                exceeded: [Errno 111] Connection refused\n";
    assert!(!hint(site).unwrap().contains("services"));
}

#[test]
fn missing_history_and_web_sites_select_hints() {
    for (line, wanted) in [
        ("git.exc.InvalidGitRepositoryError: /testbed", "git = true"),
        (
            "gitdb.exc.BadName: Ref 'HEAD~9' did not resolve to an object",
            "git = true",
        ),
        ("gitdb.exc.BadObject: BadObject: b'9e0c1d2f'", "git = true"),
        (
            "fatal: ambiguous argument 'HEAD~1': unknown revision or path not in the working tree.",
            "history of the code",
        ),
        (
            "LookupError: \nE   ****\nE     Resource punkt not found.\nE     Please use the NLTK Downloader to obtain it",
            "download their data",
        ),
        (
            "aiohttp.client_exceptions.ClientConnectorDNSError: Cannot connect to host example.org:443 ssl:default",
            "before-install",
        ),
    ] {
        assert_hints(&[(format!("E   {line}\n"), wanted)]);
    }
}

#[test]
fn modules_that_a_build_generates_select_hints() {
    let own = "tests/test_user.py:1: in <module>\n    from rpc import user\nrpc/__init__.py:1: in <module>\nE   \
               ModuleNotFoundError: No module named 'rpc.user_pb2'\n";
    let version = "thing/__init__.py:1: in <module>\nE   ModuleNotFoundError: No module named 'thing._version'\n";
    let name =
        "E   ImportError: cannot import name 'user_pb2' from 'rpc' (/testbed/rpc/__init__.py)\n";
    let foreign =
        "app.py:1: in <module>\nE   ModuleNotFoundError: No module named 'google.cloud'\n";
    assert_hints(&[
        (
            own.to_owned(),
            "contain rpc.user_pb2, which a build step may",
        ),
        (version.to_owned(), "the command that generates it"),
        (name.to_owned(), "grpc_tools.protoc"),
        (
            foreign.to_owned(),
            "google is there, but without google.cloud",
        ),
    ]);
    let circular = "E   ImportError: cannot import name 'f' from partially initialized module 'rpc' (most likely due to a \
                    circular import) (/testbed/rpc/__init__.py)\n";
    assert_eq!(hint(circular), None);
}

#[test]
fn contradictions_explain_errors_of_packages() {
    let notes = [
        "requirement werkzeug==2.0.3 contradicts others and was installed all the same (Because flask==3.0.0 depends on \
         werkzeug>=3.0.0 and you require flask==3.0.0, we can conclude that you require werkzeug>=3.0.0.)"
            .to_owned(),
    ];
    let error = "app.py:1: in <module>\n    from flask import Flask\n\
                 /opt/testwright/env/lib/python3.13/site-packages/flask/globals.py:25: in <module>\n\
                 E   TypeError: LocalProxy.__init__() got an unexpected keyword argument 'unbound_message'\n";
    let hint = hint_for_omission(error, &notes).unwrap();
    assert!(
        hint.contains("contradicts flask, which needs werkzeug>=3.0.0"),
        "{hint}"
    );
    for other in [
        "app.py:1: in f\nE   TypeError: f() missing 1 required argument\n",
        "env/site-packages/flask/app.py:1: in f\nE   AssertionError: x\n",
    ] {
        assert_eq!(hint_for_omission(other, &notes), None, "{other}");
    }
}

#[test]
fn lfs_pointers_explain_unreadable_data() {
    let notes = [
        "files are Git LFS pointers without their content: tests/data/model.npz, tests/data/a.png"
            .to_owned(),
    ];
    let error = "tests/conftest.py:4: in <module>\n    W = np.load(FOLDER / 'model.npz')\nE   ValueError: This file contains \
                 pickled (object) data. If you trust the file you can load it unsafely\n";
    let hint = hint_for_omission(error, &notes).unwrap();
    assert!(
        hint.contains("model.npz is a pointer") && hint.contains("git lfs pull"),
        "{hint}"
    );
    for other in [
        "tests/test_a.py:4: in f\nE   ValueError: x must be positive\n",
        // An empty response of a server is not valid JSON either.
        "E   json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n",
    ] {
        assert_eq!(hint_for_omission(other, &notes), None);
    }
    let data = "E   ValueError: Cannot load file containing pickled data when allow_pickle=False\n";
    assert!(hint_for_omission(data, &notes).is_some());
}

#[test]
fn unknown_options_of_pytest_select_hint() {
    let output = "ERROR: usage: pytest.main() [options] [file_or_dir] [file_or_dir] [...]\npytest.main(): error: unrecognized \
                  arguments: --acme-report=out.xml\n  inifile: /testbed/pytest.ini\n  rootdir: /testbed\n";
    assert_hints(&[(output.to_owned(), "does not know --acme-report=out.xml")]);
}

#[test]
fn code_for_python_2_selects_hint() {
    let print = "ImportError while loading conftest '/testbed/tests/conftest.py'.\n  File \"/testbed/tests/conftest.py\", line \
                 2\n    print 'testing with', sys.version\n    ^^^^^\nSyntaxError: Missing parentheses in call to 'print'. Did you \
                 mean print(...)?\n";
    let module = "E   ModuleNotFoundError: No module named 'urllib2'\n";
    assert_hints(&[print, module].map(|output| (output.to_owned(), "is for Python 2")));
    let other = "  File \"/testbed/a.py\", line 2\nSyntaxError: invalid syntax\n";
    assert_eq!(hint(other), None);
}

#[test]
fn files_of_frontends_select_hint() {
    let path = "/testbed/dashui/static/dist/manifest.json";
    let error = format!("E   FileNotFoundError: [Errno 2] No such file or directory: '{path}'\n");
    assert_hints(&[
        (error, "a build of its frontend creates"),
        (
            failed_build("FileNotFoundError: [Errno 2] No such file or directory: 'npm'"),
            "runs npm for its frontend",
        ),
        (failed_build("sh: 1: yarn: not found"), "runs yarn"),
    ]);
}

#[test]
fn commands_in_messages_select_hint() {
    for (message, command) in [
        (
            "RuntimeError: corpus not found in /testbed/corpus; run scripts/fetch_data.sh first",
            "`scripts/fetch_data.sh`",
        ),
        ("ImportError: please run 'make generate'", "`make generate`"),
        ("Exception: Run make data to create it", "`make data`"),
    ] {
        assert_hints(&[(format!("E   {message}\n"), command)]);
    }
    for message in [
        "RuntimeError: run failed",
        "ValueError: cannot run 'job'",
        "RuntimeError: run `pip install x`",
    ] {
        assert_eq!(hint(&format!("E   {message}\n")), None, "{message}");
    }
}

#[test]
fn rejected_guesses_select_hint() {
    let notes = ["set FIELD_SECRET=testwright: tests/test_config.py needs it".to_owned()];
    let error = "app/config.py:4: in <module>\n    FERNET = Fernet(config('FIELD_SECRET'))\nE   ValueError: Fernet key must be 32 \
                 url-safe base64-encoded bytes.\n";
    let hint = hint_for_omission(error, &notes).unwrap();
    assert!(
        hint.contains("does not accept FIELD_SECRET=testwright"),
        "{hint}"
    );
    let other = "tests/test_a.py:4: in f\nE   ValueError: x must be positive\n";
    assert_eq!(hint_for_omission(other, &notes), None);
}

#[test]
fn omitted_addresses_are_recognized() {
    let note = |requirement: &str| {
        format!(
            "requirement {requirement} could not be installed and was omitted (api.github.com:443 was refused)"
        )
    };
    let error = "E   ModuleNotFoundError: No module named 'acme_utils'\n";
    for (requirement, wanted) in [
        (
            "git+ssh://git@github.com/acme/utils.git@5.1.0#egg=acme-utils",
            "cannot use ssh",
        ),
        (
            "git+https://github.com/acme/acme-utils.git@main",
            "needs api.github.com",
        ),
        (
            "git+https://github.com/acme/acme_utils",
            "needs api.github.com",
        ),
    ] {
        let hint = hint_for_omission(error, &[note(requirement)]).unwrap_or_default();
        assert!(hint.contains(wanted), "{requirement}: {hint}");
    }
    let other = note("git+https://github.com/acme/other.git");
    assert_eq!(hint_for_omission(error, &[other]), None);
}

#[test]
fn omitted_package_without_its_library_selects_hint() {
    let note = |reason: &str| {
        [format!(
            "requirement mysqlclient==2.2.4 could not be installed and was omitted ({reason})"
        )]
    };
    let error = "E   ModuleNotFoundError: No module named 'MySQLdb'\n";
    let lacks = note("Exception: Can not find valid pkg-config name.");
    let hint = hint_for_omission(error, &lacks).unwrap();
    assert!(hint.contains("default-libmysqlclient-dev"), "{hint}");
    // Old code does not compile with this Python, whatever is installed.
    let old = note("src/_mysql.c:9:5: error: too few arguments to function");
    let hint = hint_for_omission(error, &old).unwrap();
    assert!(hint.contains("use an older Python"), "{hint}");
}

#[test]
fn missing_parts_of_pytest_select_hints() {
    let cases = [
        (
            "INTERNALERROR> pluggy._manager.PluginValidationError: unknown hook 'pytest_acme_setup' in plugin <module \
             'conftest' from '/testbed/conftest.py'>",
            "pytest_acme_setup is a hook",
        ),
        (
            "file /testbed/test_a.py, line 1\n  def test_a(acme_client): pass\nE       fixture 'acme_client' not found\n>       \
             available fixtures: cache, capfd",
            "the fixture acme_client",
        ),
        (
            "ERROR: Missing required plugins: pytest-acme>=2",
            "each of pytest-acme>=2",
        ),
        (
            "ERROR: /testbed/pyproject.toml: 'minversion' requires pytest-99, actual pytest-9.2.0'",
            "'pytest>=99'",
        ),
        (
            "'acme' not found in `markers` configuration option",
            "the mark acme",
        ),
    ];
    assert_hints(&cases.map(|(output, wanted)| (format!("{output}\n"), wanted)));
}
