//! What Python source says: parsed by tree-sitter, never executed.
//!
//! Old repositories hold files in Python 2 syntax and worse, so everything here works on what could be
//! parsed; callers compare errors before and after instead of asking for none.

mod contributed;
mod definitions;
mod imports;
mod module;
mod tokens;

pub use contributed::contributed;
pub use definitions::{Definition, Kind, flatten, in_function};
pub use imports::{Binding, Import};
pub use module::{Module, SyntaxError};
