//! Tests × patches: which candidate patches a set of tests keeps.

pub mod request;
pub mod view;
pub mod work;
