//! Headings of options in help. An option without one is listed under "Options".

pub(super) const ISSUE: &str = "Issue and repository";
pub(super) const MODEL: &str = "Model";
pub(super) const LIMITS: &str = "Limits";
pub(super) const ENVIRONMENT: &str = "Environment";
pub(super) const DATA: &str = "Dataset";
pub(super) const SERVER: &str = "Server";
pub(super) const OUTPUT: &str = "Output";
pub(super) const GLOBAL: &str = "Global options";
