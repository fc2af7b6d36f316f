use super::*;

#[test]
fn back_link_leads_one_level_up() {
    let id = "0190a1b2c3dabcdefgh";
    let missing = StatusCode::NOT_FOUND;
    for (path, expected_address) in [
        ("/", "/"),
        ("/nothing", "/"),
        ("/runs/x", "/"),
        ("/runs/x/cancel", "/"),
        ("/comparisons/x", "/comparisons"),
        ("/comparisons/new", "/comparisons/new"),
        ("/matrices/x", "/matrices"),
        ("/new", "/new"),
        ("/gradings/x/cancel", "/workers"),
        ("//example.org/x/y", "/"),
    ] {
        assert_eq!(
            BackLink::from(path, missing).address,
            expected_address,
            "{path}"
        );
    }
    let below = |path: &str| BackLink::from(path, StatusCode::CONFLICT).address;
    assert_eq!(below(&format!("/runs/{id}/cancel")), format!("/runs/{id}"));
    let report = format!("/comparisons/{id}/report");
    assert_eq!(below(&report), format!("/comparisons/{id}"));
    let refused = BackLink::from("/new", StatusCode::UNAUTHORIZED);
    assert_eq!(refused.address, LOGIN);
}

#[test]
fn page_texts_omit_api_addresses() {
    assert_eq!(sentence("the run has ended"), "The run has ended.");
    assert_eq!(sentence("Is it there?"), "Is it there?");
    assert_eq!(sentence(""), "");
    assert_eq!(for_people("GET /v1/runs lists all runs"), None);
    let hint = "retry only a cancelled run; POST /v1/runs starts a new one";
    assert_eq!(
        for_people(hint).as_deref(),
        Some("Retry only a cancelled run.")
    );
}
