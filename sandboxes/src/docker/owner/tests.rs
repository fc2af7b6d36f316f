#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn owner_text_round_trips() {
    let owner = Owner::this();
    assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
    assert_eq!(Owner::parse("nonsense"), None);
}

#[test]
fn running_process_is_not_gone() {
    assert!(!Owner::this().is_gone(true));
}

#[test]
fn dead_and_reused_processes_are_gone() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = Owner {
        pid: child.id(),
        ..Owner::this()
    };
    child.wait().unwrap();
    assert!(dead.is_gone(true));
    let earlier = Owner {
        started: "1".to_owned(),
        ..Owner::this()
    };
    assert!(earlier.is_gone(true));
}

#[test]
fn other_machines_and_namespaces_are_unknown() {
    let machine = Owner {
        host: "other".to_owned(),
        started: "1".to_owned(),
        ..Owner::this()
    };
    let namespace = Owner {
        namespace: "pid:[1]".to_owned(),
        started: "1".to_owned(),
        ..Owner::this()
    };
    assert!(!machine.is_gone(false) && !namespace.is_gone(false));
}

#[test]
fn idle_leftovers_of_earlier_boot_are_gone() {
    let owner = Owner {
        boot: "earlier".to_owned(),
        ..Owner::this()
    };
    assert!(owner.is_gone(false) && !owner.is_gone(true));
}
