//! Tests of lying package indexes: the host never requests private addresses for them, and files that were tampered
//! with are never used.

use std::sync::{Arc, Mutex};

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{BuildSettings, Environment, prepare};
use testwright_sandboxes::recipe::Recipe;

use super::network::recipe_here;
use crate::index_server::{Answer, Server, wheels};
use crate::place::{TestDir, shell};

/// Builds with this index in front of the fixture's own.
async fn build(place: &TestDir, index: &Server) -> Result<Environment, SandboxError> {
    build_with(place, index, recipe_here()).await
}

async fn build_with(
    place: &TestDir,
    index: &Server,
    recipe: Recipe,
) -> Result<Environment, SandboxError> {
    let settings = BuildSettings {
        index_url: Some(format!("http://127.0.0.1:{}/simple", index.port)),
        ..place.settings()
    };
    let source = place.source();
    let backend = place.backend.as_ref();
    prepare(backend, &source, &recipe, "a test", &settings, &|_| ()).await
}

/// The page of `extra` lists a file elsewhere, or a redirect leads there.
#[tokio::test(flavor = "multi_thread")]
async fn index_cannot_reach_private_addresses() {
    let Some(place) = TestDir::new() else { return };
    let secret = Server::start(|_| Answer::text("the host's secret"));
    let port = secret.port;
    for (file, redirect) in [
        (
            format!("http://127.0.0.1:{port}/extra-1.0-py3-none-any.whl"),
            None,
        ),
        (
            format!("http://localhost:{port}/extra-1.0-py3-none-any.whl"),
            None,
        ),
        (
            format!("http://[::ffff:127.0.0.1]:{port}/extra-1.0-py3-none-any.whl"),
            None,
        ),
        (
            format!("http://2130706433:{port}/extra-1.0-py3-none-any.whl"),
            None,
        ),
        ("http://169.254.169.254/latest/meta-data".to_owned(), None),
        ("file:///etc/passwd".to_owned(), None),
        (
            "../../files/moved".to_owned(),
            Some(format!(
                "http://127.0.0.1:{port}/extra-1.0-py3-none-any.whl"
            )),
        ),
    ] {
        let wheels_folder = place.wheels();
        let (file_url, to) = (file.clone(), redirect.clone());
        let index = Server::start(move |request| {
            if request.path == "/files/moved" {
                return Answer::to(to.as_deref().unwrap_or_default());
            }
            if request.path != "/simple/extra/" {
                return wheels(&wheels_folder, request);
            }
            let page = serde_json::json!({"meta": {"api-version": "1.1"}, "name": "extra", "files": [
                {"filename": "extra-1.0-py3-none-any.whl", "url": file_url, "hashes": {}}]});
            Answer::new(
                "200 OK",
                "application/vnd.pypi.simple.v1+json",
                page.to_string(),
            )
        });
        let error = build(&place, &index).await.unwrap_err();
        assert_eq!(secret.requests(), [], "{file} {redirect:?}");
        let refused = error.message.contains("was refused")
            || error.message.contains("is not the URL of a file");
        assert!(refused, "{file} {redirect:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_with_wrong_digest_is_rejected() {
    let Some(place) = TestDir::new() else { return };
    let folder = place.wheels();
    let index = Server::start(move |request| {
        let mut answer = wheels(&folder, request);
        if request.path.starts_with("/files/extra-1.0") {
            // A wheel may have trailing bytes.
            answer.body.extend_from_slice(b"tampered");
        }
        answer
    });
    let error = build(&place, &index).await.unwrap_err();
    assert!(error.message.contains("its sha256 is"), "{error}");
    let entries = std::fs::read_dir(place.folder.path().join("cache/downloads/files")).unwrap();
    for entry in entries {
        let content = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!content.ends_with(b"tampered"));
    }
}

/// A failed build must not keep its downloads.
#[tokio::test(flavor = "multi_thread")]
async fn failed_build_respects_download_limit() {
    let Some(mut place) = TestDir::new() else {
        return;
    };
    place.cache_size = 100 << 10;
    let mut recipe = recipe_here();
    recipe.before_install.push("exit 3".to_owned());
    let error = place.build(&place.source(), &recipe).await.unwrap_err();
    assert!(error.message.contains("exit 3"), "{error}");
    assert!(!place.index.requests().is_empty());
    let downloads = place.folder.path().join("cache/downloads");
    let folders = ["files", "pages", "aside"].map(|name| downloads.join(name));
    let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    // The limit is a tenth of the size, in blocks of 4 KiB.
    assert!(files.len() <= 2, "{files:?}");
}

/// Offline builds need neither the index nor its password. Files that were changed on disk are not served.
#[tokio::test(flavor = "multi_thread")]
async fn cached_files_are_verified_offline() {
    let Some(place) = TestDir::new() else { return };
    let first = place.build(&place.source(), &recipe_here()).await.unwrap();
    assert!(first.packages.contains(&"extra==1.0".to_owned()));
    let before = place.index.requests().len();
    let offline = BuildSettings {
        offline: true,
        rebuild: true,
        ..place.settings()
    };
    let source = place.source();
    let recipe = recipe_here();
    let backend = place.backend.as_ref();
    let again = prepare(backend, &source, &recipe, "a test", &offline, &|_| ()).await;
    assert!(!again.unwrap().cached);
    assert_eq!(place.index.requests().len(), before);

    let files = place.folder.path().join("cache/downloads/files");
    for entry in std::fs::read_dir(files).unwrap() {
        let path = entry.unwrap().path();
        let mut content = std::fs::read(&path).unwrap();
        content.extend_from_slice(b"changed");
        std::fs::write(path, content).unwrap();
    }
    let error = prepare(backend, &source, &recipe, "a test", &offline, &|_| ())
        .await
        .unwrap_err();
    assert!(
        error.message.contains("install the requirements"),
        "{error}"
    );
    // The wrong file was removed, so the next build fetches it from the index.
    let online = BuildSettings {
        rebuild: true,
        ..place.settings()
    };
    let mended = prepare(backend, &source, &recipe, "a test", &online, &|_| ()).await;
    assert!(mended.unwrap().packages.contains(&"extra==1.0".to_owned()));

    let mut missing = recipe_here();
    missing.requirements.push("nowhere".to_owned());
    let error = prepare(backend, &source, &missing, "a test", &offline, &|_| ())
        .await
        .unwrap_err();
    assert!(
        error.hint.unwrap().contains("without build.offline"),
        "{}",
        error.message
    );
}

/// This index is plain HTML, with URLs relative to a base and its own login. It serves an old pip as well as uv.
#[tokio::test(flavor = "multi_thread")]
async fn html_index_works() {
    let Some(place) = TestDir::new() else { return };
    let (folder, logins) = (place.wheels(), Arc::new(Mutex::new(Vec::new())));
    let seen = logins.clone();
    let index = Server::start(move |request| {
        seen.lock().unwrap().push(request.authorization.clone());
        let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let ["simple", project] = parts.as_slice() else {
            return wheels(&folder, request);
        };
        let names = std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().file_name());
        let links: String = names
            .map(|name| name.into_string().unwrap())
            .filter(|name| name.starts_with(&format!("{project}-")))
            .map(|name| {
                format!("<a href='{name}' data-upload-time='2020-01-01T00:00:00Z'>{name}</a>")
            })
            .collect();
        if links.is_empty() {
            return Answer::not_found();
        }
        Answer::new(
            "200 OK",
            "text/html",
            format!("<base href='/files/'>{links}"),
        )
    });
    // The pages have upload dates too.
    let dated = Recipe {
        exclude_newer: Some("2021-01-01".to_owned()),
        ..recipe_here()
    };
    let built = build_with(&place, &index, dated).await.unwrap();
    assert!(built.packages.contains(&"extra==1.0".to_owned()));
    let sandbox = place.sandbox(&built).await;
    let python = built.python_in(&sandbox.info().paths).display().to_string();
    let output = shell(
        sandbox.as_ref(),
        &format!("{python} -c 'import extra; print(1)'"),
    )
    .await;
    assert_eq!(output, "1\n");
    sandbox.stop().await.unwrap();
    assert!(!logins.lock().unwrap().is_empty());
}
