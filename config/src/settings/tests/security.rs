//! Found settings files with malicious content.

use super::*;

/// Returns every key, with a valid value as written in a file.
fn every_key() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = keys::keys()
        .iter()
        .map(|key| {
            let path: Vec<&str> = key
                .section
                .iter()
                .chain([&key.key])
                .map(String::as_str)
                .collect();
            let path = path.join(".");
            let fits =
                |text: &str| toml::from_str::<Settings>(&format!("{path} = {text}\n")).is_ok();
            let texts = [
                "\"docker\"",
                "\"never\"",
                "\"high\"",
                "\"https://evil.example.org/v1\"",
                "[\"https://evil.example.org\"]",
                "true",
                "\"5 GiB\"",
                "1",
                "0.5",
                "{ top_p = 1 }",
            ];
            let other = |text: &&str| {
                let settings: Settings =
                    toml::from_str(&format!("{path} = {text}\n")).unwrap_or_default();
                settings != Settings::default()
            };
            let text = texts.iter().find(|text| fits(text) && other(text));
            let text = text.or(texts.iter().find(|text| fits(text)));
            (
                path.clone(),
                text.unwrap_or_else(|| panic!("no value for {path}"))
                    .to_string(),
            )
        })
        .collect();
    all.push((
        "prices.evil".to_owned(),
        "{ prompt = 0, completion = 0 }".to_owned(),
    ));
    all.push(("environment".to_owned(), "{ python = \"3.9\" }".to_owned()));
    all
}

#[test]
fn found_file_sets_only_listed_keys() {
    let keys = every_key();
    assert!(keys.len() > 35, "{keys:?}");
    for folder in ["here", "repository"] {
        for (key, value) in &keys {
            let mut place = TestDir::new().file(folder, &format!("{key} = {value}\n"));
            if folder == "here" {
                place.sources.repository = None;
            }
            let settings = place.load();
            let allowed =
                key == found_file::RECIPE || found_file::LIMITS.iter().any(|(name, _)| name == key);
            let is_applied = settings.origin(key) != Origin::Default;
            assert!(
                !is_applied || allowed,
                "{folder}: {key} = {value} was taken"
            );
            let noted = settings
                .notes
                .iter()
                .any(|note| note.contains(&format!("`{key}`")));
            assert!(
                is_applied || noted,
                "{folder}: {key} = {value}: {:?}",
                settings.notes
            );
            if !allowed {
                let mut plain = TestDir::new().load();
                plain.notes.clone_from(&settings.notes);
                plain.variables = settings.variables.clone();
                assert_eq!(settings, plain, "{folder}: {key} = {value}");
            }
        }
    }
}

#[test]
fn listed_keys_exist() {
    let known_keys: Vec<String> = every_key().into_iter().map(|(key, _)| key).collect();
    for (key, _) in found_file::LIMITS {
        assert!(known_keys.iter().any(|k| k == key), "{key}");
    }
}

#[test]
fn ignored_keys_are_noted_once() {
    let text = "[run]\nmodel = \"m\"\n[model]\nbase-url = \"http://evil.example.org/v1\"\napi-key-env = \"HOME\"\n\
                [local]\nno-isolation = true\n[docker]\nhost = \"tcp://evil.example.org\"\n[build]\noffline = true\ncache-size = 1\n";
    let place = TestDir::new().file("here", text);
    let notes = place.load().notes;
    insta::assert_snapshot!(place.without_folder(&notes.join("\n")), @"testwright.toml: ignored `build.cache-size`, `build.offline`, `docker.host`, `local.no-isolation`, `model.api-key-env`, `model.base-url`, `run.model`: a file found in a folder may only say how its own repository is built ([environment]) and reduce limits; put such keys into DIR/home/testwright.toml, or trust the whole file with --config DIR/here/testwright.toml");
}

