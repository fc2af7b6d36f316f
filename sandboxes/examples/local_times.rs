//! Measures how long a local sandbox takes to start, spawn, fork and stop: `local_times LAUNCHER WORKSPACE.tar X.Y`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use testwright_sandboxes::local::{Isolation, Local, LocalSettings};
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, SandboxSource, Spec};

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [launcher, archive, version] = arguments.as_slice() else {
        panic!("usage: local_times LAUNCHER WORKSPACE.tar X.Y");
    };
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir_in("/var/tmp").unwrap();
        let clock = Instant::now();
        let local = Local::new(LocalSettings {
            cache: cache.path().to_owned(),
            launcher: vec![launcher.into()],
            force: Some(force),
            ..LocalSettings::default()
        });
        let local = local.unwrap();
        println!("{force:?}: probe {:?}", clock.elapsed());
        let mut spec = Spec::new(SandboxSource::Python(version.clone()), "times");
        spec.root = true;
        let clock = Instant::now();
        let building = local.start(&spec).await.unwrap();
        println!(
            "bare start {:?}; {}",
            clock.elapsed(),
            building.info().isolation
        );
        let clock = Instant::now();
        let workspace = building.info().paths.workspace.clone();
        building.unpack(&workspace, archive.as_ref()).await.unwrap();
        println!("unpack {:?}", clock.elapsed());
        let environment = building.info().paths.environment.display().to_string();
        let venv = Command::new(["python3", "-m", "venv", &environment]);
        output(building.as_ref(), &venv, Duration::from_secs(100))
            .await
            .unwrap();
        let clock = Instant::now();
        building.save("times").await.unwrap();
        println!("save {:?}", clock.elapsed());
        building.stop().await.unwrap();
        spec.start = SandboxSource::Saved("times".to_owned());
        spec.root = false;
        let (mut starts, mut spawns, mut pings, mut forks, mut stops) =
            (vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..10 {
            let clock = Instant::now();
            let sandbox = local.start(&spec).await.unwrap();
            starts.push(clock.elapsed());
            for _ in 0..10 {
                let clock = Instant::now();
                let run = Command::new(["true"]);
                output(sandbox.as_ref(), &run, Duration::from_secs(10))
                    .await
                    .unwrap();
                spawns.push(clock.elapsed());
                let clock = Instant::now();
                sandbox.health().await.unwrap();
                pings.push(clock.elapsed());
            }
            let clock = Instant::now();
            let copy = sandbox.fork().await.unwrap();
            forks.push(clock.elapsed());
            let clock = Instant::now();
            copy.stop().await.unwrap();
            stops.push(clock.elapsed());
            sandbox.stop().await.unwrap();
        }
        for (what, mut times) in [
            ("start from saved", starts),
            ("spawn of true", spawns),
            ("health", pings),
            ("fork", forks),
            ("stop", stops),
        ] {
            times.sort();
            println!(
                "{what}: median {:?}, best {:?}, worst {:?}",
                times[times.len() / 2],
                times[0],
                times[times.len() - 1]
            );
        }
    }
}
