//! Tells whether this process runs in a container, by the marks that engines leave.

use std::path::Path;

/// Docker, Podman, systemd-nspawn and LXC; a service account of Kubernetes.
const FILES: [&str; 4] = [
    ".dockerenv",
    "run/.containerenv",
    "run/systemd/container",
    "var/run/secrets/kubernetes.io",
];

/// The first is set by Podman and systemd-nspawn, the other by Kubernetes in every container.
const VARIABLES: [&str; 2] = ["container", "KUBERNETES_SERVICE_HOST"];

/// Parts of the names of control groups.
const GROUPS: [&str; 8] = [
    "/docker/",
    "/docker-",
    "/kubepods",
    "/lxc/",
    "/lxc.payload",
    "cri-containerd-",
    "crio-",
    "libpod-",
];

/// A container isolates the machine from what runs in it, which is why reduced isolation within is acceptable there.
pub fn in_container() -> bool {
    has_marks(Path::new("/"), |name| std::env::var_os(name).is_some())
}

fn has_marks(root: &Path, is_set: impl Fn(&str) -> bool) -> bool {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    FILES.iter().any(|file| root.join(file).exists())
        || VARIABLES.iter().any(|name| is_set(name))
        || GROUPS.iter().any(|part| groups.contains(part))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn containers_are_known_by_files_variables_and_groups() {
        let root = tempfile::tempdir().unwrap();
        let group = |text: &str| {
            std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
            std::fs::write(root.path().join("proc/self/cgroup"), text).unwrap();
            has_marks(root.path(), |_| false)
        };
        assert!(!group("0::/user.slice/user-1000.slice/session-2.scope\n"));
        assert!(!group("0::/system.slice/docker.service\n"));
        assert!(group(
            "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope\n"
        ));
        assert!(group("9:memory:/docker/0123\n0::/\n"));
        assert!(group("0::/machine.slice/libpod-0123.scope/container\n"));
        assert!(!group("0::/\n"));
        for name in VARIABLES {
            assert!(has_marks(root.path(), |set| set == name));
        }
        for file in FILES {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            assert!(has_marks(root.path(), |_| false), "{file}");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
