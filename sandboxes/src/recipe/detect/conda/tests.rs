use super::*;

#[test]
fn items_of_conda_and_pip_are_separated() {
    let text = "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.11\n  - pip:\n    - trio # why\n    - -r \
                    a.txt\n  - numpy\nprefix: /x\n";
    let expected = [
        ("python=3.11", false),
        ("trio", true),
        ("-r a.txt", true),
        ("numpy", false),
    ];
    assert_eq!(items(text), expected);
}

#[test]
fn imported_packages_become_requirements() {
    let imported = ["git", "numpy", "torch", "yaml", "jsonlogger", "xarray"];
    let imported = imported.map(str::to_owned);
    let imported = BTreeSet::from(imported);
    for (item, expected) in [
        ("numpy=1.21", Some("numpy==1.21.*")),
        (
            "conda-forge::xarray>=2022.1,<2023",
            Some("xarray>=2022.1,<2023"),
        ),
        ("numpy=1.21.2=py39h1", Some("numpy==1.21.2.*")),
        ("python-json-logger", Some("python-json-logger")),
        ("PyYAML==6.0", Some("pyyaml==6.0")),
        ("pytest-xdist", Some("pytest-xdist")),
        ("python=3.11", None),
        ("cudatoolkit", None),
        ("numpy=*", Some("numpy")),
        ("numpy=1.21=0", Some("numpy==1.21.*")),
        ("pytorch=1.8", Some("torch==1.8.*")),
        ("git", None),
        ("yaml=0.2.5", None),
    ] {
        assert_eq!(
            pip_requirement(item, &imported).as_deref(),
            expected,
            "{item}"
        );
    }
}
