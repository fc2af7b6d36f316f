//! Gradings: predictions for an instance, graded by the workers of a database.

pub mod remote;
mod request;
pub mod work;
