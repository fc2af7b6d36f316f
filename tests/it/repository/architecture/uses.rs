//! Checks the uses of libraries, upper layers, the terminal and connections.

use super::{Source, sources};

/// Libraries that only these files may name, so that they are easy to replace.
const CONFINED: [(&str, &[&str]); 9] = [
    (
        "bollard",
        &["sandboxes/src/docker/", "sandboxes/src/docker.rs"],
    ),
    ("async_openai", &["models/src/"]),
    (
        "reqwest",
        &[
            "server/src/artifacts/s3_client.rs",
            "agent/src/issues/",
            "models/src/",
            "src/cli/doctor/",
            "server/src/client.rs",
            "server/src/github/client.rs",
            "server/src/telemetry/collector.rs",
            "sandboxes/src/egress/",
            "sandboxes/src/egress.rs",
            "sandboxes/src/http_client.rs",
        ],
    ),
    ("tree_sitter", &["tools/src/"]),
    ("axum", &["server/src/"]),
    ("sqlx", &["server/src/store/"]),
    ("object_store", &["server/src/artifacts/"]),
    ("prometheus_client", &["server/src/telemetry/"]),
    ("opentelemetry", &["server/src/telemetry/"]),
];

fn out_of_place(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (library, places) in CONFINED {
        for file in files.iter().filter(|f| !f.under(places) && !f.is_test()) {
            let names = |line: &str| {
                line.contains(&format!("{library}::")) || line.contains(&format!("use {library}"))
            };
            if file.text.lines().any(names) {
                wrong.push(format!("{} names {library}", file.path));
            }
        }
    }
    wrong
}

#[test]
fn libraries_are_used_only_where_allowed() {
    assert_eq!(out_of_place(&sources()), Vec::<String>::new());
    let broken = [
        Source::new("agent/src/session/mod.rs", "use bollard::Docker;\n"),
        Source::new("sandboxes/src/docker/mod.rs", "use bollard::Docker;\n"),
        Source::new(
            "agent/src/agent/mod.rs",
            "    let client = async_openai::Client::new();\n",
        ),
    ];
    assert_eq!(
        out_of_place(&broken),
        [
            "agent/src/session/mod.rs names bollard",
            "agent/src/agent/mod.rs names async_openai"
        ]
    );
}

/// Modules that each folder of `agent/` must not use. Between crates, the manifests enforce this.
const LAYERS: [(&str, &[&str]); 4] = [
    (
        "agent/src/issues/",
        &[
            "agent",
            "approaches",
            "gate",
            "rule_based",
            "session",
            "trajectory",
        ],
    ),
    (
        "agent/src/rule_based/",
        &["agent", "approaches", "gate", "session", "trajectory"],
    ),
    ("agent/src/agent/", &["approaches", "job", "rule_based"]),
    (
        "agent/src/backends/",
        &[
            "agent",
            "approaches",
            "gate",
            "job",
            "session",
            "setup",
            "trajectory",
        ],
    ),
];

fn upward_uses(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (folder, others) in LAYERS {
        for file in files.iter().filter(|f| f.path.starts_with(folder)) {
            for other in others {
                if file.text.contains(&format!("crate::{other}::"))
                    || file.text.contains(&format!("crate::{other};"))
                {
                    wrong.push(format!("{} uses {other}", file.path));
                }
            }
        }
    }
    wrong
}

#[test]
fn lower_layers_do_not_use_upper_ones() {
    assert_eq!(upward_uses(&sources()), Vec::<String>::new());
    let broken = [Source::new(
        "agent/src/issues/address.rs",
        "use crate::agent::Run;\n",
    )];
    assert_eq!(
        upward_uses(&broken),
        ["agent/src/issues/address.rs uses agent"]
    );
}

/// Expressions that print. Untrusted text may reach a terminal only through `src/cli/output.rs`.
const PRINTING: [&str; 9] = [
    "print!(",
    "println!(",
    "dbg!(",
    "anstream::",
    "indicatif::",
    "io::stdout(",
    "io::stderr(",
    "/dev/tty",
    "Stdio::inherit(",
];
/// Exception: the MCP server, whose protocol uses stdout.
const PROTOCOL: &str = ".serve(LineTransport::new(tokio::io::stdin(), tokio::io::stdout()))";

fn prints(files: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    let crates = [
        "src/",
        "config/",
        "models/",
        "agent/",
        "comparisons/",
        "server/",
    ];
    let own = |f: &&Source| f.under(&crates) && !f.is_test();
    for file in files.iter().filter(own) {
        if file.under(&["src/cli/output.rs", "src/cli/output/"]) {
            continue;
        }
        for line in file.text.lines() {
            let code = line.trim_start();
            if code.starts_with("//") || code == PROTOCOL {
                continue;
            }
            for word in PRINTING.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{} has {word}", file.path));
            }
        }
    }
    wrong
}

#[test]
fn only_output_module_prints() {
    assert_eq!(prints(&sources()), Vec::<String>::new());
    let broken = [
        Source::new("src/cli/run.rs", "    eprintln!(\"{name}\");\n"),
        Source::new("src/cli/mcp.rs", PROTOCOL),
        Source::new("src/cli/output.rs", "anstream::print!(\"{text}\");\n"),
        Source::new(
            "agent/src/trajectory/folder.rs",
            "// eprintln!()\nwriteln!(std::io::stderr(), \"x\")\n",
        ),
    ];
    assert_eq!(
        prints(&broken),
        [
            "src/cli/run.rs has println!(",
            "agent/src/trajectory/folder.rs has io::stderr("
        ]
    );
}

/// Lists uses of the network in the toolbox. It runs beside untrusted code, so it must not open connections or resolve
/// names.
fn opens_connections(files: &[Source]) -> Vec<String> {
    let words = [
        "std::net",
        "tokio::net",
        "TcpStream",
        "UdpSocket",
        "to_socket_addrs",
    ];
    files
        .iter()
        .filter(|f| f.path.starts_with("tools/src/"))
        .flat_map(|f| {
            words
                .iter()
                .filter(|w| f.text.contains(**w))
                .map(|w| format!("{} has {w}", f.path))
        })
        .collect()
}

#[test]
fn tools_open_no_connections() {
    assert_eq!(opens_connections(&sources()), Vec::<String>::new());
    let broken = [Source::new(
        "tools/src/server.rs",
        "use std::net::IpAddr;\n",
    )];
    assert_eq!(
        opens_connections(&broken),
        ["tools/src/server.rs has std::net"]
    );
}
