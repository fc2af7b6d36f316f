//! The list of tools, in the order in which a model sees them.

use crate::tool::AnyTool;
use crate::tools::{
    create_file, describe, edit_lines, find_file, handshake, insert_function, open_file, outline,
    read_function, revert, rewrite_function, run_pytest, run_python, search, shell, show_patch,
    state, submit, try_fix,
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
    &run_pytest::RunPytest,
    &run_python::RunPython,
    &shell::Shell,
    &try_fix::TryFix,
    &show_patch::ShowPatch,
    &submit::Submit,
    &handshake::Handshake,
    &describe::Describe,
    &state::Changes,
    &state::Restore,
];

/// Every tool, those of the host included.
pub fn all() -> Vec<&'static dyn AnyTool> {
    ALL.to_vec()
}
