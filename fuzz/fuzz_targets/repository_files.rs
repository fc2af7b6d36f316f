//! Detection of the environment from a repository's files: `pyproject.toml`, `setup.py`, `setup.cfg`, `tox.ini`,
//! `pytest.ini`, `.travis.yml` and `testwright.toml`, in this order, divided by the byte 0xff.
#![no_main]

use testwright_fuzz::{bounded_target, folder, texts};
use testwright_sandboxes::recipe::{Overrides, Recipe, find, parse, resolution_date};
use testwright_sandboxes::repository::Source;
use testwright_tools::workspace::Layout;

const FILES: [&str; 7] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    ".travis.yml",
    "testwright.toml",
];

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let contents: [Option<String>; 7] = texts(data);
    let archive = folder().join("source.tar");
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in FILES.iter().zip(&contents) {
        let path = folder().join(name);
        let Some(content) = content.as_ref().filter(|text| !text.is_empty()) else {
            let _ = std::fs::remove_file(path);
            continue;
        };
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content.as_bytes()).expect("an entry");
        std::fs::write(path, content).expect("a file");
    }
    std::fs::write(&archive, builder.into_inner().expect("an archive")).expect("a file");
    let source: Source = serde_json::from_value(serde_json::json!({
        "name": "owner/name", "commit": null, "date": "2021-06-01T00:00:00Z", "archive": archive,
        "digest": "0", "describe": null, "notes": [],
    }))
    .expect("a source");
    if let Ok((recipe, origin)) = find(&source, &Overrides::default()) {
        assert!(origin.len() < 1000);
        let written = toml::to_string(&recipe).expect("a recipe as TOML");
        // A file states all its parts; the recipe that was found records who stated them.
        let parsed = parse(&written, "recipe.toml").ok();
        let parsed = parsed.map(|parsed| Recipe { stated: recipe.stated.clone(), ..parsed });
        assert_eq!(parsed.as_ref(), Some(&recipe));
        let _ = resolution_date(&recipe, &source);
    }
    let layout = Layout::read(folder());
    assert!(layout.is_test_file("tests/test_a.py"));
    layout.is_test_path("pkg/unit/a_test.py");
    layout.is_test_class("TestA");
    layout.is_test_function("test_a");
});
