//! Check whether a work tree differs from its commit. git runs with an isolated git folder and a copy of the index.

use super::discover::GitFolder;
use super::isolated_repository::IsolatedRepository;
use super::process::{self, ProcessLimits};
use super::{git_files, limits};
use crate::sandbox::Result;

/// Settings of a repository that affect how files are compared and run nothing.
const TRUTHS: [&str; 4] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.trustctime",
];

/// Returns a note about changes that are not in the commit.
pub(super) fn uncommitted(folder: &GitFolder, isolated: &IsolatedRepository) -> Option<String> {
    match count(folder, isolated) {
        Ok(0) => None,
        Ok(1) => {
            Some("1 uncommitted change was ignored: the old code is that of the commit".to_owned())
        }
        Ok(n) => Some(format!(
            "{n} uncommitted changes were ignored: the old code is that of the commit"
        )),
        // A failure here does not affect the code, which is read from the commit.
        Err(_) => Some(
            "could not check for uncommitted changes: the old code is that of the commit"
                .to_owned(),
        ),
    }
}

fn count(folder: &GitFolder, isolated: &IsolatedRepository) -> Result<usize> {
    let Some(work_tree) = &folder.work_tree else {
        return Ok(0);
    };
    if isolated.config.get_bool("core.bare") == Some(true) && folder.own == folder.common {
        return Ok(0);
    }
    let own = isolated.folder.path();
    git_files::copy(&folder.own.join("index"), &own.join("index"), limits::INDEX)?;
    std::fs::create_dir_all(own.join("info"))?;
    // No filter is configured here, and this keeps git from looking for one.
    std::fs::write(own.join("info/attributes"), "* -filter\n")?;
    for name in ["exclude", "sparse-checkout"] {
        let path = folder.common.join("info").join(name);
        git_files::copy(
            &path,
            &own.join("info").join(name),
            limits::MAX_MEDIUM_FILE_BYTES,
        )?;
    }
    let mut command = isolated.git.command();
    command
        .current_dir(work_tree)
        .args(["-c", "core.bare=false"]);
    for key in TRUTHS {
        if let Some(value) = isolated.config.get_bool(key) {
            command.args(["-c", &format!("{key}={value}")]);
        }
    }
    command.arg("--work-tree").arg(work_tree).args([
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--ignore-submodules=all",
        "--",
    ]);
    // Names that look like patterns are taken literally.
    let below = match folder.prefix.as_str() {
        "" => ".",
        prefix => prefix,
    };
    command.env("GIT_LITERAL_PATHSPECS", "1").arg(below);
    let bounds = ProcessLimits {
        time: limits::STATUS_TIMEOUT,
        ..ProcessLimits::default()
    };
    let output = process::run(command, b"", &bounds)?;
    if !output.ok {
        return Err(super::git::failed("status", &output.stderr));
    }
    let changed = output.stdout.split(|b| *b == 0);
    Ok(changed.filter(|l| !l.is_empty()).count())
}
