//! Services that tests commonly need and that PyPI has as programs in wheels, so that they need no root and no Docker.
//!
//! They are found in the workflows that run the tests; [`for_port`] finds one by an error.

mod postgresql;
mod redis;
mod variables;

use regex::Regex;

use super::detect::{is_workflow, runs_tests, text, workflows};
use super::{Recipe, Service, compose};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;
pub(crate) use variables::LIBPQ;
pub(super) use variables::retain_named;

/// A service that can be started from a wheel.
struct KnownService {
    /// Names of images that provide the service, without registry and tag.
    images: &'static str,
    /// Packages that are clients of it.
    clients: &'static str,
    /// The port at which clients expect it.
    port: u16,
    /// Creates the service, with all variables by which code may find it. The block of the file that declares it names
    /// users and databases.
    create: fn(port: u16, declaration: &str) -> Service,
}

impl KnownService {
    /// Returns whether an image provides the service.
    fn provides(&self, image: &str) -> bool {
        self.images.split(' ').any(|other| other == image)
    }
}

const ALL: [&KnownService; 2] = [&redis::SERVICE, &postgresql::SERVICE];

/// Returns the known services that every workflow with tests starts. If one does without, the tests do not need them.
pub(super) fn in_workflows(tree: &Tree) -> Result<Vec<Service>> {
    let mut common: Option<Vec<Service>> = None;
    for path in workflows(tree) {
        let text = text(tree, path)?.unwrap_or_default();
        if !runs_tests(&text) {
            continue;
        }
        let services = started_services(&text);
        common = Some(match common {
            None => services,
            Some(mut common) => {
                common.retain(|service| services.iter().any(|other| other.name == service.name));
                common
            }
        });
    }
    Ok(common.unwrap_or_default())
}

fn started_services(workflow: &str) -> Vec<Service> {
    let mut services = Vec::new();
    for (image, declaration) in declared(workflow) {
        let known_service = ALL.iter().find(|entry| entry.provides(&image));
        if let Some(known_service) = known_service {
            let port = mapped_port(known_service, &declaration).unwrap_or(known_service.port);
            add(&mut services, (known_service.create)(port, &declaration));
        }
    }
    // The image may be an expression, such as one of a matrix.
    for known_service in ALL {
        if let Some(port) = mapped_port(known_service, workflow) {
            add(&mut services, (known_service.create)(port, workflow));
        }
    }
    services
}

/// Returns the known service at a port, as the repository's compose files and workflows declare it.
pub(crate) fn for_port(tree: &Tree, port: u16) -> Result<Option<Service>> {
    let mut service = at_port(tree, port)?;
    if let Some(service) = &mut service {
        retain_named(tree, service)?;
    }
    Ok(service)
}

fn at_port(tree: &Tree, port: u16) -> Result<Option<Service>> {
    let usual = ALL.iter().find(|entry| entry.port == port);
    let declares = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_yaml = name.ends_with(".yml") || name.ends_with(".yaml");
        is_workflow(path) || is_yaml && name.contains("compose")
    };
    for path in tree.paths().filter(declares) {
        let text = compose::expanded(tree, path)?;
        let images = declared(&text);
        let declaration = images.iter().find_map(|(image, declaration)| {
            let known_service = usual.filter(|entry| entry.provides(image))?;
            Some((known_service, declaration))
        });
        if let Some((known_service, declaration)) = declaration {
            let declaration = compose::with_variables(tree, path, declaration)?;
            return Ok(Some((known_service.create)(port, &declaration)));
        }
        let is_mapped = |entry: &&&KnownService| mapped_port(entry, &text) == Some(port);
        if let Some(known_service) = ALL.iter().find(is_mapped) {
            return Ok(Some((known_service.create)(port, &text)));
        }
    }
    Ok(usual.map(|known_service| (known_service.create)(port, "")))
}

/// Returns whether the requirements include a client of the service.
pub(super) fn has_client(
    recipe: &Recipe,
    service: &Service,
    is_named: &dyn Fn(&str) -> bool,
) -> bool {
    let is_it =
        |entry: &&&KnownService| entry.port == service.port || entry.provides(&service.name);
    let clients = ALL.iter().find(is_it).map_or("", |entry| entry.clients);
    let is_required = |client: &str| {
        let is_it = |line: &String| super::normalized_name(line) == client;
        recipe.requirements.iter().any(is_it) || is_named(client)
    };
    clients.split(' ').any(is_required)
}

