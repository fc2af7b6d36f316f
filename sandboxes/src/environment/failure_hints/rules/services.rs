//! Services that tests need, and that do not run.

use super::super::decisive::Failure;
use super::captured;
use crate::pattern::Pattern;

/// A service that tests can need.
struct KnownService {
    name: &'static str,
    port: &'static str,
    /// Parts of errors that only its clients raise.
    clients: &'static [&'static str],
    server: Source,
}

/// Source of a service's program.
enum Source {
    /// A package of PyPI.
    Wheel,
    /// A Debian package.
    Debian(&'static str),
    /// The service's own archive.
    Elsewhere,
}

const fn known(
    name: &'static str,
    port: &'static str,
    clients: &'static [&'static str],
    server: Source,
) -> KnownService {
    KnownService {
        name,
        port,
        clients,
        server,
    }
}

static SERVICES: [KnownService; 12] = [
    known("Redis", "6379", &["redis.exceptions."], Source::Wheel),
    known("PostgreSQL", "5432", &["psycopg", "asyncpg"], Source::Wheel),
    known(
        "MySQL",
        "3306",
        &[
            "pymysql.",
            "MySQLdb.",
            "mysql.connector.",
            "MySQL server",
            "(2002, ",
            "(2003, ",
        ],
        Source::Debian("mariadb-server"),
    ),
    known(
        "MongoDB",
        "27017",
        &["pymongo.errors.", "ServerSelectionTimeoutError"],
        Source::Elsewhere,
    ),
    known(
        "memcached",
        "11211",
        &["pymemcache."],
        Source::Debian("memcached"),
    ),
    known(
        "RabbitMQ",
        "5672",
        &[
            "AMQPConnectionError",
            "amqp.exceptions.",
            "kombu.exceptions.",
        ],
        Source::Debian("rabbitmq-server"),
    ),
    known(
        "Elasticsearch",
        "9200",
        &["elasticsearch.", "elastic_transport.", "opensearchpy."],
        Source::Elsewhere,
    ),
    known(
        "Kafka",
        "9092",
        &["NoBrokersAvailable", "KafkaConnectionError"],
        Source::Elsewhere,
    ),
    known("ClickHouse", "8123", &["clickhouse"], Source::Elsewhere),
    known("LocalStack", "4566", &[], Source::Wheel),
    known("MinIO", "9000", &[], Source::Elsewhere),
    known(
        "ZooKeeper",
        "2181",
        &["KazooTimeoutError"],
        Source::Debian("zookeeperd"),
    ),
];

/// Signs that nothing accepts a connection, such as a socket of PostgreSQL that does not exist.
static REFUSED: Pattern = Pattern::new(concat!(
    r"Connection refused|ECONNREFUSED|Err(?:no|or) 111|Can't connect to (?:MySQL|local |server on)|\.s\.PGSQL\.",
    r"|AMQPConnectionError|ServerSelectionTimeoutError|NoBrokersAvailable|KazooTimeoutError",
));

/// Signs that a name of a host is unknown, such as that of another container.
static UNKNOWN_HOST: Pattern = Pattern::new(
    "name resolution|Name or service not known|could not translate host name|failed to resolve host",
);

/// Signs that tests cannot start containers.
static NO_CONTAINERS: Pattern = Pattern::new(concat!(
    "Error while fetching server API version|Cannot connect to the Docker daemon",
    "|No such file or directory: 'docker'|docker: not found",
));

/// Ports of web sites, which are not services of a sandbox.
const WEB_PORTS: [&str; 2] = ["80", "443"];

pub(super) fn service(failure: &Failure<'_>) -> Option<String> {
    if NO_CONTAINERS.is_match(&failure.error) {
        let hint = "the tests start containers, which a sandbox cannot do: add the servers that they need under \
                    [[environment.services]] of testwright.toml, with name, command and port";
        return Some(hint.to_owned());
    }
    let is_raised = |sign: &&str| failure.line.contains(*sign);
    let client = SERVICES
        .iter()
        .find(|service| service.clients.iter().any(is_raised));
    let is_unknown_host = client.is_some() && UNKNOWN_HOST.is_match(&failure.error);
    if !is_unknown_host && !REFUSED.is_match(&failure.error) {
        return None;
    }
    let port = captured(
        r"(?:port[:=]?\s*|localhost:|127\.0\.0\.1[:',\s]+|\[?::1\]?:)(\d{2,5})\b",
        &failure.error,
    );
    if port
        .as_deref()
        .is_some_and(|port| WEB_PORTS.contains(&port))
    {
        return None;
    }
    let by_port = SERVICES.iter().find(|service| match &port {
        Some(port) => service.port == port,
        None => client.is_none() && failure.error.contains(service.port),
    });
    let service = by_port.or(client);
    let known_port = service.map(|service| service.port.to_owned());
    let port = port.or(known_port)?;
    let name = service.map_or("the service at that port", |service| service.name);
    let lack = match is_unknown_host {
        true => format!("the tests need {name} at a host that does not exist here"),
        false => format!("the tests need {name}, and nothing listens at port {port}"),
    };
    let env = match is_unknown_host {
        true => ", and under env the variable with its address, 127.0.0.1",
        false => "",
    };
    Some(match service.map(|service| &service.server) {
        Some(Source::Debian(package)) => format!(
            "{lack}: install the Debian package {package} (on this machine, or under system-packages with --sandbox \
             docker), and add it under [[environment.services]] of testwright.toml, with name, command and port{env}"
        ),
        Some(Source::Elsewhere) => format!(
            "{lack}: install its server (on this machine, or in an image with --image), and add it under \
             [[environment.services]] of testwright.toml, with name, command and port{env}"
        ),
        _ => format!(
            "{lack}: add it under [[environment.services]] of testwright.toml, with name, command, requirements and \
             port{env}"
        ),
    })
}
