//! Detects whether this process runs in a container, by the marks that engines leave.

use std::path::Path;

/// Files of Docker, Podman, systemd-nspawn and LXC, and of Kubernetes service accounts.
const FILES: [&str; 4] = [
    ".dockerenv",
    "run/.containerenv",
    "run/systemd/container",
    "var/run/secrets/kubernetes.io",
];

/// Environment variables of containers: Podman and systemd-nspawn set the first, Kubernetes the second.
const VARIABLES: [&str; 2] = ["container", "KUBERNETES_SERVICE_HOST"];

/// Parts of control group names that only containers have.
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

/// Returns whether this process runs in a container. A container isolates the machine from its processes, so reduced
/// isolation within it is acceptable.
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
    fn containers_are_detected_by_their_marks() {
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
