use super::*;

fn issue(number: Option<u64>, title: &str) -> Issue {
    Issue {
        title: title.to_owned(),
        number,
        ..Issue::default()
    }
}

#[test]
fn branch_is_named_after_issue() {
    for (issue, expected) in [
        (issue(Some(12), "It fails"), "testwright/issue-12"),
        (
            issue(None, "It's ~broken: again!"),
            "testwright/it-s-broken-again",
        ),
        (issue(None, "壊れた"), "testwright/test"),
    ] {
        assert_eq!(default_branch_name(&issue), expected);
    }
}

#[test]
fn issue_of_other_repository_is_linked_by_url() {
    let link = |number, url, repository| issue_link(&issue(number, ""), url, repository, None);
    let url = "https://github.com/acme/slugs/issues/12";
    assert_eq!(
        link(Some(12), Some(url), "Acme/slugs").as_deref(),
        Some("#12")
    );
    assert_eq!(link(Some(12), Some(url), "ann/slugs").as_deref(), Some(url));
    assert_eq!(link(None, Some(url), "acme/slugs").as_deref(), Some(url));
    let gitlab = "https://gitlab.com/acme/slugs/-/issues/12";
    assert_eq!(
        link(Some(12), Some(gitlab), "acme/slugs").as_deref(),
        Some(gitlab)
    );
    assert_eq!(link(None, None, "acme/slugs"), None);
    assert_eq!(link(None, Some("https://x/ @all"), "acme/slugs"), None);
}

#[test]
fn cut_title_follows_link() {
    let text = |link: Option<&str>, title| issue_with_title(link.map(str::to_owned), title);
    assert_eq!(text(Some("#1"), None).as_deref(), Some("#1"));
    assert_eq!(text(Some("#1"), Some("a")).as_deref(), Some("#1: `a`"));
    assert_eq!(text(None, Some("a")).as_deref(), Some("the issue `a`"));
    assert_eq!(text(None, None), None);
}
