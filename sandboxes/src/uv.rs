//! uv
