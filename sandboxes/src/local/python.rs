//! Finds interpreters on the host: installations of `pyenv` and `uv`, and those on the PATH.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use serde::{Deserialize, Serialize};

use crate::error::{SandboxError, Shortage};
use crate::mutex::lock;
use crate::programs::{command_outside_cwd, named};
use crate::sandbox::Result;

/// A CPython interpreter on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreter {
    /// Version, `X.Y`.
    pub version: String,
    /// Path of the interpreter's program on the host.
    pub executable: PathBuf,
    /// Folder that contains everything that belongs to it.
    pub prefix: PathBuf,
}

/// Finds a CPython of this version by asking candidates for theirs. Blocks.
///
/// # Errors
///
/// Kind `NotFound` if this machine has none.
pub fn find(version: &str) -> Result<Interpreter> {
    let well_formed = version.split_once('.').is_some_and(|(major, minor)| {
        [major, minor]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    });
    if !well_formed {
        let message = format!("Python {version} is not a version of the form X.Y");
        return Err(SandboxError::input(message));
    }
    let (releases, others): (Vec<_>, Vec<_>) =
        installed(version).into_iter().partition(|it| it.is_release);
    let executables = |all: Vec<Installed>| all.into_iter().map(|it| it.executable);
    let on_path = on_path(version).into_iter().chain(unversioned());
    for candidate in executables(releases)
        .chain(on_path)
        .chain(executables(others))
    {
        if let Some(interpreter) = ask(&candidate, version)? {
            return Ok(interpreter);
        }
    }
    let message = format!("Python {version} is not installed");
    Err(SandboxError::not_found(message).hint(format!(
        "install it with `uv python install {version}`, or use --sandbox docker"
    )))
}

/// Returns whether a release of this version is installed, without starting a program. Blocks.
pub(super) fn is_release_installed(version: &str) -> bool {
    let is_complete = |it: &Installed| {
        let prefix = it.executable.ancestors().nth(2);
        let module = prefix.map(|prefix| prefix.join(format!("lib/python{version}/os.py")));
        it.is_release && module.is_some_and(|module| module.is_file())
    };
    installed(version).iter().any(is_complete)
}

/// Returns programs that may be a Python of this version, without starting any.
pub(crate) fn candidates(version: &str) -> impl Iterator<Item = PathBuf> {
    let releases = installed(version).into_iter().filter(|it| it.is_release);
    releases.map(|it| it.executable).chain(on_path(version))
}

/// Describes path and build of an interpreter, as a text to compare.
pub(super) fn describe(interpreter: &Interpreter) -> Result<String> {
    const QUESTION: &str = "import sys, sysconfig
print(sys.version, sysconfig.get_config_var('SOABI'), sysconfig.get_config_var('HOST_GNU_TYPE'))";
    let executable = interpreter.executable.display();
    let out = question(&interpreter.executable, QUESTION).output()?;
    if !out.status.success() {
        let text = format!("ask {executable} for its version");
        return Err(SandboxError::system(text));
    }
    let prefix = interpreter.prefix.display();
    let version = String::from_utf8_lossy(&out.stdout);
    Ok(format!("{executable}\n{prefix}\n{version}"))
}

/// Describes this system by name and version, since compiled code in an environment uses its libraries.
pub(super) fn system() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let says = |line: &&str| line.starts_with("ID=") || line.starts_with("VERSION_ID=");
    text.lines().filter(says).collect::<Vec<_>>().join(" ")
}

/// A program in a folder of installations.
struct Installed {
    executable: PathBuf,
    /// Whether its folder has the name of a CPython release, such as `3.11.7`. Others are release candidates, other
    /// implementations or virtual environments.
    is_release: bool,
}

/// Returns the installed interpreters of a version, newest patch release first. Blocks.
fn installed(version: &str) -> Vec<Installed> {
    let data = variable("XDG_DATA_HOME", || home().join(".local/share"));
    let uv = variable("UV_PYTHON_INSTALL_DIR", || data.join("uv/python"));
    installed_in(
        [(&pyenv().join("versions"), ""), (&uv, "cpython-")],
        version,
    )
}

