//! docker
