//! Tests of amendments, with packages in a folder, so they need no network.

use std::sync::Arc;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{
    Amendments, BuildSettings, Draft, Environment, amended_recipe, prepare,
};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe::Recipe;
use testwright_sandboxes::repository::Source;

use crate::place::{TestDir, recipe};

fn keys(text: &str) -> toml::Table {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn amended_build_starts_from_installed_requirements() {
    let Some(place) = TestDir::new() else { return };
    let source = place.source();
    let backend = place.backend.as_ref();
    let failing = Recipe {
        after_install: vec!["test -e missing".to_owned()],
        ..recipe()
    };
    let draft = Arc::new(Draft::default());
    let settings = BuildSettings {
        draft: Some(draft.clone()),
        ..place.settings()
    };
    let failed = prepare(backend, &source, &failing, "a test", &settings, &|_| {}).await;
    assert_eq!(failed.unwrap_err().kind, ErrorKind::Build);

    let origin = "a test";
    let mut amendments = Amendments::new(
        backend,
        &source,
        &failing,
        origin,
        settings.clone(),
        &|_| {},
    );
    for wrong in ["image = 'x'", "pyhton = '3.9'", "git = 'perhaps'"] {
        let refused = amendments.amend(keys(wrong)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Input, "{wrong}");
    }
    assert_eq!(amendments.recipe(), &failing);
    let requirements = |name: &str| {
        let mut lines = failing.requirements.clone();
        lines.push(name.to_owned());
        toml::Table::from_iter([("requirements".to_owned(), toml::Value::from(lines))])
    };
    let failed = amendments.amend(requirements("nowhere")).await.unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Build);
    assert!(failed.message.contains("nowhere"), "{failed}");

    place.wheel("another", "1.0", "");
    let mut fixed = requirements("another");
    fixed.extend(keys("after-install = []"));
    let environment = amendments.amend(fixed).await.unwrap();
    assert!(environment.packages.contains(&"another==1.0".to_owned()));
    let log = std::fs::read_to_string(&environment.log).unwrap();
    assert!(log.contains("== built on deps-"), "{log}");
    assert!(!log.contains("create the virtual environment"), "{log}");
    amendments.finish().await.unwrap();

    let remembered = amended_recipe(&source, &failing, origin, &settings).unwrap();
    let (remembered, origin) = remembered.unwrap();
    assert!(remembered.requirements.contains(&"another".to_owned()));
    assert_eq!(origin, "amended earlier, over a test");
    let again = prepare(
        backend,
        &source,
        &remembered,
        &origin,
        &place.settings(),
        &|_| {},
    )
    .await
    .unwrap();
    assert!(again.cached);
    assert!(
        amended_recipe(&source, &recipe(), "a test", &settings)
            .unwrap()
            .is_none()
    );
}

async fn build(
    place: &TestDir,
    source: &Source,
    settings: &BuildSettings,
) -> Result<Environment, SandboxError> {
    let backend = place.backend.as_ref();
    prepare(backend, source, &recipe(), "a test", settings, &|_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_repair_leaves_nothing_to_later_builds() {
    let Some(place) = TestDir::new() else { return };
    place.write("tests/test_a.py", "def test_a(: pass\n");
    let broken = place.source();
    let backend = place.backend.as_ref();
    let draft = Arc::new(Draft::default());
    let settings = BuildSettings {
        draft: Some(draft),
        ..place.settings()
    };
    let rejected = || -> Vec<String> {
        let folder = place.folder.path().join("cache/environments");
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter_map(|name| Some(name.strip_suffix(".gone")?.to_owned()))
            .collect()
    };
    let failed = build(&place, &broken, &settings).await.unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Build);
    let names = rejected();
    assert_eq!(names.len(), 1, "{names:?}");
    place.write("tests/test_a.py", "def test_a(): pass\n");
    let fixed = place.source();
    build(&place, &fixed, &place.settings()).await.unwrap();
    // The draft is still in use.
    assert!(backend.has_saved(&names[0]).await.unwrap());

    // An interrupt drops the draft.
    drop(settings);
    let again = BuildSettings {
        rebuild: true,
        ..place.settings()
    };
    let environment = build(&place, &fixed, &again).await.unwrap();
    assert!(!backend.has_saved(&names[0]).await.unwrap());
    assert!(backend.has_saved(&environment.saved).await.unwrap());
    assert_eq!(rejected(), [""; 0]);
}
