use super::*;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn required_packages_that_are_not_installed_are_found() {
    let required = ["pandas", "pyyaml", "numpy", "a", "b", "c", "d"];
    let required = required.map(|name| (name.to_owned(), name.to_owned()));
    let required = BTreeMap::from(required);
    let missing = |names: NamedPackages| {
        let is_own = |module: &str| module == "a";
        select(&names, &required, &set(&["numpy"]), &is_own)
    };
    let modules = set(&["pandas", "yaml", "numpy", "unknown", "a"]);
    let by_modules = missing(NamedPackages {
        modules,
        ..NamedPackages::default()
    });
    assert_eq!(by_modules, set(&["pandas", "pyyaml"]));
    let by_commands = missing(NamedPackages {
        packages: set(&["PyYAML", "numpy", "tox"]),
        ..NamedPackages::default()
    });
    assert_eq!(by_commands, set(&["pyyaml"]));
    // A long list of versions describes the reporter's machine.
    for (listed, expected) in [
        (&["b", "c", "d"][..], &["b", "c", "d"][..]),
        (&["a", "b", "c", "d"][..], &[][..]),
    ] {
        let by_list = missing(NamedPackages {
            listed: set(listed),
            ..NamedPackages::default()
        });
        assert_eq!(by_list, set(expected));
    }
}