/// Returns the interpreters of a version in folders, whose releases have names with a prefix.
fn installed_in(folders: [(&Path, &str); 2], version: &str) -> Vec<Installed> {
    let mut installations = Vec::new();
    for (folder, before) in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let patch = name
                .strip_prefix(before)
                .and_then(|rest| rest.strip_prefix(version)?.strip_prefix('.'))
                .and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            let executable = entry.path().join(format!("bin/python{version}"));
            if executable.is_file() {
                installations.push((patch, executable));
            }
        }
    }
    installations.sort_by(|a, b| b.cmp(a));
    let installed = |(patch, executable): (Option<u32>, _)| Installed {
        executable,
        is_release: patch.is_some(),
    };
    installations.into_iter().map(installed).collect()
}

fn home() -> PathBuf {
    std::env::home_dir().unwrap_or_default()
}

/// Returns the folder that an environment variable names.
fn variable(name: &str, default: impl FnOnce() -> PathBuf) -> PathBuf {
    std::env::var_os(name).map_or_else(default, PathBuf::from)
}

fn pyenv() -> PathBuf {
    variable("PYENV_ROOT", || home().join(".pyenv"))
}

fn on_path(version: &str) -> Vec<PathBuf> {
    let names = [format!("python{version}"), "python3".to_owned()];
    names.iter().flat_map(|name| programs(name)).collect()
}

/// Returns programs named `python` on the PATH. Beside `python3`, it is the same version or Python 2.
fn unversioned() -> impl Iterator<Item = PathBuf> {
    let is_alone = |path: &PathBuf| !path.with_file_name("python3").is_file();
    programs("python").filter(is_alone)
}

/// Returns the programs of this name on the PATH. Those of pyenv only find what [`installed`] finds, by dozens of
/// processes.
fn programs(name: &str) -> impl Iterator<Item = PathBuf> {
    let shims = pyenv().join("shims");
    let programs = named(name).into_iter();
    programs.filter(move |path| !path.starts_with(&shims))
}

/// Device, inode, size and time of a file. They change if it is replaced or written.
type FileState = (u64, u64, u64, i64, i64);

/// A candidate, and the state of its file if it exists.
type Candidate = (PathBuf, Option<FileState>);

/// Answer of a candidate: `None` until it has answered, and `Some(None)` if it is not a CPython.
type Answer = Arc<Mutex<Option<Option<Interpreter>>>>;

/// Answers of all candidates. The same programs are candidates for each version that this machine lacks, and the shim
/// of a version manager starts several processes for an answer.
static ANSWERS: LazyLock<Mutex<HashMap<Candidate, Answer>>> = LazyLock::new(Mutex::default);

/// Returns a candidate if it has this version. Once it has answered, it is not asked again until its file changes.
fn ask(candidate: &Path, version: &str) -> Result<Option<Interpreter>> {
    let file = std::fs::metadata(candidate).ok();
    let state = file.map(|f| (f.dev(), f.ino(), f.size(), f.mtime(), f.mtime_nsec()));
    let answer = {
        let mut answers = lock(&ANSWERS);
        let key = (candidate.to_owned(), state);
        Arc::clone(answers.entry(key).or_default())
    };
    let mut answer = lock(&answer);
    // The shim of a version manager can lead to an interpreter that was removed.
    let is_removed =
        |it: &Option<Interpreter>| it.as_ref().is_some_and(|it| !it.executable.is_file());
    if answer.as_ref().is_none_or(is_removed) {
        *answer = query(candidate)?.map(read_answer);
    }
    let interpreter = answer.as_ref().and_then(Option::as_ref);
    Ok(interpreter.filter(|it| it.version == version).cloned())
}

