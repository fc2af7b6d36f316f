//! Matrices: which candidate patches pass a set of tests.

pub mod request;
pub mod view;
pub mod work;