#[test]
fn found_file_only_lowers_limits() {
    let raised = "[run]\nmax-steps = 100000\nmax-dollars = 3\nmax-minutes = 1e9\nmax-tokens = 9\n\
                  [limits]\nmemory = \"900 GiB\"\nprocesses = 99999999\ncpus = inf\nfile-size = \"900 GiB\"\ndisk = \"900 GiB\"\nfiles = 99999999\ntest-seconds = 99999\n";
    for folder in ["here", "repository"] {
        let user = "[run]\nmax-dollars = 2\nmax-tokens = 5\n[limits]\nprocesses = 70\n";
        let place = TestDir::new().file("home", user).file(folder, raised);
        let settings = place.load();
        let plain = TestDir::new().file("home", user).load();
        assert_eq!(
            (&settings.run, &settings.limits),
            (&plain.run, &plain.limits)
        );
        assert_eq!(
            settings.notes.len(),
            found_file::LIMITS.len(),
            "{:#?}",
            settings.notes
        );

        let lowered = "[run]\nmax-steps = 5\nmax-dollars = 0.5\nmax-tokens = 4\nmax-minutes = 2.5\n\
                       [limits]\nmemory = \"1 GiB\"\nprocesses = 50\ncpus = 0.5\nfile-size = \"1 MiB\"\ndisk = \"2 MiB\"\nfiles = 9\ntest-seconds = 7\n";
        let settings = TestDir::new()
            .file("home", user)
            .file(folder, lowered)
            .load();
        assert_eq!(
            (settings.run.max_steps, settings.run.max_dollars),
            (5, Some(0.5))
        );
        assert_eq!(
            (settings.limits.memory, settings.limits.test_seconds),
            (Size::new(1 << 30), 7)
        );
        let sandbox = settings.limits.sandbox();
        assert_eq!((sandbox.disk, sandbox.files), (2 << 20, 9));
        assert!(settings.notes.is_empty(), "{:?}", settings.notes);
    }
    // NaN is not less than anything.
    for value in ["nan", "-nan", "inf"] {
        let place = TestDir::new().file(
            "here",
            &format!("[run]\nmax-minutes = {value}\nmax-dollars = {value}\n"),
        );
        let run = place.load().run;
        assert_eq!(run.max_minutes, 30.0, "{value}");
        assert!(
            run.max_dollars.is_none_or(|d| d == f64::INFINITY),
            "{value}"
        );
    }
    // A flag of the user overrides any file.
    let place = TestDir::new()
        .file("here", "run.max-steps = 5\n")
        .flag("run.max-steps", 200);
    assert_eq!(place.load().run.max_steps, 200);
}

#[test]
fn recipe_applies_to_own_folder() {
    let python = |place: &TestDir, location: &str| {
        let settings = place.load();
        settings
            .environment_of(location)
            .and_then(|recipe| recipe.python.clone())
    };
    let mut place = TestDir::new().file("here", "[environment]\npython = \"3.8\"\n");
    let here = place
        .folder
        .path()
        .join("here")
        .to_str()
        .unwrap()
        .to_owned();
    // The user named another repository.
    assert_eq!(python(&place, &here), None);
    place.sources.repository = None;
    assert_eq!(python(&place, &here).as_deref(), Some("3.8"));
    assert_eq!(python(&place, "https://github.com/owner/name"), None);
    place.sources.repository = Some(here.clone().into());
    assert_eq!(python(&place, &here).as_deref(), Some("3.8"));
    let place = TestDir::new()
        .file("repository", "[environment]\npython = \"3.9\"\n")
        .config("[environment]\npython = \"3.10\"\n");
    assert_eq!(python(&place, "anywhere").as_deref(), Some("3.10"));
}

