//! Variables through which the code of a repository finds a service, such as `DATABASE_URL`.

use std::collections::BTreeMap;

use regex::Regex;

use crate::pattern::Pattern;
use crate::recipe::Service;
use crate::recipe::detect::text;
use crate::recipe::named_variables::{named_variables, rank};
use crate::repository::Tree;
use crate::sandbox::Result;

/// Parts of the names of modules that read variables.
const READERS: [&str; 6] = ["settings", "config", "conftest", "database", "db", "env"];

/// Rank of these modules. Files of a higher rank are images and prose.
const READER: usize = 6;

/// Maximum rank of files that configure tests, such as workflows.
const CONFIGURATION: usize = 2;

/// An address in the form of libpq, such as `host=localhost user=ann`.
static KEYWORDS: Pattern = Pattern::new(r"^(?:\w+=\S*\s+)*host=\S+(?:\s+\w+=\S*)*$");

static SCHEME: Pattern = Pattern::new(r"([A-Za-z][A-Za-z0-9+]*)://");

/// Variables that PostgreSQL's own client library reads, for what the code leaves open.
pub(crate) const LIBPQ: [&str; 5] = ["PGDATABASE", "PGHOST", "PGPASSWORD", "PGPORT", "PGUSER"];

/// Keeps those of a service's variables that its client library reads or the repository names, adapted to it.
pub(in crate::recipe) fn retain_named(tree: &Tree, service: &mut Service) -> Result<()> {
    let order = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_reader = name.ends_with(".py") && READERS.iter().any(|part| name.contains(part));
        let rank = rank(path).filter(|rank| *rank < READER);
        rank.or(is_reader.then_some(READER))
    };
    let paths = tree.paths().filter(|path| path.matches('/').count() < 6);
    let mut files: Vec<(usize, &str)> = paths
        .filter_map(|path| Some((order(path)?, path)))
        .collect();
    files.sort_unstable();
    let mut texts = String::new();
    for (_, path) in files {
        texts.push_str(&text(tree, path)?.unwrap_or_default());
        texts.push('\n');
    }
    let env = std::mem::take(&mut service.env);
    let stated = stated_addresses(tree, &env)?;
    let kept = env.into_iter().filter_map(|(name, value)| {
        let value = match LIBPQ.contains(&name.as_str()) {
            true => value,
            false => adapted(&texts, &name, &value)?,
        };
        Some((name, value))
    });
    service.env = kept.collect();
    for (name, value) in stated {
        service.env.entry(name).or_insert(value);
    }
    Ok(())
}

/// Returns the variables of any name that the configuration of the tests sets to an address of the service. The values
/// are its address in a sandbox.
fn stated_addresses(
    tree: &Tree,
    env: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    let named = named_variables(tree)?.into_iter();
    let of_tests = named
        .filter(|(_, variable)| rank(&variable.file).is_some_and(|rank| rank <= CONFIGURATION));
    let addresses =
        of_tests.filter_map(|(name, variable)| Some((name, own_address(&variable.value, env)?)));
    Ok(addresses.collect())
}

/// Returns the service's address in the form of a value, or `None` if the value is not an address of such a service.
fn own_address(value: &str, env: &BTreeMap<String, String>) -> Option<String> {
    if let Some((scheme, _)) = value.split_once("://") {
        let own = env.values().find(|own| own.contains("://"))?;
        return with_scheme(own, scheme);
    }
    let part = |keyword: &str, name: &str| Some(format!("{keyword}={}", env.get(name)?));
    if !KEYWORDS.is_match(value) {
        return None;
    }
    let parts = [
        part("host", "PGHOST")?,
        part("port", "PGPORT")?,
        part("user", "PGUSER")?,
        part("password", "PGPASSWORD")?,
        part("dbname", "PGDATABASE")?,
    ];
    Some(parts.join(" "))
}

/// Returns the value with the scheme of the first such URL beside the name, because a scheme can select a driver.
/// Returns `None` if no line has the name, or only with URLs of other services.
fn adapted(texts: &str, name: &str, value: &str) -> Option<String> {
    let mention = Regex::new(&format!(r"(?i)\b{name}\b")).ok()?;
    let lines: Vec<&str> = texts
        .lines()
        .filter(|line| mention.is_match(line))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let captures = lines.iter().flat_map(|line| SCHEME.captures_iter(line));
    let mut schemes = captures.map(|scheme| scheme[1].to_owned()).peekable();
    if !value.contains("://") || schemes.peek().is_none() {
        return Some(value.to_owned());
    }
    schemes.find_map(|scheme| with_scheme(value, &scheme))
}

/// Returns the URL of a service with another scheme, or `None` if that is a scheme of other services.
fn with_scheme(url: &str, scheme: &str) -> Option<String> {
    let (own, address) = url.split_once("://")?;
    let scheme = scheme.to_lowercase();
    let is_same = scheme.starts_with(own.get(..5).unwrap_or(own));
    // The service has no TLS.
    is_same.then(|| format!("{}://{address}", scheme.replace("rediss", "redis")))
}

#[cfg(test)]
mod tests {
    use super::adapted;

    #[test]
    fn urls_get_scheme_of_repository() {
        let url = "postgresql://ann:x@localhost:5432/shop";
        for (texts, expected) in [
            ("URL = env('DATABASE_URL')", Some(url)),
            (
                "DATABASE_URL: postgresql+asyncpg://u@db/x",
                Some("postgresql+asyncpg://ann:x@localhost:5432/shop"),
            ),
            (
                "database_url = 'sqlite://'\nDATABASE_URL=postgres://db",
                Some("postgres://ann:x@localhost:5432/shop"),
            ),
            ("DATABASE_URL=sqlite:///x.db", None),
            ("OLD_DATABASE_URL=postgres://db", None),
        ] {
            let value = adapted(texts, "DATABASE_URL", url);
            assert_eq!(value.as_deref(), expected, "{texts}");
        }
        let port = adapted("port = environ['PGPORT']", "PGPORT", "5433");
        assert_eq!(port.as_deref(), Some("5433"));
    }
}
