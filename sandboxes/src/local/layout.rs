//! Layout of a sandbox: its view of the host's files, its paths and its environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::protocol::{Bind, Isolation, Overlay, Setup};
use super::sandbox_dirs::SandboxDirs;
use super::{LocalContext, openat2};
use crate::error::SandboxError;
use crate::sandbox::{Paths, Result, Spec};

/// Maximum bytes that are read of a file that names an editable install.
const MAX_HOOK_LEN: u64 = 1 << 20;

const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the paths inside the sandbox with this folder.
pub(super) fn paths(isolation: Isolation, folder: &Path) -> Paths {
    if isolation == Isolation::Namespaces {
        return Paths {
            workspace: "/testbed".into(),
            environment: "/opt/testwright/env".into(),
            store: "/opt/testwright".into(),
            temporary: "/tmp".into(),
            private: "/home/testwright".into(),
            toolbox: "/opt/testwright".into(),
        };
    }
    Paths {
        workspace: folder.join("workspace"),
        environment: folder.join("store/env"),
        store: folder.join("store"),
        temporary: folder.join("tmp"),
        private: folder.join("home"),
        // Without isolation only the toolbox itself protects its files, those in its own folder.
        toolbox: folder.join(match isolation {
            Isolation::None => "home",
            _ => "store",
        }),
    }
}

/// Returns the setup of a sandbox's jail.
pub(super) fn setup(inner: &LocalContext, spec: &Spec, dirs: &SandboxDirs) -> Result<Setup> {
    let folder = &dirs.owned.folder;
    let paths = paths(inner.isolation, folder);
    let bind = |host: &Path, inside: &Path, writable: bool| Bind {
        host: host.to_owned(),
        inside: inside.to_owned(),
        writable,
    };
    let mut binds = vec![
        bind(&folder.join("tmp"), &paths.temporary, true),
        bind(&folder.join("home"), &paths.private, true),
        bind(&folder.join("store"), &paths.store, spec.root),
    ];
    let overlay = dirs.overlaid(inner, spec).map(|lower| Overlay {
        inside: paths.workspace.clone(),
        lower,
        upper: folder.join("upper"),
        work: folder.join("work"),
    });
    if overlay.is_none() {
        binds.push(bind(&folder.join("workspace"), &paths.workspace, true));
    }
    if let Some(shared) = dirs.shares_environment(inner, spec) {
        binds.push(bind(&shared, &paths.environment, false));
    }
    if let Some(python) = dirs
        .python
        .as_ref()
        .filter(|p| !p.prefix.starts_with("/usr"))
    {
        binds.push(bind(&python.prefix, &python.prefix, false));
    }
    for mount in &spec.mounts {
        let host = fs::canonicalize(&mount.host).map_err(|e| {
            let text = format!("mount {}: {e}", mount.host.display());
            SandboxError::input(text)
        })?;
        binds.push(bind(&host, &mount.inside, false));
    }
    Ok(Setup {
        isolation: inner.isolation,
        host_port: spec.host_port,
        root: folder.join("root"),
        binds,
        overlay,
        owner: dirs.owner,
        building: spec.root,
        limits: spec.limits.clone(),
        env: environment(inner, spec, dirs, &paths),
    })
}

fn environment(
    inner: &LocalContext,
    spec: &Spec,
    dirs: &SandboxDirs,
    paths: &Paths,
) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut path = text(&paths.environment.join("bin"));
    if let Some(folder) = dirs.python.as_ref().and_then(|p| p.executable.parent()) {
        path = format!("{path}:{}", text(folder));
    }
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), format!("{path}:{SYSTEM_PATH}")),
        ("HOME".to_owned(), text(&paths.private)),
        ("USER".to_owned(), "testwright".to_owned()),
        ("TMPDIR".to_owned(), text(&paths.temporary)),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ]);
    // Only namespaces have their own /etc/localtime.
    if inner.isolation != Isolation::Namespaces {
        env.insert("TZ".to_owned(), "UTC".to_owned());
    }
    for (name, value) in &spec.env {
        env.insert(name.clone(), host_path(inner, spec, value));
    }
    if inner.isolation != Isolation::Namespaces
        && let Some(state) = &dirs.state
    {
        let mut roots = import_roots(
            &state.folder.join("store/env"),
            &state.state.built.workspace,
            &paths.workspace,
        );
        roots.extend(env.get("PYTHONPATH").cloned());
        if !roots.is_empty() {
            env.insert("PYTHONPATH".to_owned(), roots.join(":"));
        }
    }
    env
}

/// Returns the import roots of editable installs in a copied workspace. The installs name the folder in which the
/// environment was built; without an own root file system, the copy's folders must come first.
fn import_roots(environment: &Path, built: &Path, copy: &Path) -> Vec<String> {
    let Ok(tree) = openat2::Folder::open(environment) else {
        return Vec::new();
    };
    let mut roots = Vec::new();
    let mut add = |line: &str| {
        if let Ok(relative) = Path::new(line.trim()).strip_prefix(built) {
            let root = copy
                .join(relative)
                .to_string_lossy()
                .trim_end_matches('/')
                .to_owned();
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
    };
    for version in tree.names(Path::new("lib")) {
        let folder = Path::new("lib").join(version).join("site-packages");
        for name in tree.names(&folder) {
            let path = folder.join(&name);
            let name = name.to_string_lossy();
            let is_list = name.ends_with(".pth") || name.ends_with(".egg-link");
            let is_hook = name.starts_with("__editable__") && name.ends_with(".py");
            let content = || tree.text(&path, MAX_HOOK_LEN).unwrap_or_default();
            if is_list {
                content().lines().for_each(&mut add);
            } else if is_hook {
                // MAPPING is a dictionary such as {'package': '/folder/package'}; the import root is the parent folder.
                let content = content();
                let mappings = content.lines().filter(|line| line.contains("MAPPING"));
                let parents = mappings
                    .flat_map(|line| line.split('\''))
                    .filter_map(|word| Path::new(word).parent());
                parents.for_each(|parent| add(&parent.to_string_lossy()));
            }
        }
    }
    roots
}

/// Translates a path inside a mount to the host's path. Without an own root file system, mounted folders keep their
/// host paths.
pub(super) fn host_path(inner: &LocalContext, spec: &Spec, text: &String) -> String {
    if inner.isolation == Isolation::Namespaces {
        return text.clone();
    }
    for mount in &spec.mounts {
        if let Ok(rest) = Path::new(text).strip_prefix(&mount.inside) {
            let host = fs::canonicalize(&mount.host).unwrap_or_else(|_| mount.host.clone());
            return host
                .join(rest)
                .to_string_lossy()
                .trim_end_matches('/')
                .to_owned();
        }
    }
    text.clone()
}

/// Describes the isolation, for [`crate::SandboxInfo::isolation`].
pub(super) fn describe(inner: &LocalContext, spec: &Spec, lacking: &[String]) -> String {
    let mut text = match inner.isolation {
        Isolation::Namespaces => "namespaces (user, mount, pid, network, ipc, uts), own root, \
            seccomp, no capabilities, user 1000, no network"
            .to_owned(),
        Isolation::Landlock => {
            let network = match spec.host_port {
                None => "no network, not even loopback".to_owned(),
                Some(port) => format!("no network except the relay at 127.0.0.1:{port}"),
            };
            format!("reduced isolation: landlock + seccomp in place, {network}")
        }
        Isolation::None => "none".to_owned(),
    };
    for lack in lacking {
        text.push_str("; ");
        text.push_str(lack);
    }
    text
}
