//! Tests of environments that machines share: two caches, and a store that both can reach.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use testwright_sandboxes::environment::{BuildClaim, SharedEnvironments};
use testwright_sandboxes::error::{ErrorKind, SandboxError};
use testwright_sandboxes::local::Isolation;

use crate::place::{TestDir, recipe, shell};

const FETCHED: &str = "unpack the environment of another machine";
const REQUIREMENTS: &str = "install the requirements";
const PACKAGE: &str = "install the package";

/// A store in a folder, with files `KEY.record` and `KEY.archive`.
#[derive(Debug)]
struct SharedFolder {
    folder: PathBuf,
    claimed: Arc<Mutex<BTreeSet<String>>>,
}

struct Claim {
    key: String,
    claimed: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claimed.lock().unwrap().remove(&self.key);
    }
}

impl SharedFolder {
    fn new(folder: &Path) -> Arc<SharedFolder> {
        Arc::new(SharedFolder {
            folder: folder.to_owned(),
            claimed: Arc::default(),
        })
    }

    fn path(&self, key: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{key}.{ending}"))
    }

    /// Returns the names of all files, without the machine's part.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.folder)
            .unwrap()
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let (name, _) = name.strip_suffix(".record")?.rsplit_once('-')?;
                Some(name.to_owned())
            })
            .collect();
        names.sort();
        names
    }
}

#[async_trait]
impl SharedEnvironments for SharedFolder {
    async fn fetch(&self, key: &str, archive: &Path) -> Result<Option<String>, SandboxError> {
        let Ok(record) = std::fs::read_to_string(self.path(key, "record")) else {
            return Ok(None);
        };
        std::fs::copy(self.path(key, "archive"), archive)?;
        Ok(Some(record))
    }

    async fn publish(&self, key: &str, record: &str, archive: &Path) -> Result<(), SandboxError> {
        std::fs::copy(archive, self.path(key, "archive"))?;
        std::fs::write(self.path(key, "record"), record)?;
        Ok(())
    }

    async fn claim(&self, key: &str) -> Result<Option<BuildClaim>, SandboxError> {
        let is_free = self.claimed.lock().unwrap().insert(key.to_owned());
        Ok(is_free.then(|| {
            Box::new(Claim {
                key: key.to_owned(),
                claimed: self.claimed.clone(),
            }) as BuildClaim
        }))
    }
}

/// Returns fixtures for two machines.
fn places(force: Isolation, store: &Arc<SharedFolder>) -> Option<[TestDir; 2]> {
    let place = || {
        let mut place = TestDir::with_isolation(Some(force))?;
        place.shared = Some(store.clone());
        Some(place)
    };
    Some([place()?, place()?])
}

async fn works(place: &TestDir, environment: &testwright_sandboxes::environment::Environment) {
    let sandbox = place.sandbox(environment).await;
    let python = environment.python_in(&sandbox.info().paths);
    let script = format!(
        "cd / && {} -c 'import thing, extra; print(thing.value)' && cat \"$OLDPWD/tracked.txt\"",
        python.display()
    );
    let printed = shell(sandbox.as_ref(), &script).await;
    sandbox.stop().await.unwrap();
    assert_eq!(printed, "1\nas committed");
}

async fn is_built_by_one_and_fetched_by_the_other(force: Isolation) {
    let folder = tempfile::tempdir().unwrap();
    let store = SharedFolder::new(folder.path());
    let Some([one, other]) = places(force, &store) else {
        return;
    };
    let (source, recipe) = (one.source(), recipe());
    let (built, steps) = one.build_with_steps(&source, &recipe, "a test").await;
    let built = built.unwrap();
    assert!(steps.contains(&PACKAGE.to_owned()), "{steps:?}");
    assert!(!built.cached && !built.fetched);
    assert_eq!(
        store.names(),
        [built.dependencies.as_str(), built.saved.as_str()]
    );

    let (fetched, steps) = other.build_with_steps(&source, &recipe, "another").await;
    let fetched = fetched.unwrap();
    assert_eq!(steps, [FETCHED]);
    assert!(fetched.fetched && fetched.cached);
    assert_eq!(
        (fetched.saved.as_str(), fetched.origin.as_str()),
        (built.saved.as_str(), "another")
    );
    assert_eq!(fetched.packages, built.packages);
    let log = std::fs::read_to_string(&fetched.log).unwrap();
    assert!(log.contains("was fetched from the artifact store"), "{log}");
    works(&other, &fetched).await;
    // The fetched environment is now in the cache.
    let (again, steps) = other.build_with_steps(&source, &recipe, "another").await;
    assert!(steps.is_empty(), "{steps:?}");
    assert!(!again.unwrap().fetched);

    // Other code with the same requirements starts from their layer, which is fetched too.
    one.write("thing/more.py", "");
    let (more, steps) = other
        .build_with_steps(&one.source(), &recipe, "a test")
        .await;
    works(&other, &more.unwrap()).await;
    assert!(steps.contains(&FETCHED.to_owned()), "{steps:?}");
    assert!(!steps.contains(&REQUIREMENTS.to_owned()), "{steps:?}");
    assert!(steps.contains(&PACKAGE.to_owned()), "{steps:?}");
    assert_eq!(store.names().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_is_built_once_and_fetched() {
    is_built_by_one_and_fetched_by_the_other(Isolation::Namespaces).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_place_environment_is_fetched() {
    is_built_by_one_and_fetched_by_the_other(Isolation::Landlock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_machines_build_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = SharedFolder::new(folder.path());
    let Some([one, other]) = places(Isolation::Namespaces, &store) else {
        return;
    };
    let (source, recipe) = (one.source(), recipe());
    let (first, second) = tokio::join!(
        one.build_with_steps(&source, &recipe, "a test"),
        other.build_with_steps(&source, &recipe, "a test"),
    );
    let builds = |steps: &[String]| steps.iter().filter(|step| *step == PACKAGE).count();
    assert_eq!(builds(&first.1) + builds(&second.1), 1);
    works(&one, &first.0.unwrap()).await;
    works(&other, &second.0.unwrap()).await;
    assert!(store.claimed.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_archive_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let store = SharedFolder::new(folder.path());
    let Some([one, other]) = places(Isolation::Namespaces, &store) else {
        return;
    };
    let (source, recipe) = (one.source(), recipe());
    one.build(&source, &recipe).await.unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "archive") {
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        }
    }
    let (built, steps) = other.build_with_steps(&source, &recipe, "a test").await;
    let built = built.unwrap();
    assert!(!built.fetched && steps.contains(&REQUIREMENTS.to_owned()));
    works(&other, &built).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_leaving_its_folder_is_rejected() {
    let Some(place) = TestDir::new() else { return };
    let aside = tempfile::tempdir().unwrap();
    let archive = aside.path().join("archive");
    let state = serde_json::json!({ "python": null, "built": {
        "workspace": "/testbed", "environment": "/opt/testwright/env", "store": "/opt/testwright", "temporary": "/tmp",
    }});
    let mut builder = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
    let mut add = |path: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, path, content).unwrap();
    };
    add("state.json", state.to_string().as_bytes());
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder
        .append_link(&mut link, "workspace", aside.path())
        .unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(4);
    let escaping = "workspace/planted";
    builder
        .append_data(&mut header, escaping, &b"evil"[..])
        .unwrap();
    let packed = builder.into_inner().unwrap().finish().unwrap();
    std::fs::write(&archive, packed).unwrap();
    let refused = place.backend.import_saved("env-x", &archive).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::System);
    assert!(!aside.path().join("planted").exists());
    assert!(!place.backend.has_saved("env-x").await.unwrap());
}
