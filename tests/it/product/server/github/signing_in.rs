//! Authentication at GitHub, and the errors if it is not configured.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::api::GitHubApi;
use super::hub::{Hub, PATH, command, comment, labelled};
use crate::product::server::{ServerProcess, databases};
use crate::support::program::TestDir;

#[test]
fn app_signs_in_once_per_installation() {
    let key = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/product/server/github/app_key.pem"
    );
    let variables = [
        ("TESTWRIGHT_GITHUB_APP_ID", "4242"),
        ("TESTWRIGHT_GITHUB_APP_KEY_FILE", key),
        ("GITHUB_TOKEN", ""),
    ];
    let hub = Hub::with(&databases::embedded(), &variables);
    let mut first = labelled();
    first["installation"] = json!({"id": 99, "node_id": "x"});
    let mut second = comment("/testwright");
    second["installation"] = first["installation"].clone();
    hub.deliver("issues", "d-1", &first);
    hub.deliver("issue_comment", "d-2", &second);
    hub.api.wait_for_comments(7, 2);
    let logins = hub.api.state().logins.clone();
    let (own, others): (Vec<_>, Vec<_>) = logins
        .into_iter()
        .partition(|(path, _)| path.ends_with("/access_tokens"));
    assert!(
        others
            .iter()
            .all(|(_, login)| login == "Bearer ghs_of_the_installation")
    );
    let [(_, login)] = &own[..] else {
        panic!("{own:?}")
    };
    let claims = verified(login.strip_prefix("Bearer ").unwrap(), key);
    assert_eq!(claims["iss"], "4242");
    let (from, until) = (
        claims["iat"].as_i64().unwrap(),
        claims["exp"].as_i64().unwrap(),
    );
    assert!((1..=600).contains(&(until - from)), "{claims}");
}

/// Verifies the signature of a token (RFC 7519) and returns its claims.
fn verified(token: &str, key: &str) -> Value {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
    let pem = std::fs::read_to_string(key).unwrap();
    let text: String = pem
        .lines()
        .filter(|line| !line.starts_with("---"))
        .collect();
    let pair = RsaKeyPair::from_der(&BASE64_STANDARD.decode(text).unwrap()).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public());
    public.verify(signed.as_bytes(), &signature).unwrap();
    let claims = signed.split_once('.').unwrap().1;
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

#[test]
fn webhooks_need_secret_and_login() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let refused = daemon.client.send("POST", PATH, &[], "{}");
    assert_eq!(refused.status, 404);
    assert!(
        refused.body.contains("GITHUB_WEBHOOK_SECRET"),
        "{refused:?}"
    );
    drop(daemon);
    let api = GitHubApi::start();
    for (variables, message) in [
        (
            vec![("GITHUB_TOKEN", "")],
            "no credentials for posting answers",
        ),
        (
            vec![("GITHUB_WEBHOOK_SECRET", "short")],
            "fewer than 16 characters",
        ),
        (
            vec![("TESTWRIGHT_GITHUB_APP_ID", "1")],
            "private key is missing",
        ),
        (
            vec![("TESTWRIGHT_GITHUB_BASE_URL", "http://192.0.2.1/api")],
            "sent unencrypted",
        ),
    ] {
        let output = command(&place, &api, &variables).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
}
