use super::*;

#[test]
fn pull_requests_are_recognized_in_messages() {
    for (message, number) in [
        ("Merge pull request #14 from a/b\n\nFix #3", Some(14)),
        ("fix(parser): keep it (#8240)\n\ncloses #3", Some(8240)),
        ("Fix parsing of help (#3678) \n", Some(3678)),
        ("Merge branch 'stable'", None),
        ("Fix #12 (see #13)", None),
        ("Fix it\n\nAs said (#13)", None),
    ] {
        assert_eq!(pull_request(message), number, "{message}");
    }
}
