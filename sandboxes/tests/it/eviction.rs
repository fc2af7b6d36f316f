//! Tests that environments respect their size limit and share common parts.

use std::fs::File;
use std::path::PathBuf;

use serde_json::{Value, json};

use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::recipe::Recipe;

use crate::place::{TestDir, recipe, shell};

impl TestDir {
    /// Builds an environment with unique code. Returns the steps too.
    async fn another(&self, name: &str, recipe: &Recipe) -> (Environment, Vec<String>) {
        self.write("name.txt", &name.repeat(1 << 18));
        let (built, steps) = self
            .build_with_steps(&self.source(), recipe, "a test")
            .await;
        (built.unwrap(), steps)
    }

    fn record(&self, name: &str) -> PathBuf {
        let records = self.folder.path().join("cache/environments");
        records.join(format!("{name}.json"))
    }

    fn recorded(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.record(name)).unwrap()).unwrap()
    }

    fn bytes(&self, name: &str) -> u64 {
        self.recorded(name)["bytes"].as_u64().unwrap()
    }

    /// Returns whether the state exists, and checks that its record exists if and only if it does.
    async fn has_state(&self, name: &str) -> bool {
        let is_saved = self.backend.has_saved(name).await.unwrap();
        assert_eq!(self.record(name).exists(), is_saved, "half of {name}");
        is_saved
    }

    /// Returns whether tests can run in it.
    async fn works(&self, environment: &Environment) -> bool {
        let sandbox = self.sandbox(environment).await;
        let python = environment.python_in(&sandbox.info().paths);
        let script = format!(
            "cd / && {} -c 'import thing, extra'; echo $?",
            python.display()
        );
        let output = shell(sandbox.as_ref(), &script).await;
        sandbox.stop().await.unwrap();
        output.ends_with("0\n")
    }
}

/// Returns the names of the layer and of the environment, and releases its lease.
fn names(environment: Environment) -> (String, String) {
    (environment.dependencies.clone(), environment.saved.clone())
}

