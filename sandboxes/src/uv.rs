//! Finds `uv`, which installs packages. It is copied into sandboxes, so it must be the program itself, not a wrapper
//! script.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::SandboxError;
use crate::local::python_candidates;
use crate::programs::{command_outside_cwd, named};
use crate::recipe::KNOWN_PYTHONS;
use crate::sandbox::Result;

/// Oldest version that has all options used here.
const MIN_VERSION: [u32; 2] = [0, 9];

/// Folder in the cache with the `uv` that pip installed.
const INSTALLED: &str = "uv-program";
const NO_PYTHON_HINT: &str = "install Python 3.8 or later (apt install python3-venv) or uv";

/// Finds `uv`. Blocks. The candidates, in this order:
///
/// - `program` (a setting)
/// - the variable `TESTWRIGHT_UV`
/// - the PATH
/// - the `uv` package of a Python on the PATH; without any there, of an installed Python
/// - one installed into the cache by the first of these Pythons that has pip (if `may_install`)
///
/// # Errors
///
/// Kind `Input` if `program` or the variable names an unusable program. Kind `Unavailable`, with all reasons and a hint,
/// if no candidate can be used.
pub fn find(program: Option<&Path>, cache: &Path, may_install: bool) -> Result<PathBuf> {
    let variable = std::env::var_os("TESTWRIGHT_UV").map(PathBuf::from);
    if let Some(path) = program.map(Path::to_owned).or(variable) {
        return check(&path).map_err(|reason| {
            SandboxError::input(format!("{} cannot be used as uv: {reason}", path.display()))
        });
    }
    let mut reasons = Vec::new();
    // Programs start in another folder, so the path must be absolute.
    let installed = std::path::absolute(cache)
        .unwrap_or_else(|_| cache.to_owned())
        .join(INSTALLED);
    let pythons = pythons();
    let candidates = named("uv")
        .into_iter()
        .chain(from_python(&pythons))
        .chain([installed.join("bin/uv")]);
    for path in candidates {
        match check(&path) {
            Ok(path) => return Ok(path),
            Err(reason) if path.exists() => reasons.push(format!("{}: {reason}", path.display())),
            Err(_) => {}
        }
    }
    if may_install {
        match install(&pythons, &installed) {
            Ok(path) => return Ok(path),
            Err(reason) => reasons.push(reason.to_string()),
        }
    }
    let reasons = if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join("; "))
    };
    Err(SandboxError::unavailable(format!(
        "there is no usable uv, which installs packages{reasons}"
    ))
    .hint(match pythons.is_empty() {
        true => NO_PYTHON_HINT,
        false => "run `pip install uv`, or set TESTWRIGHT_UV to the program",
    }))
}

/// Checks that there is a Python or `uv`, without starting any. Environments cannot be built without both.
///
/// # Errors
///
/// Kind `Unavailable` if there is neither.
pub fn require_python(cache: &Path) -> Result<()> {
    let is_known = std::env::var_os("TESTWRIGHT_UV").is_some()
        || cache.join(INSTALLED).join("bin/uv").exists()
        || !named("uv").is_empty()
        || !pythons().is_empty();
    if is_known {
        return Ok(());
    }
    Err(SandboxError::unavailable("no Python found").hint(NO_PYTHON_HINT))
}

/// Returns the Pythons on the PATH, newest first. Without any there, returns the installed Pythons.
fn pythons() -> Vec<PathBuf> {
    let mut pythons = named("python3");
    if pythons.is_empty() {
        let newest_first = KNOWN_PYTHONS.iter().rev();
        let candidates = newest_first.flat_map(|version| python_candidates(version));
        pythons.extend(candidates.filter(|path| path.is_file()));
    }
    pythons
}

