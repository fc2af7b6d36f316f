//! Tests of links in tables.

use super::*;

#[test]
fn links_stay_near_the_page() {
    let link = |path: &str| href(path);
    assert_eq!(
        link("logs/a b/\"x\".txt"),
        Some("./logs/a%20b/%22x%22.txt".to_owned())
    );
    assert_eq!(
        link("javascript:alert(1)"),
        Some("./javascript%3Aalert%281%29".to_owned())
    );
    assert_eq!(link("../b/logs/x"), Some("./../b/logs/x".to_owned()));
    for path in ["/etc/passwd", "", "..", "logs/../../x"] {
        assert_eq!(link(path), None, "{path}");
    }
}
