//! PostgreSQL. Its data is in the sandbox's temporary folder, and any password is accepted.

use super::{KnownService, script, value};
use crate::recipe::Service;

pub(super) const SERVICE: KnownService = KnownService {
    images: &[
        "postgresql",
        "postgres",
        "postgis",
        "pgvector",
        "timescaledb",
    ],
    clients: &[
        "psycopg2",
        "psycopg2-binary",
        "psycopg",
        "psycopg-binary",
        "asyncpg",
        "aiopg",
        "pg8000",
        "pgvector",
        "databases",
        "sqlalchemy",
        "django",
        "peewee",
        "tortoise-orm",
    ],
    port: 5432,
    create,
};

fn create(port: u16, declaration: &str) -> Service {
    let user = value(declaration, "POSTGRES_USER").unwrap_or_else(|| "postgres".to_owned());
    let database = value(declaration, "POSTGRES_DB").unwrap_or_else(|| user.clone());
    let create = match database == "postgres" {
        true => String::new(),
        false => format!(
            "echo 'CREATE DATABASE \"{database}\" OWNER \"{user}\";' | \"$bin/postgres\" --single -D \"$data\" postgres \
             >/dev/null; "
        ),
    };
    Service {
        name: "postgresql".to_owned(),
        command: script(&format!(
            "bin=\"$packages/pgserver/pginstall/bin\"; data=\"${{TMPDIR:-/tmp}}/.service-postgresql\"; \
             [ -d \"$data\" ] || {{ \"$bin/initdb\" -D \"$data\" -U '{user}' -A trust -E UTF8 --locale=C --no-sync; \
             {create}}}; rm -f \"$data/postmaster.pid\"; exec \"$bin/postgres\" -D \"$data\" -h 127.0.0.1 -p {port} -k \"$data\" -F"
        )),
        requirements: vec!["pgserver".to_owned()],
        python: Some("3.12".to_owned()),
        port,
        ..Service::default()
    }
}
