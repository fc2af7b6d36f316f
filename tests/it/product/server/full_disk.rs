//! The server on a full disk or an unwritable Postgres. It reports errors at once, and resumes once there is room.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use testwright_config::error::Kind;
use testwright_sandboxes::Shortage;
use testwright_server::store::Store;

use super::{ServerProcess, artifacts, databases, issue, stored_run, wait_until};
use crate::support::program::TestDir;

/// Much shorter than SQLite's wait for a lock, and much longer than a statement.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// A file system of a fixed size.
pub(super) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a file system. Returns `None`, with a message, if this user cannot mount one.
    pub(super) fn mount(megabytes: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let size = format!("size={megabytes}m,mode=755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk(folder)),
            _ => {
                eprintln!("skipped: mounting a small file system requires root");
                None
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Fills the remaining space.
    pub(super) fn fill(&self) {
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.filler())
            .unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    pub(super) fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .output();
    }
}

/// Writes with and without transactions, concurrently. Returns the number of failures.
async fn write_all(store: &Store, round: usize) -> usize {
    let writes = (0..24).map(|n| async move {
        let run = testwright_server::store::NewRun {
            request: "x".repeat(20_000),
            ..stored_run("o", "")
        };
        let delivery = format!("{round}-{n}");
        let text = "x".repeat(5_000) + &delivery;
        match n % 3 {
            0 => store.check_write().await,
            1 => store.add_run(&run).await.map(drop),
            _ => store
                .add_github_delivery(&delivery, &text, &[])
                .await
                .map(drop),
        }
    });
    let written = tokio::time::timeout(WRITE_TIMEOUT, futures::future::join_all(writes)).await;
    let written = written.expect("a write waits for a lock");
    let failed: Vec<_> = written.iter().filter_map(|w| w.as_ref().err()).collect();
    eprintln!(
        "round {round}: {} failed, {:?}",
        failed.len(),
        failed.first()
    );
    failed.len()
}

/// Writes until a write fails. Returns the kind of the failure.
async fn first_failure(store: &Store) -> Kind {
    let run = testwright_server::store::NewRun {
        request: "x".repeat(100_000),
        ..stored_run("o", "")
    };
    loop {
        let added = tokio::time::timeout(WRITE_TIMEOUT, store.add_run(&run)).await;
        if let Err(error) = added.expect("a write waits") {
            return error.kind;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_recovers_from_full_disk() {
    let Some(disk) = SmallDisk::mount(12) else {
        return;
    };
    let store = Store::open(&Store::url_in(disk.path())).await.unwrap();
    assert_eq!(write_all(&store, 0).await, 0);
    disk.fill();
    assert_eq!(first_failure(&store).await, Kind::Exhausted(Shortage::Disk));
    for round in 1..5 {
        write_all(&store, round).await;
    }
    disk.free();
    assert_eq!(write_all(&store, 10).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_recovers_from_outages() {
    let Some(database) = databases::postgres() else {
        return;
    };
    let store = Store::open(database.url.as_deref().unwrap()).await.unwrap();
    let execute = |sql: &str| database.execute(Path::new(""), sql);
    assert_eq!(write_all(&store, 0).await, 0);

    // A backend is killed in a transaction that waits for a lock.
    let mut holder = database.start("LOCK TABLE github_deliveries; SELECT pg_sleep(60)");
    let locks = "SELECT COUNT(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                 AND relation = 'github_deliveries'::regclass";
    wait_until("the table is locked", || execute(locks) == "1");
    let killed = store.clone();
    let killed =
        tokio::spawn(async move { killed.add_github_delivery("killed", "killed", &[]).await });
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT%'";
    wait_until("the write waits", || execute(waiting) == "1");
    execute(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
    );
    assert_eq!(killed.await.unwrap().unwrap_err().kind, Kind::Unavailable);
    let _ = holder.wait();
    assert_eq!(write_all(&store, 1).await, 0);

    execute("ALTER SYSTEM SET default_transaction_read_only = on");
    execute("SELECT pg_reload_conf()");
    let is_read_only = async || store.check_write().await.is_err();
    while !is_read_only().await {}
    assert_eq!(first_failure(&store).await, Kind::Unavailable);
    execute("ALTER SYSTEM RESET default_transaction_read_only");
    execute("SELECT pg_reload_conf()");
    while is_read_only().await {}
    // Each backend reads the settings again when it is next idle.
    let mut round = 2;
    while write_all(&store, round).await > 0 {
        round += 1;
        assert!(round < 6);
    }

    database.restart();
    // Connections that the restart closed are detected on their next use.
    round = 10;
    while write_all(&store, round).await > 0 {
        round += 1;
        assert!(round < 13);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_recovers_from_full_disk() {
    let Some(disk) = SmallDisk::mount(100) else {
        return;
    };
    let Some(database) = databases::postgres_in(disk.path()) else {
        return;
    };
    let store = Store::open(database.url.as_deref().unwrap()).await.unwrap();
    disk.fill();
    // Postgres may stop, depending on which file it cannot write.
    let full = first_failure(&store).await;
    assert!(
        [Kind::Exhausted(Shortage::Disk), Kind::Unavailable].contains(&full),
        "{full:?}"
    );
    disk.free();
    database.start_again();
    let mut round = 0;
    while write_all(&store, round).await > 0 {
        round += 1;
        assert!(round < 10);
    }
}

#[test]
fn full_disk_returns_507_and_unready() {
    let Some(disk) = SmallDisk::mount(6) else {
        return;
    };
    let place = TestDir::new();
    let data = disk.path().to_str().unwrap();
    let words = ["--workers", "0"];
    let daemon = ServerProcess::start_with(&place, &databases::embedded(), None, data, &words);
    let ready = || daemon.client.get("/v1/ready").status;
    assert_eq!(ready(), 200);
    disk.fill();
    let begun = Instant::now();
    let refused = loop {
        let reply = daemon.client.post("/v1/runs", &issue());
        if reply.status != 201 {
            break reply;
        }
    };
    assert_eq!(refused.status, 507, "{refused:?}");
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("the disk is full")
    );
    assert!(refused.json()["hint"].as_str().unwrap().contains("space"));
    assert!(begun.elapsed() < WRITE_TIMEOUT);
    wait_until("it is not ready", || ready() == 503);
    let red = daemon.client.get("/v1/ready").json();
    assert!(
        red["detail"].as_str().unwrap().contains("the disk is full"),
        "{red}"
    );
    assert_eq!(daemon.client.get("/v1/health").status, 200);
    disk.free();
    wait_until("it is ready", || ready() == 200);
    assert_eq!(daemon.client.post("/v1/runs", &issue()).status, 201);
}

#[test]
fn run_is_requeued_on_full_disk() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let place = TestDir::new();
    let mut database = databases::embedded();
    database.url = Some(format!("sqlite:{}", place.path("runs.db").display()));
    let data = disk.path().to_str().unwrap();
    let daemon = ServerProcess::start_with(&place, &database, None, data, &["--workers", "1"]);
    disk.fill();
    let run = daemon.run(&issue());
    let run_record = || daemon.client.get(&format!("/v1/runs/{run}")).json();
    wait_until("it is returned", || run_record()["requeues"] == 1);
    let returned = run_record();
    assert_eq!(returned["status"], "queued");
    assert_eq!(returned["attempts"], 0);
    let reason = returned["requeue_reason"].as_str().unwrap();
    assert!(reason.starts_with("the disk is full"), "{reason}");
    assert!(returned["not_before"].is_string());
    let red = daemon.client.get("/v1/ready");
    assert_eq!(red.status, 503, "{red:?}");
    let metrics = daemon.client.get("/metrics").body;
    let counted = r#"testwright_returned_work_total{kind="run",shortage="disk"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert!(
        daemon
            .client
            .get(&format!("/runs/{run}"))
            .body
            .contains("Returned to the queue")
    );
    disk.free();
    daemon.wait_for(&run, "accepted");
    assert_eq!(run_record()["attempts"], 1);
    wait_until("it is ready", || {
        daemon.client.get("/v1/ready").status == 200
    });
}

#[test]
fn run_waits_for_artifact_space() {
    let Some(disk) = SmallDisk::mount(128) else {
        return;
    };
    let place = TestDir::new();
    let store = format!("file://{}", disk.path().join("artifacts").display());
    let words = ["--workers", "1", "--artifacts", &store];
    let daemon = ServerProcess::start_with(&place, &databases::embedded(), None, "data", &words);
    // The environment is stored before the disk is full.
    let first = daemon.run(&issue());
    daemon.wait_for(&first, "accepted");
    disk.fill();
    let run = daemon.run(&issue());
    let run_record = || daemon.client.get(&format!("/v1/runs/{run}")).json();
    wait_until("it is returned", || run_record()["requeues"] == 1);
    assert_eq!(run_record()["status"], "queued");
    let reason = run_record()["requeue_reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("the disk is full"), "{reason}");
    assert!(reason.contains("artifact store"), "{reason}");
    disk.free();
    daemon.wait_for(&run, "accepted");
    artifacts::assert_whole(&daemon.client, &run);
}
