//! Additions to all operations of the API description: authentication, its error responses, and unique names.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Content, ContentBuilder, Header, OpenApi, PathItem, Ref, RefOr, Response, ResponseBuilder,
    SecurityRequirement,
};

use crate::authentication;

const BEARER: &str = "bearer";
/// RFC 9457.
const PROBLEM: &str = "application/problem+json";
/// Responses to requests that reach no handler: status, name and reason.
const REFUSALS: [(&str, &str, &str); 3] = [
    ("401", "NoToken", "the token is missing or invalid"),
    (
        "403",
        "Forbidden",
        "the token lacks a scope, or the request comes from a page of another origin or through an unknown proxy",
    ),
    (
        "421",
        "OtherHost",
        "the Host header does not name this server",
    ),
];

pub(super) fn complete(description: &mut OpenApi) {
    for (path, item) in &mut description.paths.paths {
        for operation in operations(item) {
            name(path, operation);
            add_problems(operation);
            match authentication::is_probe(path) {
                true => operation.security = Some(Vec::new()),
                false => add_refusals(operation),
            }
        }
    }
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "created by `testwright tokens create`; not needed if the server listens on loopback only and does not require tokens",
        ))
        .build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
    for (status, name, why) in REFUSALS {
        let refusals = &mut components.responses;
        refusals.insert(name.to_owned(), refusal(status, why).into());
    }
    description.security = Some(vec![
        SecurityRequirement::new(BEARER, [""; 0]),
        SecurityRequirement::default(),
    ]);
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get, post, delete, ..
    } = item;
    [get, post, delete].into_iter().flatten()
}

/// Prefixes the name of a handler: handlers of several modules have the same names.
fn name(path: &str, operation: &mut Operation) {
    let collection = path.split('/').nth(2).unwrap_or_default();
    if let Some(handler) = &mut operation.operation_id
        && handler != collection
    {
        *handler = format!("{collection}_{handler}");
    }
}

/// Adds the problem schema to all error responses.
fn add_problems(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.starts_with(['4', '5'])
            && response.content.is_empty()
        {
            response
                .content
                .insert(PROBLEM.to_owned(), problem().into());
        }
    }
}

fn problem() -> Content {
    let schema = Ref::from_schema_name("Problem");
    ContentBuilder::new().schema(Some(schema)).build()
}

fn add_refusals(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    for (status, name, _) in REFUSALS {
        let entry = responses.entry(status.to_owned());
        entry.or_insert_with(|| Ref::from_response_name(name).into());
    }
}

fn refusal(status: &str, why: &str) -> Response {
    let response = ResponseBuilder::new()
        .description(why)
        .content(PROBLEM, problem());
    match status {
        "401" => response.header("WWW-Authenticate", Header::default()),
        _ => response,
    }
    .build()
}