/// A reason why a program cannot be used as `uv`, or could not be installed.
#[derive(Debug, thiserror::Error)]
enum UvError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is a script, not the program itself")]
    Script,
    #[error("it does not run")]
    DoesNotRun,
    #[error("{0} is older than {major}.{minor}", major = MIN_VERSION[0], minor = MIN_VERSION[1])]
    TooOld(String),
    #[error("there is no python3")]
    NoPython,
    #[error("python3: {0}")]
    Python(#[source] io::Error),
    #[error("pip: {0}")]
    Pip(String),
    #[error("could not replace {path}: {1}", path = .0.display())]
    Replace(PathBuf, #[source] io::Error),
}

/// Returns the resolved path of a program that is new enough.
fn check(path: &Path) -> std::result::Result<PathBuf, UvError> {
    let path = path.canonicalize()?;
    let mut magic = [0; 4];
    std::fs::File::open(&path).and_then(|mut f| f.read_exact(&mut magic))?;
    // A script (such as pyenv's) would not find the program inside the sandbox.
    if magic != *b"\x7fELF" {
        return Err(UvError::Script);
    }
    let version =
        output_of(command_outside_cwd(&path).arg("--version")).ok_or(UvError::DoesNotRun)?;
    let numbers: Vec<u32> = version
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .split('.')
        .map_while(|n| n.parse().ok())
        .collect();
    if numbers.as_slice() < MIN_VERSION.as_slice() {
        return Err(UvError::TooOld(version));
    }
    Ok(path)
}

/// Returns the programs of the `uv` packages that these Pythons have.
fn from_python(pythons: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let code = "import uv; print(uv.find_uv_bin())";
    let find = move |python| output_of(command_outside_cwd(python).args(["-c", code]));
    pythons.iter().filter_map(find).map(PathBuf::from)
}

/// Returns the first of these Pythons that has pip, or the first. An active virtual environment often has none.
fn with_pip(pythons: &[PathBuf]) -> Option<&PathBuf> {
    let has_pip =
        |python: &&PathBuf| output_of(command_outside_cwd(python).args(["-m", "pip", "--version"]));
    let found = pythons.iter().find(|python| has_pip(python).is_some());
    found.or(pythons.first())
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Installs uv with pip, using the index and proxies that the host's pip is configured for.
fn install(pythons: &[PathBuf], folder: &Path) -> std::result::Result<PathBuf, UvError> {
    let python = with_pip(pythons).ok_or(UvError::NoPython)?;
    let parent = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent)?;
    // An interrupted installation must not look like a program, so it goes to a temporary folder first.
    let aside = tempfile::tempdir_in(parent)?;
    let output = command_outside_cwd(python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            // A source distribution would run its code on the host.
            "--only-binary=:all:",
            "--target",
        ])
        .arg(aside.path())
        .arg("uv")
        .stdin(Stdio::null())
        .output()
        .map_err(UvError::Python)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.trim().lines().last().unwrap_or_default();
        return Err(UvError::Pip(last.to_owned()));
    }
    let program = folder.join("bin/uv");
    // Another process may have installed it first, and be using it.
    if check(&program).is_err() {
        match replace(aside.path(), folder) {
            Ok(()) => {
                let _ = aside.keep();
            }
            Err(error) => {
                return check(&program).map_err(|_| UvError::Replace(folder.to_owned(), error));
            }
        }
    }
    check(&program)
}

/// Moves a folder to the place of another, which may be missing.
fn replace(new: &Path, folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::rename(new, folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn python_without_pip_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let python = |name: &str, script: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let without = python("without", "echo 'No module named pip' >&2; exit 1");
        let with = python("with", "echo pip 25.0");
        let both = [without.clone(), with.clone()];
        assert_eq!(with_pip(&both), Some(&with));
        assert_eq!(with_pip(&both[..1]), Some(&without));
        assert_eq!(with_pip(&[]), None);
    }

    #[test]
    fn failed_installation_names_folder() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("uv");
        std::fs::write(&folder, "not a folder").unwrap();
        let python = PathBuf::from("/bin/true");
        let error = install(&[python], &folder).unwrap_err().to_string();
        let start = format!("could not replace {}: ", folder.display());
        assert!(error.starts_with(&start), "{error}");
    }

    #[test]
    fn script_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("uv");
        std::fs::write(&script, "#!/bin/sh\necho uv 9.9.9\n").unwrap();
        let error = find(Some(&script), folder.path(), false).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.message.contains("script"), "{}", error.message);
    }
}
