use super::*;

#[test]
fn svg_texts_are_escaped() {
    let mut svg = Svg::new(10.0);
    svg.text("t", Anchor::Start, (0.0, 0.0), "</text><script>\u{0}");
    svg.dot("d", (1.0, 1.0), "</title>");
    let svg = svg.finish(5.0, "\" onload=\"x");
    assert!(
        svg.contains("&lt;/text&gt;&lt;script&gt;\\u{0}</text>"),
        "{svg}"
    );
    assert!(svg.contains("<title>&lt;/title&gt;</title>"), "{svg}");
    assert!(
        svg.contains("aria-label=\"&quot; onload=&quot;x\""),
        "{svg}"
    );
}
