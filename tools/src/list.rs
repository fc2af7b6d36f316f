//! The list of tools, in the order in which a model sees them.

use crate::tool::AnyTool;
use crate::tools::{
    create_file, edit_lines, find_file, insert_function, open_file, outline, read_function, revert,
    rewrite_function, search, show_patch,
};

static ALL: &[&dyn AnyTool] = &[
    &search::Search,
    &find_file::FindFile,
    &open_file::OpenFile,
    &outline::Outline,
    &read_function::ReadFunction,
    &insert_function::InsertFunction,
    &rewrite_function::RewriteFunction,
    &create_file::CreateFile,
    &edit_lines::EditLines,
    &revert::Revert,
    &show_patch::ShowPatch,
];

/// Every tool, those of the host included.
pub fn all() -> Vec<&'static dyn AnyTool> {
    ALL.to_vec()
}
