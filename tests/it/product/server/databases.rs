//! The databases to test the server on: SQLite and a temporary Postgres.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// URL of the database; `None` for SQLite in the data folder.
pub(crate) struct Database {
    pub url: Option<String>,
    postgres: Option<Postgres>,
}

struct Postgres {
    folder: PathBuf,
    _owned: Option<tempfile::TempDir>,
    programs: PathBuf,
    options: String,
}

/// Returns the SQLite database in the data folder.
pub(crate) fn embedded() -> Database {
    Database {
        url: None,
        postgres: None,
    }
}

/// Returns the databases available on this machine.
pub(crate) fn all() -> Vec<Database> {
    [embedded()].into_iter().chain(postgres()).collect()
}

/// Starts a temporary Postgres. Returns `None`, with a message, if it is not installed.
pub(crate) fn postgres() -> Option<Database> {
    // Postgres refuses to run as root, so another user must be able to enter this folder.
    let folder = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in("/tmp")
        .unwrap();
    let path = folder.path().to_owned();
    Postgres::start(path, Some(folder))
}

/// Starts a Postgres with its data in this folder, which other users must be able to enter.
pub(crate) fn postgres_in(folder: &Path) -> Option<Database> {
    Postgres::start(folder.to_owned(), None)
}

/// Returns the folder with the programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|v| Some(v.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    versions
        .pop()
        .filter(|programs| programs.join("initdb").exists())
}

/// Copies a folder with its owners and modes.
fn copy_folder(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.unwrap().success());
}

impl Postgres {
    fn start(folder: PathBuf, owned: Option<tempfile::TempDir>) -> Option<Database> {
        let Some(programs) = programs() else {
            let is_required =
                std::env::var_os("TESTWRIGHT_REQUIRE_POSTGRES").is_some_and(|v| v == "1");
            assert!(
                !is_required,
                "Postgres is not installed (apt-get install postgresql)"
            );
            eprintln!("skipped: Postgres is not installed (apt-get install postgresql)");
            return None;
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c fsync=off"
        );
        let postgres = Postgres {
            folder,
            _owned: owned,
            programs,
            options,
        };
        postgres.create_data();
        postgres.control("start");
        Some(Database {
            url: Some(format!("postgres://testwright@127.0.0.1:{port}/postgres")),
            postgres: Some(postgres),
        })
    }

    /// Creates the data folder. Only the first test on a machine runs `initdb`, which takes seconds; the others copy its
    /// result.
    fn create_data(&self) {
        let version = self.programs.parent().unwrap().file_name().unwrap();
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("postgres-{}", version.to_str().unwrap()));
        std::fs::create_dir_all(&shared).unwrap();
        let lock = std::fs::File::create(shared.join("lock")).unwrap();
        lock.lock().unwrap();
        let (template, data) = (shared.join("data"), self.folder.join("data"));
        if template.exists() {
            lock.unlock().unwrap();
            return copy_folder(&template, &data);
        }
        std::fs::create_dir(&data).unwrap();
        if is_root() {
            let status = Command::new("chown").arg("postgres").arg(&data).status();
            assert!(status.unwrap().success());
        }
        self.run(
            "initdb",
            &[
                "--auth=trust",
                "--username=testwright",
                "--no-sync",
                "--wal-segsize=1",
            ],
        );
        let incomplete = shared.join("incomplete");
        let _ = std::fs::remove_dir_all(&incomplete);
        copy_folder(&data, &incomplete);
        std::fs::rename(&incomplete, &template).unwrap();
    }

    fn control(&self, what: &str) {
        let options = ["--wait", "--options", &self.options, "--log", "/dev/null"];
        self.run("pg_ctl", &[&options[..], &[what]].concat());
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.try_run(program, arguments);
        assert!(output.success(), "{program:?} {arguments:?}");
    }

    fn try_run(&self, program: &str, arguments: &[&str]) -> ExitStatus {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(&program);
                command
            }
            false => Command::new(&program),
        };
        command
            .arg("--pgdata")
            .arg(self.folder.join("data"))
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap()
    }

    fn psql(&self, url: Option<&str>, sql: &str) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command.args([
            url.unwrap(),
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--quiet",
        ]);
        command.args(["--command", sql]);
        command
    }
}

impl Database {
    /// Returns the URL for a process whose data folder differs from the server's.
    pub(crate) fn url_in(&self, data: &Path) -> String {
        match &self.url {
            Some(url) => url.clone(),
            None => format!("sqlite:{}", data.join("testwright.db").display()),
        }
    }

    /// Executes SQL outside the program. Returns the first value of the result, or an empty text.
    pub(crate) fn execute(&self, data: &Path, sql: &str) -> String {
        let mut command = match &self.postgres {
            Some(postgres) => postgres.psql(self.url.as_deref(), sql),
            None => {
                let program = "import sqlite3, sys\n\
                               connection = sqlite3.connect(sys.argv[1])\n\
                               for row in connection.execute(sys.argv[2]): print(row[0])\n\
                               connection.commit()\n";
                let mut command = Command::new(python());
                command
                    .args(["-c", program])
                    .arg(data.join("testwright.db"));
                command.arg(sql);
                command
            }
        };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Starts to execute SQL in one transaction, without waiting for its end.
    pub(crate) fn start(&self, sql: &str) -> Child {
        let postgres = self.postgres.as_ref().unwrap();
        let mut command = postgres.psql(self.url.as_deref(), sql);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Starts the database if it has stopped.
    pub(crate) fn start_again(&self) {
        let postgres = self.postgres.as_ref().unwrap();
        if !postgres.try_run("pg_ctl", &["status"]).success() {
            postgres.control("start");
        }
    }

    /// Stops the database as in a crash, then starts it.
    pub(crate) fn restart(&self) {
        if let Some(postgres) = &self.postgres {
            postgres.run(
                "pg_ctl",
                &[
                    "--wait",
                    "--mode=immediate",
                    "--log",
                    "/dev/null",
                    "restart",
                ],
            );
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(postgres) = &self.postgres {
            postgres.try_run("pg_ctl", &["--wait", "--mode=immediate", "stop"]);
        }
    }
}

/// Returns the Python on the PATH. The shim of a version manager takes longer to find it than a query takes.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let question = ["-c", "import sys; print(sys.executable)"];
        let output = Command::new("python3").args(question).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}
