//! Computes the digest that distinguishes one toolbox from another, for `src/program.rs`. It covers the toolbox's
//! sources and the versions of what they are built with.

use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    let mut hash = Sha256::new();
    for place in ["src", "Cargo.toml", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={place}");
        for file in files(Path::new(place))? {
            let content = fs::read(&file)?;
            hash.update(format!("{} {}\n", file.display(), content.len()));
            hash.update(content);
        }
    }
    let digest = hash.finalize();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=TOOLBOX_DIGEST={digits}");
    Ok(())
}

/// Lists all files below a path, sorted by name.
fn files(place: &Path) -> io::Result<Vec<PathBuf>> {
    if !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(place)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    let below: Vec<Vec<PathBuf>> = entries
        .iter()
        .map(|at| files(at))
        .collect::<io::Result<_>>()?;
    Ok(below.concat())
}
