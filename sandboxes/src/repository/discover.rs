//! Discovery of a path's git folder, as git does it, but without running git.
//!
//! An untrusted folder must not decide which program runs, nor lead to a repository that does not refer back to it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::config::Config;
use super::{git_files, limits};
use crate::error::SandboxError;
use crate::sandbox::Result;

/// An untrusted git folder.
#[derive(Debug)]
pub(super) struct GitFolder {
    /// Folder of `HEAD` and the index.
    pub own: PathBuf,
    /// Folder of objects, refs and the configuration. It differs from `own` in a linked work tree.
    pub common: PathBuf,
    /// The work tree around it, or `None` if it is bare.
    pub work_tree: Option<PathBuf>,
    /// The requested path relative to the work tree; `""` at its root.
    pub prefix: String,
}

/// Returns the git folder for `path` (canonical), or `None` for a plain folder.
pub(super) fn discover(path: &Path) -> Result<Option<GitFolder>> {
    let start = path.metadata()?;
    for folder in path.ancestors() {
        let folder_metadata = folder.metadata()?;
        // Like git, the search stops at another file system.
        if folder_metadata.dev() != start.dev() {
            break;
        }
        let dot_git = folder.join(".git");
        if let Ok(metadata) = dot_git.symlink_metadata() {
            // A repository further up applies to this folder only if it belongs to the same user.
            let foreign = folder != path && metadata.uid() != start.uid();
            let git_folders = if foreign {
                None
            } else if metadata.is_dir() {
                is_git_folder(&dot_git).then(|| (dot_git.clone(), dot_git.clone()))
            } else {
                Some(follow_git_file(folder, &dot_git)?)
            };
            if let Some((own, common)) = git_folders {
                let prefix = path.strip_prefix(folder).unwrap_or(Path::new(""));
                return Ok(Some(GitFolder {
                    own,
                    common,
                    work_tree: Some(folder.to_owned()),
                    prefix: prefix.to_string_lossy().into_owned(),
                }));
            }
        }
        // A bare repository counts only if its path was given, not if it lies further up.
        if folder == path && is_git_folder(folder) {
            return Ok(Some(GitFolder {
                own: folder.to_owned(),
                common: folder.to_owned(),
                work_tree: None,
                prefix: String::new(),
            }));
        }
    }
    Ok(None)
}

fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok()
        && folder.join("objects").is_dir()
        && folder.join("refs").is_dir()
}

/// Follows a `.git` file to a git folder that refers back to this work tree, which only its owner can have set up.
fn follow_git_file(work_tree: &Path, dot_git: &Path) -> Result<(PathBuf, PathBuf)> {
    let refused = |why: &str, hint: String| {
        let text = format!("{} cannot be used: {why}", dot_git.display());
        SandboxError::input(text).hint(hint)
    };
    if dot_git.is_symlink() {
        let target = std::fs::read_link(dot_git)?;
        return Err(refused(
            "it is a symbolic link",
            format!("use the repository itself: --repo {}", target.display()),
        ));
    }
    let line = git_files::line(dot_git, limits::SMALL_FILE)?.unwrap_or_default();
    let Some(target) = line.strip_prefix("gitdir:").map(str::trim) else {
        return Err(refused(
            "it does not name a git folder",
            "clone the repository again".to_owned(),
        ));
    };
    let Ok(own) = work_tree.join(target).canonicalize() else {
        return Err(refused(
            "the git folder that it names does not exist",
            "run `git worktree repair` in the main work tree, or clone the repository again"
                .to_owned(),
        ));
    };
    let stranger = || {
        refused(
            "the git folder that it names does not name this work tree",
            format!(
                "use the git folder itself (--repo {}), or run `git worktree repair`",
                own.display()
            ),
        )
    };
    if let Some(common) = git_files::line(&own.join("commondir"), limits::SMALL_FILE)? {
        // The folder of a linked work tree lies in that of the common one, and refers back to the work tree.
        let common = own.join(common).canonicalize().map_err(|_| stranger())?;
        let back = git_files::line(&own.join("gitdir"), limits::SMALL_FILE)?.unwrap_or_default();
        let back = own.join(back).canonicalize().ok();
        let among = own.parent() == Some(&common.join("worktrees"));
        if among && back.as_deref() == Some(dot_git) && is_git_folder(&common) {
            return Ok((own, common));
        }
        return Err(stranger());
    }
    // This is a submodule, or a separate git folder.
    let config = Config::read(&own)?;
    let back = config.get("core.worktree").map(|back| own.join(back));
    let back = back.and_then(|back| back.canonicalize().ok());
    if back.as_deref() == Some(work_tree) && is_git_folder(&own) {
        return Ok((own.clone(), own));
    }
    Err(stranger())
}

/// Returns whether git allows the name for a ref below `refs/`.
pub(super) fn is_ref(name: &str) -> bool {
    let odd = |c: char| c.is_control() || " ~^:?*[\\\u{7f}".contains(c);
    let plain = |part: Component<'_>| match part {
        Component::Normal(part) => !part
            .to_str()
            .is_none_or(|p| p.starts_with('.') || p.ends_with(".lock")),
        _ => false,
    };
    name.starts_with("refs/")
        && !name.contains(odd)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains("//")
        && !name.ends_with(['/', '.'])
        && !name.contains("/./")
        && name.len() <= limits::PATH
        && Path::new(name).components().all(plain)
}

pub(super) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::is_ref;

    #[test]
    fn refs_must_lie_below_refs() {
        for name in ["refs/heads/main", "refs/tags/v1.0", "refs/heads/a/b-c_d@e"] {
            assert!(is_ref(name), "{name}");
        }
        for name in [
            "HEAD",
            "refs/../config",
            "refs/heads/../../x",
            "refs/heads/a b",
            "refs//heads",
            "refs/heads/",
            "refs/heads/x.lock",
            "refs/heads/.x",
            "refs/heads/\u{1b}[0m",
            "/etc/passwd",
        ] {
            assert!(!is_ref(name), "{name}");
        }
    }
}
