//! Cells of CSV tables that people may open in a spreadsheet.

use csv::Writer;

/// Characters with which spreadsheets start a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns a text as a cell that no spreadsheet runs as a formula: an apostrophe precedes it if it looks like one. Names
/// and reasons come from untrusted files.
pub fn text_cell(text: &str) -> String {
    match text.starts_with(FORMULA_STARTS) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

/// Renders a CSV table. Without rows, it has only its head.
///
/// # Errors
///
/// Fails if a row has more or fewer cells than the head.
pub fn csv_table<Row>(
    head: impl IntoIterator<Item: AsRef<[u8]>>,
    rows: impl IntoIterator<Item = Row>,
) -> csv::Result<Vec<u8>>
where
    Row: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut table = Writer::from_writer(Vec::new());
    table.write_record(head)?;
    for row in rows {
        table.write_record(row)?;
    }
    let bytes = table.into_inner();
    bytes.map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests;
