//! Clients for HTTP, with one library for encryption in the whole program.

use rustls::crypto::{CryptoProvider, ring};

pub fn builder() -> reqwest::ClientBuilder {
    // Fails where it has been done before.
    let _ = CryptoProvider::install_default(ring::default_provider());
    reqwest::Client::builder()
}