/// Asks a candidate what it is. Returns `None` if it does not run, unless the machine lacks a resource.
fn query(candidate: &Path) -> Result<Option<Vec<u8>>> {
    const QUESTION: &str = "import sys
print('%d.%d' % sys.version_info[:2]); print(sys.implementation.name)
print(getattr(sys, 'base_prefix', sys.prefix)); print(getattr(sys, '_base_executable', None) or sys.executable)";
    match question(candidate, QUESTION).output() {
        Ok(out) if out.status.success() => Ok(Some(out.stdout)),
        Ok(_) => Ok(None),
        Err(error) => match Shortage::reported_by_spawn(&error) {
            Some(shortage) => Err(SandboxError::exhausted(shortage, error.to_string())),
            None => Ok(None),
        },
    }
}

/// Returns a command that runs code in a Python, without its site packages.
fn question(python: &Path, code: &str) -> Command {
    let mut command = command_outside_cwd(python);
    command
        .args(["-I", "-S", "-c", code])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn read_answer(printed: Vec<u8>) -> Option<Interpreter> {
    let text = String::from_utf8(printed).ok()?;
    let mut lines = text.lines();
    let version = lines.next()?;
    if lines.next()? != "cpython" {
        return None;
    }
    let prefix = std::fs::canonicalize(lines.next()?).ok()?;
    let executable = std::fs::canonicalize(lines.next()?).ok()?;
    let home = home();
    // The prefix becomes visible inside, so it must not contain a user's home.
    let fits =
        executable.starts_with(&prefix) && prefix.parent().is_some() && !home.starts_with(&prefix);
    fits.then(|| Interpreter {
        version: version.to_owned(),
        executable,
        prefix,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn releases_precede_other_installations() {
        let folder = tempfile::tempdir().unwrap();
        let (pyenv, uv) = (folder.path().join("pyenv"), folder.path().join("uv"));
        let program = |folder: &Path, name: &str| folder.join(name).join("bin/python3.11");
        let present = [
            (&pyenv, "3.11.7"),
            (&pyenv, "3.11.10"),
            (&pyenv, "pypy3.11-7.3"),
            (&pyenv, "3.10.2"),
            (&uv, "cpython-3.11.9-linux-x86_64-gnu"),
            (&uv, "cpython-3.11.0rc1-linux-x86_64-gnu"),
        ];
        for (folder, name) in present {
            let program = program(folder, name);
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            // The folder of another version has none of this one.
            if name != "3.10.2" {
                std::fs::write(program, "").unwrap();
            }
        }
        let found = installed_in([(&pyenv, ""), (&uv, "cpython-")], "3.11");
        let (releases, others): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.is_release);
        let paths = |all: Vec<&Installed>| -> Vec<PathBuf> {
            all.into_iter().map(|it| it.executable.clone()).collect()
        };
        let expected = [present[1], present[4], present[0]];
        assert_eq!(
            paths(releases),
            expected.map(|(folder, name)| program(folder, name))
        );
        let others = paths(others);
        assert!(
            [present[2], present[5]]
                .iter()
                .all(|(f, n)| others.contains(&program(f, n)))
        );
        assert_eq!(others.len(), 2);
    }

    #[test]
    fn candidate_is_asked_once_per_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (program, log) = (path("python3"), path("log"));
        let write = |version: &str| {
            let script = format!(
                "#!/bin/sh\necho asked >> {}\nprintf '%s\\n' {version} cpython {} {}\n",
                log.display(),
                folder.path().display(),
                program.display()
            );
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        };
        let has = |version: &str| ask(&program, version).unwrap().is_some();
        let times_asked = || std::fs::read_to_string(&log).unwrap().lines().count();

        write("3.11");
        assert!(!has("3.14") && has("3.11") && !has("3.15"));
        assert_eq!(times_asked(), 1);
        // The size differs too, because the times of some file systems are coarse.
        write("3.9");
        assert!(has("3.9") && !has("3.11"));
        assert_eq!(times_asked(), 2);
    }
}
