//! Environments take no more room than they may, and share what they have in common.

use std::fs::File;
use std::path::PathBuf;

use serde_json::{Value, json};

use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::recipe::Recipe;

use crate::place::{Place, recipe, shell};

impl Place {
    /// Builds an environment of code that no other has; with the steps that were taken.
    async fn another(&self, name: &str, recipe: &Recipe) -> (Environment, Vec<String>) {
        self.write("name.txt", &name.repeat(1 << 18));
        let (built, steps) = self.tell(&self.source(), recipe, "a test").await;
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

    /// Both or neither: the record and the state.
    async fn keeps(&self, name: &str) -> bool {
        let kept = self.backend.has_saved(name).await.unwrap();
        assert_eq!(self.record(name).exists(), kept, "half of {name}");
        kept
    }

    /// Tests can run in it.
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

/// Of the layer and of the environment, which is not held any longer.
fn names(environment: Environment) -> (String, String) {
    (environment.dependencies.clone(), environment.saved.clone())
}

fn other_requirements() -> Recipe {
    let mut other = recipe();
    other.requirements[1] = "extra".to_owned();
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_used_longest_ago_goes_for_what_is_new() {
    let Some(mut place) = Place::new() else {
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
    // Used once more, so that it is the other that was used longest ago.
    assert!(place.build(&source, &recipe).await.unwrap().cached);

    place.cache_size = place.bytes(&layer) + 2 * place.bytes(&first) + (1 << 17);
    let (third, steps) = place.another("c", &recipe).await;
    assert!(place.keeps(&first).await && place.keeps(&third.saved).await);
    assert!(place.keeps(&layer).await && !place.keeps(&second).await);
    let removal = "remove environments that were used longest ago: 1, ";
    let last = steps.last().unwrap();
    assert!(
        last.starts_with(removal) && last.ends_with(" MiB"),
        "{steps:?}"
    );
    let log = std::fs::read_to_string(&third.log).unwrap();
    assert!(log.contains(&format!("== {last}\n{second}\n")), "{log}");
    assert_eq!(third.notes, Vec::<String>::new());
    assert!(place.works(&third).await);
    // Gone is gone, and comes back when it is wanted.
    let (again, _) = place.another("b", &recipe).await;
    assert!(!again.cached && again.saved == second);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_use_stays_until_it_is_not() {
    let Some(mut place) = Place::new() else {
        return;
    };
    place.cache_size = 0;
    let (first, _) = place.another("a", &recipe()).await;
    let held = first.clone();
    drop(first);
    let (second, _) = place.another("b", &recipe()).await;
    assert!(place.keeps(&held.saved).await && place.keeps(&second.saved).await);
    assert!(place.works(&held).await);
    // From the cache it is held as well.
    let again = place.another("a", &recipe()).await.0;
    assert!(again.cached);
    let name = held.saved.clone();
    drop(held);
    let (third, _) = place.another("c", &recipe()).await;
    assert!(place.keeps(&name).await);
    drop(again);
    let (fourth, _) = place.another("d", &recipe()).await;
    assert!(!place.keeps(&name).await);
    for one in [second, third, fourth] {
        assert!(place.keeps(&one.saved).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requirements_go_with_the_last_environment_on_them() {
    let Some(mut place) = Place::new() else {
        return;
    };
    let first = place.another("a", &recipe()).await.0.saved;
    let second = place.another("b", &recipe()).await.0;
    let (layer, second) = names(second);

    // Somebody builds on them.
    let used = place.record(&layer).with_extension("used");
    let builder = File::open(&used).unwrap();
    builder.lock_shared().unwrap();
    place.cache_size = 0;
    let (third, _) = place.another("c", &other_requirements()).await;
    assert!(!place.keeps(&first).await && !place.keeps(&second).await);
    assert!(place.keeps(&layer).await);
    assert!(place.keeps(&third.dependencies).await && third.dependencies != layer);

    drop(builder);
    let (_fourth, steps) = place.another("d", &other_requirements()).await;
    assert!(!place.keeps(&layer).await);
    let removal = "remove requirements that no environment stands on: ";
    assert!(steps.last().unwrap().starts_with(removal), "{steps:?}");
    let (again, steps) = place.another("a", &recipe()).await;
    assert!(
        steps.contains(&"install the requirements".to_owned()),
        "{steps:?}"
    );
    assert!(place.works(&again).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_backend_keeps_is_left_alone() {
    let Some(mut place) = Place::new() else {
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
    // Not counted: there is room.
    place.cache_size = 1 << 30;
    let second = place.another("b", &other_requirements()).await.0.saved;
    let third = place.another("c", &other_requirements()).await.0.saved;
    assert!(place.keeps(&second).await && place.keeps(&third).await);
    // Not removed: there is none.
    place.cache_size = 0;
    place.another("d", &other_requirements()).await;
    assert!(!place.keeps(&second).await && !place.keeps(&third).await);
    assert!(place.keeps(&first).await && place.keeps(&layer).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_was_cut_short_is_finished() {
    let Some(place) = Place::new() else { return };
    let first = place.another("a", &recipe()).await.0.saved;
    let second = place.another("b", &recipe()).await.0.saved;
    for name in [&first, &second] {
        let gone = place.record(name).with_extension("gone");
        std::fs::rename(place.record(name), gone).unwrap();
    }
    // One of them was built again since.
    let again = place.another("a", &recipe()).await.0;
    assert!(!again.cached && again.saved == first);
    place.another("c", &recipe()).await;
    assert!(place.keeps(&first).await && !place.keeps(&second).await);
    for name in [&first, &second] {
        assert!(!place.record(name).with_extension("gone").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_shares_its_requirements() {
    let Some(place) = Place::new() else { return };
    let much = format!("text = '{}'\n", "x".repeat(8 << 20));
    place.wheel("extra", "1.5", &much);
    let (first, _) = place.another("a", &recipe()).await;
    let (own, layer) = (first.bytes, place.bytes(&first.dependencies));
    assert!(layer > 8 << 20 && own < layer / 4, "{own} bytes on {layer}");
    // It stands without them.
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
