//! Rows of a dataset with malicious values.

use testwright_evals::dataset::Selection;

use super::*;

#[test]
fn repository_must_be_owner_and_name() {
    let folder = Folder::new();
    for repo in [
        "../../x",
        "../x",
        "x/..",
        "./x",
        "/etc",
        "/etc/passwd",
        "a/b/c",
        "a/../../../../home/user/private",
        "-oProxyCommand=x/y",
        "--upload-pack=x/y",
        "a/-b",
        "a",
        "a/",
        "/b",
        "a b/c",
        "a/b?c",
        "a/b#c",
        "a/b%2e",
        "a:b/c",
        "a@b/c",
        "a\\b/c",
        "{name}/b",
        "https://example.org/a",
        "a/b\0",
        "a/b\n",
        "a/b\u{1b}[31m",
        "ä/b",
    ] {
        let refused = folder.dataset(&[with("repo", repo)]);
        let message = refused.expect_err(repo);
        assert!(message.contains("line 1: "), "{message}");
        assert!(message.contains("`repo`"), "{message}");
        is_fit_to_be_shown(&message);
    }
    for repo in [
        "psf/requests",
        "x/.github",
        "a_b/c.d",
        "scikit-learn/scikit-learn",
    ] {
        assert!(folder.dataset(&[with("repo", repo)]).is_ok(), "{repo}");
    }
}

#[test]
fn base_commit_must_be_a_hash() {
    let folder = Folder::new();
    for commit in [
        "HEAD",
        "main",
        "v1.0",
        "refs/heads/main",
        "HEAD~1",
        "0123abc^{/secret}",
        "0123abc:secret",
        ":/secret",
        "@{-1}",
        "-h",
        "--upload-pack=touch /tmp/x",
        "0123abc\n",
        "0123abc\0",
        "012",
        "0123ABg",
        "0123abc 0123abc",
        &"a".repeat(65),
    ] {
        let message = folder
            .dataset(&[with("base_commit", commit)])
            .expect_err(commit);
        assert!(message.contains("`base_commit`"), "{message}");
        is_fit_to_be_shown(&message);
    }
    for commit in ["0123abc", &"a".repeat(40), &"0".repeat(64)] {
        assert!(folder.dataset(&[with("base_commit", commit)]).is_ok());
    }
}

#[test]
fn invisible_characters_in_ids_are_refused() {
    let folder = Folder::new();
    let long = "x".repeat(1 << 20);
    let unseen = UNSEEN.map(|unseen| format!("acme__{unseen}slugs-1"));
    for id in unseen.iter().chain([&long]) {
        let message = folder.dataset(&[instance(id)]).unwrap_err();
        assert!(message.contains("`instance_id`"), "{message}");
        is_fit_to_be_shown(&message);
        // The message must stay displayable if the record has other problems, too.
        let mut lacking = instance(id);
        lacking["repo"] = Value::Null;
        is_fit_to_be_shown(&folder.dataset(&[lacking]).unwrap_err());
        is_fit_to_be_shown(&folder.dataset(&[instance(id), instance(id)]).unwrap_err());
    }
    for id in [
        "acme__slugs-1",
        "oauthlib__oauthlib.1fd52536.combine_file__09vlzwgc",
        "a/b:pr-1",
        "ä-1",
    ] {
        assert!(folder.dataset(&[instance(id)]).is_ok(), "{id}");
    }
}

#[test]
fn selection_errors_are_displayable() {
    let folder = Folder::new();
    let dataset = folder.dataset(&[instance("acme__slugs-1")]).unwrap();
    let message = dataset
        .choose(&Selection {
            instances: Some("a\u{1b}[2Jb".to_owned()),
            ..Selection::default()
        })
        .unwrap_err()
        .to_string();
    is_fit_to_be_shown(&message);
}

#[test]
fn test_lists_are_limited() {
    let folder = Folder::new();
    let many: Vec<String> = (0..100_001).map(|n| format!("t.py::test_{n}")).collect();
    let wide = "t.py::test_".to_owned() + &"x".repeat(1 << 20);
    for (list, what) in [
        (json!(many), "more than"),
        (json!(json!(many).to_string()), "more than"),
        (json!([wide.clone()]), "longer than"),
    ] {
        let message = folder.dataset(&[with("FAIL_TO_PASS", list)]).unwrap_err();
        assert!(message.contains(what), "{message}");
        is_fit_to_be_shown(&message);
    }
    let message = folder
        .dataset(&[with("PASS_TO_PASS", json!([wide]))])
        .unwrap_err();
    assert!(message.contains("longer than"), "{message}");
    let few = json!(many[..20_000]);
    assert!(folder.dataset(&[with("PASS_TO_PASS", few)]).is_ok());
}
