use super::*;

#[test]
fn packages_of_commands_are_found() {
    let mut installs = CiInstalls::default();
    installs.add(
            "pip install -U pip wheel tox-uv 'pytest>=7,<9' mock==4.0 -c constraints.txt -i URL -r a.txt -e . ./b \
             $MORE x.whl six # as usual\n# you can pip install more of it\n@echo \"pip install all\"\npip install pytest-cov[toml] --no-deps typing_extensions\n",
        );
    let expected = [
        "pytest>=7,<9",
        "mock==4.0",
        "six",
        "pytest-cov[toml]",
        "typing_extensions",
    ];
    assert_eq!(installs.packages, expected);
    assert_eq!(installs.files, ["a.txt"]);
}

#[test]
fn values_of_options_are_not_packages() {
    let mut installs = CiInstalls::default();
    installs.add(
        "uv pip install --progress-bar off --trusted-host pypi.org --upgrade-strategy eager -r \
             pyproject.toml --extra dev six\n",
    );
    assert!(installs.files.is_empty());
    assert_eq!(installs.packages, ["six"]);
    assert_eq!(installs.extras, ["dev"]);
}

#[test]
fn constants_of_nox_are_resolved() {
    let text = "DEPS = [\"pytest\", 'mock']\n\n@nox.session\ndef tests(session):\n    session.install(\n        \
                    *DEPS,\n        \"trio\",\n        silent=False,\n    )\n\n@nox.session\ndef lint(session):\n    \
                    session.install(\"attrs\")\n";
    assert_eq!(nox_arguments(text), [["pytest", "mock", "trio"]]);
}

#[test]
fn calls_and_settings_of_nox_name_no_packages() {
    let text = "def tests(session):\n    session.install(*project.dependency_groups(DATA, \"unit\"), \"-r\", \
                    str(\"a.txt\"), \"trio\", env={\"CFLAGS\": \"x\"})\n";
    let expected = ["--group", "unit", "$", "-r", "$", "trio"];
    assert_eq!(nox_arguments(text), [expected]);
}
