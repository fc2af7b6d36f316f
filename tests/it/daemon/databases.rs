//! The databases that the daemon is tried on: SQLite, and a Postgres of the test's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `None`: the one in the data folder.
pub struct Database {
    pub url: Option<String>,
    postgres: Option<Postgres>,
}

struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
}

/// The one in the data folder.
pub fn embedded() -> Database {
    Database {
        url: None,
        postgres: None,
    }
}

/// Those that this machine has.
pub fn all() -> Vec<Database> {
    let mut all = vec![embedded()];
    match programs() {
        Some(programs) => all.push(Postgres::start(programs)),
        None => {
            let is_required =
                std::env::var_os("TESTWRIGHT_REQUIRE_POSTGRES").is_some_and(|v| v == "1");
            assert!(
                !is_required,
                "there is no Postgres (apt-get install postgresql)"
            );
            eprintln!("skipped: there is no Postgres (apt-get install postgresql)");
        }
    }
    all
}

/// Of the newest version.
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

impl Postgres {
    fn start(programs: PathBuf) -> Database {
        // Not in the folder of whoever runs the tests: Postgres refuses to be root, and another user has to reach it.
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in("/tmp")
            .unwrap();
        let postgres = Postgres { folder, programs };
        let data = postgres.folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        if is_root() {
            let own = Command::new("chown").arg("postgres").arg(&data).status();
            assert!(own.unwrap().success());
        }
        postgres.run(
            "initdb",
            &["--auth=trust", "--username=testwright", "--no-sync"],
        );
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c fsync=off"
        );
        postgres.run(
            "pg_ctl",
            &[
                "--wait",
                "--options",
                &options,
                "--log",
                "/dev/null",
                "start",
            ],
        );
        Database {
            url: Some(format!("postgres://testwright@127.0.0.1:{port}/postgres")),
            postgres: Some(postgres),
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(&program);
                command
            }
            false => Command::new(&program),
        };
        let data: &Path = &self.folder.path().join("data");
        command
            .arg("--pgdata")
            .arg(data)
            .args(arguments)
            .current_dir("/");
        let output = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(output.success(), "{program:?} {arguments:?}");
    }
}

impl Database {
    /// For a process that has another data folder than the server.
    pub fn url_in(&self, data: &Path) -> String {
        match &self.url {
            Some(url) => url.clone(),
            None => format!("sqlite:{}", data.join("testwright.db").display()),
        }
    }

    /// By somebody else than the program: the first value of the answer, where there is one.
    pub fn execute(&self, data: &Path, sql: &str) -> String {
        let mut command = match &self.postgres {
            Some(postgres) => {
                let mut command = Command::new(postgres.programs.join("psql"));
                let url = self.url.as_deref().unwrap();
                command.args([url, "--no-psqlrc", "--tuples-only", "--no-align", "--quiet"]);
                command.args(["--command", sql]);
                command
            }
            None => {
                let program = "import sqlite3, sys\n\
                               connection = sqlite3.connect(sys.argv[1])\n\
                               for row in connection.execute(sys.argv[2]): print(row[0])\n\
                               connection.commit()\n";
                let mut command = Command::new("python3");
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

    /// As a crash and what follows it.
    pub fn restart(&self) {
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
            postgres.run("pg_ctl", &["--wait", "--mode=immediate", "stop"]);
        }
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}
