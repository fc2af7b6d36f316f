//! What a byte's way into a running container and back costs, as a part of what `docker exec true` costs in the same
//! run: the reason why the toolbox is started once and spoken to over a stream. Wanted: at most 1/50.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use testwright_sandboxes::docker::{Docker, DockerSettings};
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, Limits, SandboxError, Spec, Start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const EXECS: usize = 21;
const TRIPS: usize = 2001;

#[tokio::main]
async fn main() -> Result<(), SandboxError> {
    let settings = DockerSettings {
        pull: false,
        ..DockerSettings::default()
    };
    let docker = match Docker::connect(settings).await {
        Ok(docker) => docker,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    let spec = Spec {
        start: Start::Python("3.11".to_owned()),
        network: false,
        root: false,
        limits: Limits::default(),
        env: BTreeMap::new(),
        mounts: Vec::new(),
        purpose: "bench".to_owned(),
    };
    let begin = Instant::now();
    let sandbox = docker.start(&spec).await?;
    println!("start of a container       {:>10.1?}", begin.elapsed());

    let mut execs = Vec::new();
    for _ in 0..EXECS {
        let begin = Instant::now();
        output(
            sandbox.as_ref(),
            &Command::new(["true"]),
            Duration::from_secs(60),
        )
        .await?;
        execs.push(begin.elapsed());
    }
    let exec = median(&mut execs);
    println!("exec of `true`, p50        {exec:>10.1?}");

    let mut process = sandbox.spawn(&Command::new(["cat"])).await?;
    let mut trips = Vec::new();
    for _ in 0..TRIPS {
        let begin = Instant::now();
        process.stdin.write_all(b"x").await?;
        process.stdin.flush().await?;
        process.stdout.read_exact(&mut [0]).await?;
        trips.push(begin.elapsed());
    }
    let trip = median(&mut trips);
    println!("round trip of a byte, p50  {trip:>10.1?}");
    let ratio = exec.as_secs_f64() / trip.as_secs_f64();
    println!("ratio                      1/{ratio:.0} (wanted: at most 1/50)");

    let begin = Instant::now();
    let fork = sandbox.fork().await?;
    println!("fork                       {:>10.1?}", begin.elapsed());
    fork.stop().await?;
    let begin = Instant::now();
    sandbox.health().await?;
    println!("health                     {:>10.1?}", begin.elapsed());
    let begin = Instant::now();
    sandbox.stop().await?;
    println!("stop                       {:>10.1?}", begin.elapsed());
    if ratio < 50.0 {
        std::process::exit(1);
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
