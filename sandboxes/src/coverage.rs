//! coverage.py for the Python of an environment.
//!
//! The package is kept beside the environment, not installed into it. The installed packages stay as the recipe has
//! them, and a measured run differs from a plain one only by a path.
//!
//! uv downloads it on the host, once for each Python version. The caller decides what is measured, and how.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::environment::BuildSettings;
use crate::error::SandboxError;
use crate::local::find_python;
use crate::programs::command_outside_cwd;
use crate::recipe::parse_python;
use crate::sandbox::{Result, Sandbox};
use crate::uv;

/// Newest release for each minor version of Python 3; the last entry applies to all later ones. All releases write the
/// same data format.
const RELEASES: [(u32, &str); 4] = [(6, "6.2"), (7, "7.2.7"), (8, "7.6.1"), (9, "7.10.7")];

/// A coverage.py package, ready to be copied into sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Release, e.g. `7.6.1`.
    pub version: String,
    /// Tar archive of a folder that contains the package `coverage`, for PYTHONPATH.
    pub archive: PathBuf,
}

impl Coverage {
    /// Unpacks the package into a sandbox's store, where tools can read but not write it, and returns the folder
    /// inside.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox has ended, or the archive cannot be read or unpacked.
    pub async fn unpack_into(&self, sandbox: &dyn Sandbox) -> Result<PathBuf> {
        let folder = sandbox.info().paths.store.join("coverage");
        sandbox.unpack(&folder, &self.archive).await?;
        Ok(folder)
    }
}

/// Returns coverage.py for CPython `X.Y`, from the cache or downloaded now, for Linux with glibc 2.17 or later.
///
/// # Errors
///
/// Kind `Input` if no release supports this Python. Kind `Unavailable` if the download fails; the message contains the
/// output of uv.
pub async fn package(python_version: &str, settings: &BuildSettings) -> Result<Coverage> {
    let (python, settings) = (python_version.to_owned(), settings.clone());
    tokio::task::spawn_blocking(move || build(&python, &settings)).await?
}

fn release(python: &str) -> Result<&'static str> {
    let minor = parse_python(python).filter(|minor| *minor >= RELEASES[0].0);
    let entry = minor.and_then(|minor| RELEASES.iter().rev().find(|(from, _)| *from <= minor));
    entry.map(|(_, release)| *release).ok_or_else(|| {
        let text = format!("measure coverage on Python `{python}`: it is not supported");
        SandboxError::input(text).hint("use CPython 3.6 or later to measure coverage")
    })
}

fn build(python: &str, settings: &BuildSettings) -> Result<Coverage> {
    let version = release(python)?;
    let folder = std::path::absolute(settings.cache.join("coverage"))?;
    std::fs::create_dir_all(&folder)?;
    let name = format!("{version}-{python}-{}", std::env::consts::ARCH);
    let target = folder.join(&name);
    let coverage = Coverage {
        version: version.to_owned(),
        archive: target.join("coverage.tar"),
    };
    let lock = std::fs::File::create(folder.join(format!("{name}.lock")))?;
    lock.lock()?;
    if target.is_dir() && !settings.rebuild {
        return Ok(coverage);
    }
    let aside = tempfile::tempdir_in(&folder)?;
    let package = tempfile::tempdir_in(&folder)?;
    install(python, version, package.path(), settings)?;
    compile(python, package.path());
    pack(package.path(), &aside.path().join("coverage.tar"))?;
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    std::fs::rename(aside.keep(), &target)?;
    Ok(coverage)
}

