//! HTTP clients that all use the same TLS library.

use rustls::crypto::{CryptoProvider, ring};

/// Returns a builder for clients that use rustls with ring. Makes ring the process's default provider if it has none.
pub fn builder() -> reqwest::ClientBuilder {
    // Fails only if a provider is installed already.
    let _ = CryptoProvider::install_default(ring::default_provider());
    reqwest::Client::builder()
}
