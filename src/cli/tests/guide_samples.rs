//! Checks the samples of the README and the guide: commands, flags, settings and JSON.
//!
//! The pages in `docs/src/reference/` are generated, so they need no check.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use clap::{CommandFactory, Parser};
use serde_json::Value;
use testwright_config::settings::{Settings, Sources};
use testwright_evals::Dataset;
use testwright_server::matrix::request::MatrixRequest;
use testwright_server::request::RunRequest;

use crate::cli::Cli;

/// A page of the guide, or the README.
struct Page {
    path: String,
    /// Text without fenced samples.
    prose: String,
    samples: Vec<Sample>,
}

/// A fenced sample.
struct Sample {
    /// Place for messages: `PATH:LINE`.
    place: String,
    language: String,
    text: String,
}

impl Page {
    fn read(path: &str, text: &str) -> Page {
        let mut page = Page {
            path: path.to_owned(),
            prose: String::new(),
            samples: Vec::new(),
        };
        let mut open: Option<Sample> = None;
        for (at, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (fence, open.take()) {
                (Some(_), Some(sample)) => page.samples.push(sample),
                (Some(language), None) => {
                    open = Some(Sample {
                        place: format!("{path}:{}", at + 1),
                        language: language.to_owned(),
                        text: String::new(),
                    });
                }
                (None, Some(mut sample)) => {
                    sample.text += line;
                    sample.text.push('\n');
                    open = Some(sample);
                }
                (None, None) => {
                    page.prose += line;
                    page.prose.push('\n');
                }
            }
        }
        page
    }

    /// Returns the samples in one of these languages.
    fn samples_in(&self, languages: &[&str]) -> impl Iterator<Item = &Sample> {
        let samples = self.samples.iter();
        samples.filter(|sample| languages.contains(&sample.language.as_str()))
    }
}

fn pages() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(root.join("docs/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            paths.push(format!("docs/src/{name}"));
        }
    }
    let read = |path: &String| Page::read(path, &std::fs::read_to_string(root.join(path)).unwrap());
    paths.iter().map(read).collect()
}

/// Splits a shell script into the words of its commands. It knows what the guide uses: quotes, comments, continued
/// lines and operators. The file of a redirection becomes a command of its own.
fn shell_commands(script: &str) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut command: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&'\n').is_some() => {}
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => {
                let inside = chars.by_ref().take_while(|inner| *inner != c);
                word.get_or_insert_default().extend(inside);
            }
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ' ' => command.extend(word.take()),
            '\n' | '&' | '|' | ';' | '>' => {
                command.extend(word.take());
                commands.push(std::mem::take(&mut command));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    command.extend(word);
    commands.push(command);
    commands.retain(|command| !command.is_empty());
    commands
}

/// Returns the arguments of each `testwright` command in a shell script.
fn invocations(script: &str) -> Vec<Vec<String>> {
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut all = Vec::new();
    for command in shell_commands(script) {
        if let [assignment] = command.as_slice()
            && let Some((name, value)) = assignment.split_once('=')
        {
            variables.push((format!("${name}"), value.to_owned()));
            continue;
        }
        let after = |mark: &str| command.iter().position(|word| word == mark);
        let start = match command[0].as_str() {
            "testwright" | "uvx" | "docker" => after("testwright"),
            "cargo" => after("--"),
            _ => None,
        };
        if let Some(start) = start {
            let words = command.iter().skip(start + 1);
            let expand = |word: &String| {
                let values = variables.iter();
                values.fold(word.clone(), |word, (name, value)| {
                    word.replace(name, value)
                })
            };
            all.push(words.map(expand).collect());
        }
    }
    all
}

/// Returns why the program refuses these arguments.
fn refusal(arguments: &[String]) -> Option<String> {
    let arguments = arguments.to_vec();
    // An unoptimized parser of all commands needs more stack than a test has.
    let parse = move || {
        let program = std::iter::once("testwright".to_owned());
        let parsed = Cli::try_parse_from(program.chain(arguments));
        parsed.err().map(|error| error.to_string())
    };
    let thread = std::thread::Builder::new().stack_size(testwright_tools::python::STACK);
    thread.spawn(parse).unwrap().join().unwrap()
}

#[test]
fn commands_of_guide_are_accepted() {
    let mut count = 0;
    for page in pages() {
        for sample in page.samples_in(&["sh", "bash"]) {
            for arguments in invocations(&sample.text) {
                let refusal = refusal(&arguments);
                assert_eq!(refusal, None, "{}: {arguments:?}", sample.place);
                count += 1;
            }
        }
    }
    assert!(count > 60, "{count}");
    let script = "a=1\nuvx testwright run x.md --no-such-flag $a | cat  # testwright run\n";
    let commands = invocations(script);
    assert_eq!(commands, [["run", "x.md", "--no-such-flag", "1"]]);
    assert!(refusal(&commands[0]).is_some());
}

