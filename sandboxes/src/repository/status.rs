//! Whether a work tree differs from its commit, as git says, from a git folder of ours and a copy of the index.

use super::discover::GitFolder;
use super::isolated_repository::IsolatedRepository;
use super::process::{self, Bounds};
use super::{git_files, limits};
use crate::sandbox::Result;

/// Of a repository's own settings, those that say how files are compared, and run nothing.
const TRUTHS: [&str; 4] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.trustctime",
];

/// A note about changes that are not in the commit.
pub(super) fn uncommitted(folder: &GitFolder, isolated: &IsolatedRepository) -> Option<String> {
    match count(folder, isolated) {
        Ok(0) => None,
        Ok(1) => Some("1 uncommitted change was left out: the old code is the commit".to_owned()),
        Ok(n) => Some(format!(
            "{n} uncommitted changes were left out: the old code is the commit"
        )),
        // The code is read whatever this says.
        Err(_) => Some(
            "whether there are uncommitted changes is not known: the old code is the commit"
                .to_owned(),
        ),
    }
}

fn count(folder: &GitFolder, isolated: &IsolatedRepository) -> Result<usize> {
    let Some(work_tree) = &folder.work_tree else {
        return Ok(0);
    };
    if isolated.config.truth("core.bare") == Some(true) && folder.own == folder.common {
        return Ok(0);
    }
    let own = isolated.folder.path();
    git_files::copy(&folder.own.join("index"), &own.join("index"), limits::INDEX)?;
    std::fs::create_dir_all(own.join("info"))?;
    // No filter is configured here; this says that none is looked for.
    std::fs::write(own.join("info/attributes"), "* -filter\n")?;
    for name in ["exclude", "sparse-checkout"] {
        let path = folder.common.join("info").join(name);
        git_files::copy(&path, &own.join("info").join(name), limits::MIDDLING_FILE)?;
    }
    let mut command = isolated.git.command();
    command
        .current_dir(work_tree)
        .args(["-c", "core.bare=false"]);
    for key in TRUTHS {
        if let Some(value) = isolated.config.truth(key) {
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
    // Names that look like patterns are names.
    let below = match folder.prefix.as_str() {
        "" => ".",
        prefix => prefix,
    };
    command.env("GIT_LITERAL_PATHSPECS", "1").arg(below);
    let bounds = Bounds {
        time: limits::SHORT_TIME,
        ..Bounds::default()
    };
    let output = process::run(command, b"", &bounds)?;
    if !output.ok {
        return Err(super::git::failed("status", &output.stderr));
    }
    let changed = output.stdout.split(|b| *b == 0);
    Ok(changed.filter(|l| !l.is_empty()).count())
}
