//! The tools, one per file, and their list. A new tool needs only its file and one line in that list.

mod collected_tests;
pub mod contribution;
mod editing;
mod line_numbers;
mod path_glob;
mod replacement;
pub mod submission;
mod unknown_name;

pub use line_numbers::count;

/// Declares the modules, and a list of the tools in them in the same order.
macro_rules! tools {
    ($($module:ident::$tool:ident,)*) => {
        $(
            pub mod $module;
            pub use $module::$tool;
        )*

        pub(crate) static ALL: &[&dyn crate::tool::AnyTool] = &[$(&$tool),*];
    };
}

// In the order in which a model sees them.
tools! {
    search::Search,
    find_file::FindFile,
    open_file::OpenFile,
    outline::Outline,
    read_function::ReadFunction,
    insert_function::InsertFunction,
    rewrite_function::RewriteFunction,
    edit::Edit,
    create_file::CreateFile,
    edit_lines::EditLines,
    revert::Revert,
    run_pytest::RunPytest,
    cover::Cover,
    run_python::RunPython,
    shell::Shell,
    try_fix::TryFix,
    show_patch::ShowPatch,
    submit::Submit,
    handshake::Handshake,
    describe::Describe,
    changes::Changes,
    restore::Restore,
    test_patch::TestPatch,
    review_context::ReviewContext,
}
