//! Analyses Python source with tree-sitter, without executing it.
//!
//! Old repositories contain Python 2 syntax and invalid code, so everything here works on the parts that could be
//! parsed. Callers compare errors before and after, instead of requiring valid code.

mod assertions;
mod builtins;
mod called;
mod called_names;
mod checks;
mod constant_failure;
mod constants;
mod contributed;
mod deciding_line;
mod definitions;
pub mod edit;
mod failing_change;
pub mod import_edit;
mod imports;
pub mod indentation;
mod index;
mod module;
mod names;
mod nodes;
mod offsets;
mod placebo;
mod replaced_code;
mod resolve;
mod scopes;
mod single_test;
mod standard_library;
mod statements;
mod tokens;
mod unreached;
mod unrelated_inputs;

pub use assertions::{Assertion, Comparison, Operand, all_assertions, assertions};
pub use called::{Reference, references};
pub use called_names::called_names;
pub use checks::contains_check;
pub use constant_failure::constant_failure;
pub use contributed::{
    ContributedTest, Excerpt, TestFunction, contributed, test_functions, used_code,
};
pub use deciding_line::DecidingLine;
pub use definitions::{Definition, Docstring, Kind, flatten, in_function, plain_name};
pub use failing_change::{FailingTests, change_to_fail};
pub use imports::{Binding, Import, joined_imports};
pub use index::{FoundDefinition, RepositoryIndex};
pub use module::{Module, STACK, SyntaxError};
pub use names::{
    OuterNames, OuterUse, UndefinedName, new_undefined_names, outer_names, outer_uses,
    undefined_names,
};
pub(crate) use offsets::line_of;
pub use placebo::{LineNumbers, OtherText, placebo};
pub(crate) use replaced_code::{own_names, replaced_code};
pub(crate) use resolve::package_start;
pub use resolve::suggest;
pub use scopes::{Scope, scopes};
pub use single_test::{SingleTest, single_test, without_tests};
pub use standard_library::is_standard_library;
pub use statements::Assignment;
pub use tokens::code_tokens;
pub use unreached::{lines_in_words, unreached_assertions};
pub use unrelated_inputs::unrelated_inputs;
