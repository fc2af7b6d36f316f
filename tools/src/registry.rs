//! The registry: the list of tools, in the order in which a model sees them.

use crate::tool::AnyTool;
use crate::tools::{
    create_file, describe, edit_lines, find_file, handshake, insert_function, open_file, outline,
    read_function, revert, rewrite_function, run_pytest, run_python, search, shell, show_patch,
    state, submit, test_patch, try_fix,
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
    &test_patch::TestPatch,
];

/// Every tool, those of the host included.
pub fn all() -> Vec<&'static dyn AnyTool> {
    ALL.to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::tool::Audience;

    #[test]
    fn the_list_as_a_model_sees_it() {
        let specs: Vec<_> = all()
            .into_iter()
            .filter(|t| t.audience() == Audience::Model)
            .map(|t| t.spec())
            .collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&specs).unwrap());
    }

    #[test]
    fn names_are_unique_and_every_field_is_described() {
        let mut names = std::collections::HashSet::new();
        for tool in all() {
            let spec = tool.spec();
            assert!(names.insert(spec.name.clone()), "{} twice", spec.name);
            assert!(
                !spec.description.is_empty() && !spec.description.contains("  "),
                "{}",
                spec.name
            );
            assert_eq!(spec.parameters["type"], "object");
            for (field, schema) in spec.parameters["properties"].as_object().unwrap() {
                let described =
                    schema["description"].is_string() || tool.audience() == Audience::Host;
                assert!(described, "{}.{field}", spec.name);
            }
        }
    }
}
