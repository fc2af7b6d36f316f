//! Checks that the files in deploy/ match the program: valid commands, known variables, valid systemd units.
//!
//! `.ci/deployment` checks them against the schemas of Kubernetes and Compose.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use regex::Regex;

use crate::repository::architecture::root;
use crate::support::program::TestDir;

/// Returns the path and text of every file in deploy/.
fn files() -> Vec<(PathBuf, String)> {
    let mut deploy_files = Vec::new();
    for folder in ["systemd", "compose", "kubernetes"] {
        for entry in std::fs::read_dir(root().join("deploy").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            deploy_files.push((path, text));
        }
    }
    deploy_files
}

/// Returns the command lines of `testwright` in a file.
fn commands(text: &str) -> Vec<Vec<String>> {
    let of_units = Regex::new(r"(?m)^ExecStart=/usr/local/bin/testwright (.*)$").unwrap();
    let of_containers = Regex::new(r"(?m)^ *(?:args|command): (\[.*\])$").unwrap();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    let units = of_units
        .captures_iter(text)
        .map(|captures| words(&captures[1]));
    let containers = of_containers
        .captures_iter(text)
        .map(|captures| serde_json::from_str(&captures[1]).unwrap());
    units.chain(containers).collect()
}

/// Returns the command lines that the program rejects.
fn refused(commands: &[Vec<String>]) -> Vec<String> {
    let place = TestDir::new();
    let is_accepted = |words: &&Vec<String>| {
        // `--help` succeeds only if the arguments before it are valid.
        let output = place.testwright().args(*words).arg("--help").output();
        output.unwrap().status.success()
    };
    let refused = commands.iter().filter(|words| !is_accepted(words));
    refused.map(|words| words.join(" ")).collect()
}

#[test]
fn deployment_commands_are_valid() {
    let all: Vec<_> = files()
        .iter()
        .flat_map(|(_, text)| commands(text))
        .collect();
    let of = |name: &str| all.iter().filter(|words| words[0] == name).count();
    assert_eq!((of("serve"), of("worker"), all.len()), (3, 3, 6), "{all:?}");
    assert_eq!(refused(&all), Vec::<String>::new());
    let wrong = commands("          args: [\"serve\", \"--lissen\", \"x\"]\n");
    assert_eq!(refused(&wrong), ["serve --lissen x"]);
}

#[test]
fn deployment_variables_are_documented() {
    let reference = root().join("docs/src/reference/environment-variables.md");
    let reference = std::fs::read_to_string(reference).unwrap();
    let name = Regex::new(r"\bTESTWRIGHT_[A-Z_]+\b").unwrap();
    // These two are used only in the Compose file.
    let own = ["TESTWRIGHT_DATABASE_PASSWORD", "TESTWRIGHT_VERSION"];
    let all = files();
    let variables: BTreeSet<&str> = all
        .iter()
        .flat_map(|(_, text)| name.find_iter(text).map(|mention| mention.as_str()))
        .filter(|name| !own.contains(name))
        .collect();
    assert!(variables.len() >= 4, "{variables:?}");
    let unknown = variables.iter().filter(|name| !reference.contains(**name));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn servers_have_the_key_of_workers() {
    let read = |path: &str| std::fs::read_to_string(root().join("deploy").join(path)).unwrap();
    let compose = read("compose/compose.yaml");
    let (server, worker) = compose.split_once("\n  worker:\n").unwrap();
    let pods = ["server", "worker"].map(|name| read(&format!("kubernetes/{name}.yaml")));
    let processes = [server, worker, pods[0].as_str(), pods[1].as_str()];
    let key = Regex::new(r"(?m)^ *(- name: )?OPENAI_API_KEY\b").unwrap();
    assert_eq!(processes.map(|text| key.is_match(text)), [true; 4]);
}

#[test]
fn deployments_allow_time_for_shutdown() {
    let all = files();
    let time = Regex::new(
        r"(?m)^ *(?:TimeoutStopSec=|terminationGracePeriodSeconds: |stop_grace_period: )(\d+)s?$",
    )
    .unwrap();
    let seconds: Vec<u32> = all
        .iter()
        .flat_map(|(_, text)| {
            time.captures_iter(text)
                .map(|captures| captures[1].parse().unwrap())
        })
        .collect();
    assert_eq!(seconds.len(), 5, "two units, compose, two deployments");
    assert!(seconds.iter().all(|seconds| *seconds >= 60), "{seconds:?}");
}

#[test]
fn systemd_units_are_valid() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    }
    let place = TestDir::new();
    let verify = |text: &str, name: &str| {
        let unit = place.path(name);
        // The unit names the installed program, which this machine lacks.
        let text = text.replace(
            "/usr/local/bin/testwright",
            env!("CARGO_BIN_EXE_testwright"),
        );
        std::fs::write(&unit, text).unwrap();
        let output = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&unit)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let units: Vec<_> = files()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "service"))
        .collect();
    assert_eq!(units.len(), 2);
    for (path, text) in units {
        let name = path.file_name().unwrap().to_str().unwrap();
        let verify_output = verify(&text, name);
        assert!(!verify_output.contains(name), "{verify_output}");
        // systemd-analyze must report a broken unit.
        let wrong = text.replace("RestrictNamespaces=user", "RestrictNamespaces=usr");
        assert!(verify(&wrong, name).contains(name));
    }
}
