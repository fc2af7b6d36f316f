//! Network access according to settings and the host's environment: certificates and proxies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use testwright_sandboxes::environment::BuildSettings;

use testwright_config::settings::{RedactedUrl, Settings};

/// Returns the file with additional certificate authorities.
pub fn ca_bundle(settings: &Settings) -> Option<PathBuf> {
    settings
        .build
        .ca_bundle
        .clone()
        .or_else(|| BuildSettings::new(Path::new("")).ca_bundle)
}

/// Returns the proxies of the host's environment; settings override them.
pub fn proxies(settings: &Settings) -> BTreeMap<String, String> {
    let mut proxies = BuildSettings::new(Path::new("")).proxies;
    let build = &settings.build;
    let reveal =
        |address: &Option<RedactedUrl>| address.as_ref().map(|address| address.reveal().to_owned());
    for (name, value) in [
        ("http_proxy", reveal(&build.http_proxy)),
        ("https_proxy", reveal(&build.https_proxy)),
        ("no_proxy", build.no_proxy.clone()),
    ] {
        if let Some(value) = value {
            proxies.insert(name.to_uppercase(), value.clone());
            proxies.insert(name.to_owned(), value);
        }
    }
    proxies
}
