//! Running pytest and reading what happened, from a structured report that our plugin writes to a
//! file outside the tested tree: printed text cannot forge an outcome.

pub mod report;
