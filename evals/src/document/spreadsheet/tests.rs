use super::*;

#[test]
fn formulas_become_text() {
    for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
        assert_eq!(text_cell(formula), format!("'{formula}"));
    }
    for text in ["", "a=1", "libro@m", "'=1"] {
        assert_eq!(text_cell(text), text);
    }
}