fn has_flag(command: &clap::Command, flag: &str) -> bool {
    let name = flag.trim_start_matches('-').split('=').next();
    command.get_arguments().any(|a| a.get_long() == name)
}

fn is_flag_of_any(command: &clap::Command, flag: &str) -> bool {
    has_flag(command, flag)
        || command
            .get_subcommands()
            .any(|inner| is_flag_of_any(inner, flag))
}

/// Returns a command or a flag in inline code that the program does not have.
fn unknown_name<'w>(root: &clap::Command, words: &[&'w str]) -> Option<&'w str> {
    let is_flag = |word: &str| word.starts_with("--");
    match words {
        ["testwright", rest @ ..] => {
            let (mut command, mut rest) = (root, rest);
            while let [name, others @ ..] = rest
                && let Some(inner) = command.find_subcommand(name)
            {
                (command, rest) = (inner, others);
            }
            let is_root = command.get_name() == root.get_name();
            let is_unknown = |(at, word): &(usize, &&str)| match is_flag(word) {
                true => !has_flag(command, word),
                false => is_root && *at == 0 && !word.starts_with('-'),
            };
            let unknown = rest.iter().enumerate().find(is_unknown);
            unknown.map(|(_, word)| *word)
        }
        [first, ..] if is_flag(first) => words
            .iter()
            .find(|word| is_flag(word) && !is_flag_of_any(root, word))
            .copied(),
        _ => None,
    }
}

#[test]
fn names_in_prose_exist() {
    let mut root = Cli::command();
    root.build();
    let unknown = |prose: &str| -> Vec<String> {
        let inline_code = prose.split('`').skip(1).step_by(2);
        let unknown = inline_code.filter_map(|code| {
            let words: Vec<&str> = code.split_whitespace().collect();
            unknown_name(&root, &words).map(|name| format!("{name} in `{code}`"))
        });
        unknown.collect()
    };
    for page in pages() {
        assert_eq!(unknown(&page.prose), [""; 0], "{}", page.path);
    }
    let prose = "`testwright walk`, `testwright runs export ID --no`, `--no-such=1` and `--repo`";
    assert_eq!(
        unknown(prose),
        [
            "walk in `testwright walk`",
            "--no in `testwright runs export ID --no`",
            "--no-such=1 in `--no-such=1`"
        ]
    );
}

#[test]
fn settings_of_guide_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("testwright.toml");
    let sources = Sources {
        config: Some(file.clone()),
        variables: [("HOME".to_owned(), "/nowhere".to_owned())].into(),
        ..Sources::default()
    };
    let load = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Settings::load(&sources)
    };
    for page in pages() {
        for sample in page.samples_in(&["toml"]) {
            let settings = load(&sample.text);
            assert!(settings.is_ok(), "{}: {settings:?}", sample.place);
        }
    }
    assert!(load("[run]\nno-such-key = 1\n").is_err());
}

/// Returns why a JSON sample is not what its page says.
fn json_problem(page: &str, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(error.to_string()),
    };
    match page {
        "docs/src/datasets.md" => Dataset::of_records("sample", vec![value])
            .err()
            .map(|error| error.to_string()),
        "docs/src/serving.md" if value.get("patches").is_some() => {
            let request = serde_json::from_value::<MatrixRequest>(value);
            request.err().map(|error| error.to_string())
        }
        "docs/src/serving.md" if value.get("issue").is_some() => {
            let request = serde_json::from_value::<RunRequest>(value);
            request.err().map(|error| error.to_string())
        }
        _ => None,
    }
}

#[test]
fn json_of_guide_is_accepted() {
    for page in pages() {
        for sample in page.samples_in(&["json"]) {
            let problem = json_problem(&page.path, &sample.text);
            assert_eq!(problem, None, "{}", sample.place);
        }
        for sample in page.samples_in(&["sh", "bash"]) {
            // The bodies of requests.
            let words = shell_commands(&sample.text).into_iter().flatten();
            for body in words.filter(|word| word.starts_with("{\"")) {
                let problem = json_problem(&page.path, &body);
                assert_eq!(problem, None, "{}", sample.place);
            }
        }
    }
    let serving = "docs/src/serving.md";
    assert!(json_problem(serving, "{\"issue\": \"x\", \"no\": 1}").is_some());
    assert!(json_problem(serving, "{\"patches\": [], \"tests\": [{}], \"no\": 1}").is_some());
    assert!(json_problem("docs/src/datasets.md", "{\"repo\": \"a/b\"}").is_some());
}
