//! Measures the round trip of a byte into a running container, relative to `docker exec true` in the same run. The
//! difference is the reason why the toolbox is started once and used over a stream. The target is at most 1/50.

use std::path::Path;
use std::time::{Duration, Instant};

use testwright_sandboxes::docker::{Docker, DockerSettings, Pull};
use testwright_sandboxes::sandbox::output;
use testwright_sandboxes::{Backend, Command, SandboxError, SandboxSource, Spec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const EXECS: usize = 21;
const TRIPS: usize = 2001;

#[tokio::main]
async fn main() -> Result<(), SandboxError> {
    let settings = DockerSettings {
        pull: Pull::Never,
        ..DockerSettings::default()
    };
    let docker = match Docker::connect(settings).await {
        Ok(docker) => docker,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    let spec = Spec::new(SandboxSource::Python("3.11".to_owned()), "bench");
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
    println!("ratio                      1/{ratio:.0} (target: at most 1/50)");

    let begin = Instant::now();
    sandbox.health().await?;
    println!("health                     {:>10.1?}", begin.elapsed());
    let begin = Instant::now();
    sandbox.stop().await?;
    println!("stop                       {:>10.1?}", begin.elapsed());

    copies(&docker, spec).await?;
    if ratio < 50.0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Measures save and fork with a workspace as large as a checkout of sympy.
async fn copies(docker: &Docker, spec: Spec) -> Result<(), SandboxError> {
    let archive = tempfile::NamedTempFile::new()?;
    let mut builder = tar::Builder::new(archive.reopen()?);
    for file in 0..2300 {
        let mut header = tar::Header::new_gnu();
        header.set_size(15_000);
        header.set_mode(0o644);
        let path = format!("package/part{}/file{file}.py", file % 100);
        builder.append_data(&mut header, path, &[b'#'; 15_000][..])?;
    }
    builder.into_inner()?;
    let name = format!("bench-{}", std::process::id());
    let builder = docker
        .start(&Spec {
            root: true,
            ..spec.clone()
        })
        .await?;
    let begin = Instant::now();
    builder
        .unpack(Path::new("/testbed"), archive.path())
        .await?;
    println!("unpack 2300 files          {:>10.1?}", begin.elapsed());
    let begin = Instant::now();
    builder.save(&name).await?;
    println!("save them                  {:>10.1?}", begin.elapsed());
    builder.stop().await?;
    let start = SandboxSource::Saved(name.clone());
    let sandbox = docker.start(&Spec { start, ..spec }).await?;
    let change =
        Command::shell("rm -r package/part1; echo x > package/part2/file2.py; echo y > new");
    output(sandbox.as_ref(), &change, Duration::from_secs(60)).await?;
    let begin = Instant::now();
    let fork = sandbox.fork().await?;
    println!("fork, little changed       {:>10.1?}", begin.elapsed());
    fork.stop().await?;
    sandbox.stop().await?;
    docker.remove_saved(&name).await
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