static IMAGE: Pattern = Pattern::new(
    r#"(?m)^([ \t]*)(?:- )?image:\s*["']?(?:[\w.:-]+/)*([\w.-]+)(?:[:@].*)?["']?[ \t]*$"#,
);

/// Returns the images in a YAML file, each with its block: the lines with at least the same indentation.
fn declared(text: &str) -> Vec<(String, String)> {
    let image = |captures: regex::Captures<'_>| {
        let indentation = captures[1].len();
        let start = captures.get(0).map_or(0, |all| all.start());
        Some((captures[2].to_lowercase(), block(text, start, indentation)))
    };
    IMAGE.captures_iter(text).filter_map(image).collect()
}

fn block(text: &str, at: usize, indentation: usize) -> String {
    let is_inside = |line: &&str| {
        let own = line.len() - line.trim_start().len();
        line.trim().is_empty() || own >= indentation
    };
    let (before, after) = text.split_at(at);
    let mut lines: Vec<&str> = before.lines().rev().take_while(is_inside).collect();
    lines.reverse();
    lines.extend(after.trim_start_matches('\n').lines().take_while(is_inside));
    lines.join("\n")
}

/// Returns the port of the host in the first mapping to the service's port: `6380` for `6380:6379`.
fn mapped_port(known_service: &KnownService, text: &str) -> Option<u16> {
    let pattern = Regex::new(&format!(r"\b(\d{{2,5}}):{}\b", known_service.port)).ok()?;
    pattern.captures(text)?[1].parse().ok()
}

/// Returns the literal value of a variable in a declaration, as `NAME: value` or `NAME=value`.
fn value(declaration: &str, name: &str) -> Option<String> {
    let pattern = format!(r#"(?m)\b{name}\s*[:=]\s*["']?([A-Za-z_][\w-]*)["']?\s*$"#);
    let pattern = Regex::new(&pattern).ok()?;
    Some(pattern.captures(declaration)?[1].to_owned())
}

fn add(services: &mut Vec<Service>, service: Service) {
    let same = |other: &Service| other.name == service.name || other.port == service.port;
    if !services.iter().any(same) {
        services.push(service);
    }
}

/// Returns the command of a shell script that starts with the folder of the service's packages in `$packages`.
fn script(body: &str) -> Vec<String> {
    let script = format!("set -e; packages=\"$SERVICE/packages\"; {body}");
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WORKFLOW: &str = "jobs:\n  test:\n    services:\n      cache:\n        image: \"redis:7-alpine\"\n        \
        ports: ['6380:6379']\n      db:\n        env:\n          POSTGRES_DB: shop\n          POSTGRES_USER: ann\n        \
        image: docker.io/library/postgres:16\n      mail:\n        image: ghcr.io/x/mailpit@sha256:00\n    steps:\n      \
        - run: pytest\n";

    #[test]
    fn images_are_found_with_declarations() {
        let images = declared(WORKFLOW);
        let names: Vec<&str> = images.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["redis", "postgres", "mailpit"]);
        let redis = (redis::SERVICE.create)(
            mapped_port(&redis::SERVICE, &images[0].1).unwrap(),
            &images[0].1,
        );
        assert_eq!(redis.port, 6380);
        let postgres = (postgresql::SERVICE.create)(5432, &images[1].1);
        let command = postgres.command.join(" ");
        assert!(
            command.contains("-U 'ann'") && command.contains("shop"),
            "{command}"
        );
        assert!(!images[0].1.contains("POSTGRES"), "{}", images[0].1);
    }

    #[test]
    fn port_mapping_identifies_image_of_matrix() {
        let workflow = "    services:\n      server:\n        image: ${{ matrix.image }}\n        ports:\n          \
            - 6390:6379\n    steps:\n      - run: pytest\n";
        let services = started_services(workflow);
        let services: Vec<_> = services.iter().map(|s| (&*s.name, s.port)).collect();
        assert_eq!(services, [("redis", 6390)]);
        let both: Vec<u16> = started_services(WORKFLOW).iter().map(|s| s.port).collect();
        assert_eq!(both, [6380, 5432]);
    }
}
