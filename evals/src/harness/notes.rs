//! The notes of a result, within bounds.

use crate::foreign_text::excerpt;

/// Notes of a result.
const NOTES: usize = 100;
/// Characters of one note.
pub(super) const NOTE: usize = 2_000;

/// Notes quote what a prediction names and prints.
pub(super) fn bound(notes: &mut Vec<String>) {
    let more = notes.len().saturating_sub(NOTES);
    notes.truncate(NOTES);
    for note in notes.iter_mut() {
        *note = excerpt(note, NOTE);
    }
    if more > 0 {
        notes.push(format!("and {more} more"));
    }
}