fn other_requirements() -> Recipe {
    let mut other = recipe();
    other.requirements[1] = "extra".to_owned();
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn least_recently_used_is_evicted() {
    let Some(mut place) = TestDir::new() else {
        return;
    };
    let recipe = recipe();
    place.write("name.txt", &"a".repeat(1 << 18));
    let source = place.source();
    let first = place.build(&source, &recipe).await.unwrap().saved;
    let (second, steps) = place.another("b", &recipe).await;
    let (layer, second) = names(second);
    assert!(
        !steps.iter().any(|step| step.starts_with("remove")),
        "{steps:?}"
    );
    // A second use makes the other one the least recently used.
    assert!(place.build(&source, &recipe).await.unwrap().cached);

    place.cache_size = place.bytes(&layer) + 2 * place.bytes(&first) + (1 << 17);
    let (third, steps) = place.another("c", &recipe).await;
    assert!(place.has_state(&first).await && place.has_state(&third.saved).await);
    assert!(place.has_state(&layer).await && !place.has_state(&second).await);
    let removal = "remove the least recently used environments: 1, ";
    let last = steps.last().unwrap();
    assert!(
        last.starts_with(removal) && last.ends_with(" MiB"),
        "{steps:?}"
    );
    let log = std::fs::read_to_string(&third.log).unwrap();
    assert!(log.contains(&format!("== {last}\n{second}\n")), "{log}");
    assert_eq!(third.notes, Vec::<String>::new());
    assert!(place.works(&third).await);
    // An evicted environment is built again when it is needed.
    let (again, _) = place.another("b", &recipe).await;
    assert!(!again.cached && again.saved == second);
}

#[tokio::test(flavor = "multi_thread")]
async fn used_environment_stays() {
    let Some(mut place) = TestDir::new() else {
        return;
    };
    place.cache_size = 0;
    let (first, _) = place.another("a", &recipe()).await;
    let held = first.clone();
    drop(first);
    let (second, _) = place.another("b", &recipe()).await;
    assert!(place.has_state(&held.saved).await && place.has_state(&second.saved).await);
    assert!(place.works(&held).await);
    // An environment from the cache holds a lease too.
    let again = place.another("a", &recipe()).await.0;
    assert!(again.cached);
    let name = held.saved.clone();
    drop(held);
    let (third, _) = place.another("c", &recipe()).await;
    assert!(place.has_state(&name).await);
    drop(again);
    let (fourth, _) = place.another("d", &recipe()).await;
    assert!(!place.has_state(&name).await);
    for one in [second, third, fourth] {
        assert!(place.has_state(&one.saved).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_requirements_are_evicted() {
    let Some(mut place) = TestDir::new() else {
        return;
    };
    let first = place.another("a", &recipe()).await.0.saved;
    let second = place.another("b", &recipe()).await.0;
    let (layer, second) = names(second);

    // Simulates a build on the layer.
    let used = place.record(&layer).with_extension("used");
    let builder = File::open(&used).unwrap();
    builder.lock_shared().unwrap();
    place.cache_size = 0;
    let (third, _) = place.another("c", &other_requirements()).await;
    assert!(!place.has_state(&first).await && !place.has_state(&second).await);
    assert!(place.has_state(&layer).await);
    assert!(place.has_state(&third.dependencies).await && third.dependencies != layer);

    drop(builder);
    let (_fourth, steps) = place.another("d", &other_requirements()).await;
    assert!(!place.has_state(&layer).await);
    let removal = "remove requirements that no environment uses: ";
    assert!(steps.last().unwrap().starts_with(removal), "{steps:?}");
    let (again, steps) = place.another("a", &recipe()).await;
    assert!(
        steps.contains(&"install the requirements".to_owned()),
        "{steps:?}"
    );
    assert!(place.works(&again).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_backend_is_left_alone() {
    let Some(mut place) = TestDir::new() else {
        return;
    };
    let first = place.another("a", &recipe()).await.0;
    let (layer, first) = names(first);
    for name in [&layer, &first] {
        let mut record = place.recorded(name);
        assert_eq!(record["backend"], "local");
        record["backend"] = json!("docker");
        record["bytes"] = json!(1_u64 << 40);
        std::fs::write(place.record(name), record.to_string()).unwrap();
    }
    // Within the limit, the other backend's state is not counted.
    place.cache_size = 1 << 30;
    let second = place.another("b", &other_requirements()).await.0.saved;
    let third = place.another("c", &other_requirements()).await.0.saved;
    assert!(place.has_state(&second).await && place.has_state(&third).await);
    // Beyond the limit, the other backend's state is not removed.
    place.cache_size = 0;
    place.another("d", &other_requirements()).await;
    assert!(!place.has_state(&second).await && !place.has_state(&third).await);
    assert!(place.has_state(&first).await && place.has_state(&layer).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_removal_is_finished() {
    let Some(place) = TestDir::new() else { return };
    let first = place.another("a", &recipe()).await.0.saved;
    let second = place.another("b", &recipe()).await.0.saved;
    for name in [&first, &second] {
        let removed_record = place.record(name).with_extension("gone");
        std::fs::rename(place.record(name), removed_record).unwrap();
    }
    // One of them was built again in the meantime.
    let again = place.another("a", &recipe()).await.0;
    assert!(!again.cached && again.saved == first);
    place.another("c", &recipe()).await;
    assert!(place.has_state(&first).await && !place.has_state(&second).await);
    for name in [&first, &second] {
        assert!(!place.record(name).with_extension("gone").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_shares_its_requirements() {
    let Some(place) = TestDir::new() else { return };
    let much = format!("text = '{}'\n", "x".repeat(8 << 20));
    place.wheel("extra", "1.5", &much);
    let (first, _) = place.another("a", &recipe()).await;
    let (own, layer) = (first.bytes, place.bytes(&first.dependencies));
    assert!(layer > 8 << 20 && own < layer / 4, "{own} bytes on {layer}");
    // The environment works without the separate layer.
    place
        .backend
        .remove_saved(&first.dependencies)
        .await
        .unwrap();
    assert!(place.works(&first).await);
    let sandbox = place.sandbox(&first).await;
    let python = first.python_in(&sandbox.info().paths);
    let script = format!(
        "cd / && {} -c 'import extra; print(len(extra.text))'",
        python.display()
    );
    assert_eq!(
        shell(sandbox.as_ref(), &script).await,
        format!("{}\n", 8 << 20)
    );
    sandbox.stop().await.unwrap();
}