fn install(python: &str, version: &str, target: &Path, settings: &BuildSettings) -> Result<()> {
    let uv = uv::find(settings.uv.as_deref(), &settings.cache, !settings.offline)?;
    let mut command = command_outside_cwd(uv);
    // Only the settings count, as in build sandboxes, not whatever variables happen to be set.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let proxy = name.to_lowercase().ends_with("_proxy");
        if proxy
            || ["UV_", "PIP_", "VIRTUAL_ENV"]
                .iter()
                .any(|start| name.starts_with(start))
        {
            command.env_remove(&name);
        }
    }
    command
        .envs(&settings.proxies)
        .env("UV_NO_CONFIG", "1")
        .env("UV_NO_PROGRESS", "1")
        .env(
            "UV_CACHE_DIR",
            std::path::absolute(settings.cache.join("coverage/packages"))?,
        )
        // Sandboxes must get a copy, so that they share no files with uv's cache.
        .env("UV_LINK_MODE", "copy");
    if let Some(url) = &settings.index_url {
        command.env("UV_DEFAULT_INDEX", url);
    }
    if !settings.extra_index_urls.is_empty() {
        command.env("UV_INDEX", settings.extra_index_urls.join(" "));
    }
    if let Some(bundle) = &settings.ca_bundle {
        command.env("SSL_CERT_FILE", std::path::absolute(bundle)?);
    }
    if settings.offline {
        command
            .args(["--offline"])
            .env("UV_PYTHON_DOWNLOADS", "never");
    }
    command
        .args([
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
        ])
        .args(["--python-version", python, "--python-platform"])
        .arg(format!("{}-manylinux2014", std::env::consts::ARCH))
        .arg("--target")
        .arg(target)
        .arg(format!("coverage=={version}"))
        .current_dir(settings.cache.join("coverage"))
        .stdin(Stdio::null());
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let urls = settings.index_url.iter().chain(&settings.extra_index_urls);
    for url in urls.chain(settings.proxies.values()) {
        if let Some(secret) = crate::environment::secret(url) {
            text = text.replace(&secret, "***");
        }
    }
    Err(SandboxError::unavailable(format!(
        "download coverage {version} for Python {python}: {text}"
    )))
}

/// Compiles the package to bytecode if this machine has that Python, because a sandbox cannot keep what it compiles: each
/// measured run would compile the whole package.
fn compile(python: &str, package: &Path) {
    let Ok(interpreter) = find_python(python) else {
        return;
    };
    // Without bytecode, such as for Python 3.6, which lacks the option, the package works too.
    let _ = command_outside_cwd(interpreter.executable)
        .args(["-I", "-S", "-m", "compileall", "-q"])
        .args(["--invalidation-mode", "unchecked-hash"])
        .arg(package)
        .stdin(Stdio::null())
        .output();
}

/// Packs a folder. Equal files give equal bytes, and every user can read the entries.
fn pack(folder: &Path, archive: &Path) -> Result<()> {
    let file = std::fs::File::create(archive)?;
    let mut builder = tar::Builder::new(std::io::BufWriter::new(file));
    builder.mode(tar::HeaderMode::Deterministic);
    builder.follow_symlinks(false);
    add(&mut builder, folder, Path::new(""))?;
    builder.into_inner()?.flush()?;
    Ok(())
}

fn add(builder: &mut tar::Builder<impl std::io::Write>, root: &Path, below: &Path) -> Result<()> {
    let mut names: Vec<_> = std::fs::read_dir(root.join(below))?
        .map(|entry| entry.map(|e| e.file_name()))
        .collect::<std::io::Result<_>>()?;
    names.sort();
    for name in names {
        let relative = below.join(name);
        let path = root.join(&relative);
        builder.append_path_with_name(&path, &relative)?;
        if path.is_dir() {
            add(builder, root, &relative)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::recipe::KNOWN_PYTHONS;

    #[test]
    fn every_python_has_a_release() {
        for (python, version) in [
            ("3.6", Some("6.2")),
            ("3.7", Some("7.2.7")),
            ("3.8", Some("7.6.1")),
            ("3.9", Some("7.10.7")),
            ("3.13", Some("7.10.7")),
            ("3.5", None),
            ("2.7", None),
            ("../3.9", None),
        ] {
            assert_eq!(release(python).ok(), version, "{python}");
        }
    }

    #[test]
    fn package_is_compiled() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.py"), "1").unwrap();
        let newest = KNOWN_PYTHONS.iter().rev();
        let python = newest.copied().find(|python| find_python(python).is_ok());
        compile(python.unwrap(), folder.path());
        let compiled = std::fs::read_dir(folder.path().join("__pycache__")).unwrap();
        assert_eq!(compiled.count(), 1);
        compile("3.99", folder.path());
    }

    #[test]
    fn equal_files_give_equal_archives() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = |name: &str| {
            let package = folder.path().join(name);
            std::fs::create_dir_all(package.join("coverage")).unwrap();
            let mut names = ["a.py", "b.py", "c.py", "d.py"];
            if name == "two" {
                names.reverse();
            }
            for name in names {
                std::fs::write(package.join("coverage").join(name), name).unwrap();
            }
            let archive = folder.path().join(format!("{name}.tar"));
            pack(&package, &archive).unwrap();
            std::fs::read(archive).unwrap()
        };
        let first = bytes("one");
        assert!(first.len() > 1024);
        assert_eq!(first, bytes("two"));
    }
}