#[test]
fn found_recipe_cannot_set_image() {
    let text =
        "[environment]\nimage = \"127.0.0.1:1/evil:x\"\ninterpreter = \"/x\"\npython = \"3.9\"\n";
    for folder in ["here", "repository"] {
        let mut place = TestDir::new().file(folder, text);
        if folder == "here" {
            place.sources.repository = None;
        }
        let settings = place.load();
        let recipe = settings.environment.clone().unwrap();
        assert_eq!((recipe.image, recipe.interpreter), (None, None), "{folder}");
        assert_eq!(recipe.python.as_deref(), Some("3.9"), "{folder}");
        let file = match folder {
            "here" => "testwright.toml:1".to_owned(),
            _ => "DIR/repository/testwright.toml:1".to_owned(),
        };
        assert_eq!(
            place.without_folder(&settings.notes.join("\n")),
            format!(
                "{file}: ignored `environment.image` and `environment.interpreter`: a file found in a folder must not set an image; set it with --image or with run.image in DIR/home/testwright.toml, or trust the whole file with --config DIR/{folder}/testwright.toml"
            ),
        );
    }
    let settings = TestDir::new().config(text).load();
    let image = settings.environment.and_then(|recipe| recipe.image);
    assert_eq!(image.as_deref(), Some("127.0.0.1:1/evil:x"));
    assert!(settings.notes.is_empty(), "{:?}", settings.notes);
}

#[test]
fn named_file_is_trusted() {
    let text = "[model]\nbase-url = \"http://127.0.0.1:1/v1\"\n[local]\nno-isolation = true\n";
    let settings = TestDir::new().config(text).load();
    assert!(settings.local.no_isolation && settings.model.base_url.is_some());
    // This also applies to a file that would be found anyway.
    let mut place = TestDir::new().file("here", text);
    place.sources.config = Some(place.folder.path().join("here").join(FILE));
    let settings = place.load();
    assert!(
        settings.local.no_isolation && settings.notes.is_empty(),
        "{:?}",
        settings.notes
    );
    let config_path = place.folder.path().join("here").join(FILE);
    place.sources.config = None;
    place = place.variable("TESTWRIGHT_CONFIG", config_path.to_str().unwrap());
    assert!(place.load().local.no_isolation);

    let mut place = TestDir::new();
    place.sources.config = Some(place.folder.path().join("none.toml"));
    insta::assert_snapshot!(place.refused(), @r"
    error: failed to read the settings
      cause: DIR/none.toml does not exist
      hint: pass the path of an existing file
    ");
    insta::assert_snapshot!(TestDir::new().variable("TESTWRIGHT_CONFIG", FILE).refused(), @r"
    error: failed to read the settings
      cause: TESTWRIGHT_CONFIG is `testwright.toml`, which is a relative path
      hint: use an absolute path, or --config
    ");
}

#[test]
fn link_target_is_not_quoted() {
    for content in [
        "root:$6$pa55word:19000::::::\n",
        "[pa55word]\nkey = 1\n",
        "key = \"pa55word\"\n",
    ] {
        let place = TestDir::new().file("home", "");
        let secret = place.folder.path().join("secret");
        std::fs::write(&secret, content).unwrap();
        for folder in ["here", "repository"] {
            let link = place.folder.path().join(folder).join(FILE);
            std::os::unix::fs::symlink(&secret, &link).unwrap();
            let refused = place.refused();
            assert!(
                !refused.contains("pa55word") && !refused.contains("key"),
                "{refused}"
            );
            assert!(
                refused.contains("testwright.toml: is a symbolic link"),
                "{refused}"
            );
            std::fs::remove_file(link).unwrap();
        }
    }
}

#[test]
fn pipe_device_and_huge_file_are_refused() {
    let place = TestDir::new();
    let path = place.folder.path().join("here").join(FILE);
    let status = std::process::Command::new("mkfifo")
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success());
    assert!(place.refused().contains("is not a file"));
    std::fs::remove_file(&path).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(place.refused().contains("is larger than 1 MiB"));
    let mut place = TestDir::new();
    place.sources.config = Some("/dev/zero".into());
    assert!(place.refused().contains("is not a file"));
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = 100_000;
    let texts = [
        format!("a = {}{}\n", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}1{}\n", "{ a = ".repeat(deep), " }".repeat(deep)),
        format!("{}a = 1\n", "a.".repeat(deep)),
        format!("[{}a]\n", "a.".repeat(deep)),
        format!("[[{}a]]\n", "a.".repeat(deep)),
        format!("[environment.env]\n{}a = 1\n", "a.".repeat(deep)),
    ];
    for text in texts {
        let place = TestDir::new().file("here", &text);
        let refused = place.refused();
        assert!(refused.len() < 2_000, "{} characters", refused.len());
    }
}
