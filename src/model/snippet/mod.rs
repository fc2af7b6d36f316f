//! A model that needs no key: rules that play through the same tools as a language model.

pub mod extract;
