use super::*;

#[test]
fn narrow_tables_have_fewer_columns() {
    assert_eq!(fitting_cells(7, 20, 14, None), 7);
    assert_eq!(fitting_cells(7, 20, 14, Some(80)), 3);
    assert_eq!(fitting_cells(7, 20, 14, Some(10)), 1);
    assert_eq!(fitting_cells(7, 20, 14, Some(500)), 7);
}
