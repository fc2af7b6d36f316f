//! PostgreSQL. Its data is in the sandbox's temporary folder, and any password is accepted.

use std::collections::BTreeMap;

use super::{KnownService, script, value};
use crate::recipe::Service;

pub(super) const SERVICE: KnownService = KnownService {
    images: "postgresql postgres postgis pgvector timescaledb",
    clients: "psycopg2 psycopg2-binary psycopg psycopg-binary asyncpg aiopg pg8000 pgvector databases sqlalchemy \
              django peewee tortoise-orm",
    port: 5432,
    create,
};

const URLS: &str = "DATABASE_URL DATABASE_DSN DB_URL DB_DSN PG_DSN POSTGRES_DSN POSTGRES_URL \
                    SQLALCHEMY_DATABASE_URI SQLALCHEMY_DATABASE_URL TEST_DATABASE_URL";

/// Beginnings of the names of variables with a part of the address. Those of libpq are `PGHOST` and so on.
const PREFIXES: [&str; 4] = ["PG", "POSTGRES_", "DATABASE_", "DB_"];

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
    let url = format!("postgresql://{user}:postgres@localhost:{port}/{database}");
    let urls = URLS.split(' ').map(|name| (name.to_owned(), url.clone()));
    let mut env: BTreeMap<String, String> = urls.collect();
    let port_text = port.to_string();
    for (name, value) in [
        ("HOST", "localhost"),
        ("PORT", port_text.as_str()),
        ("USER", user.as_str()),
        ("PASSWORD", "postgres"),
        ("DATABASE", database.as_str()),
        ("DB", database.as_str()),
        ("NAME", database.as_str()),
    ] {
        env.extend(PREFIXES.map(|prefix| (format!("{prefix}{name}"), value.to_owned())));
    }
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
        env,
    }
}
