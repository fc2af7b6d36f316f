//! Builds the toolbox, the program that runs in sandboxes, and hands its path to `src/session/program.rs`,
//! which embeds it. It is linked statically, so that it needs nothing in a container but a kernel; that takes a
//! target and flags of its own, hence a build of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=tools/src");
    println!("cargo::rerun-if-changed=tools/Cargo.toml");
    println!("cargo::rerun-if-env-changed=TESTWRIGHT_TOOLBOX");
    let toolbox = match std::env::var_os("TESTWRIGHT_TOOLBOX") {
        Some(path) => PathBuf::from(path),
        None => build()?,
    };
    println!("cargo::rustc-env=TESTWRIGHT_TOOLBOX={}", toolbox.display());
    Ok(())
}

fn build() -> Result<PathBuf, Failure> {
    let target = std::env::var("TARGET")?;
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let folder = folder(Path::new(&std::env::var("OUT_DIR")?));
    let status = Command::new(std::env::var("CARGO")?)
        .args(["build", "--quiet", "--locked", "--profile", "toolbox"])
        .args(["--package", "testwright-tools", "--bin", "toolbox"])
        .args(["--target", &target])
        .arg("--manifest-path")
        .arg(manifest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        // What cargo sets for this build script must not reach the other build.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CLIPPY_ARGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status()?;
    if !status.success() {
        return Err("the toolbox could not be built; see above".into());
    }
    Ok(folder.join(target).join("toolbox").join("toolbox"))
}

/// One folder for all profiles of the outer build, in the target folder: `OUT_DIR` is `TARGET/PROFILE/build/PACKAGE/out`.
fn folder(out: &Path) -> PathBuf {
    out.ancestors().nth(4).unwrap_or(out).join("toolbox-build")
}
