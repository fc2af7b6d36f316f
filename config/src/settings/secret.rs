//! Secrets: API keys, tokens, and the passwords in addresses.
//!
//! `Debug`, `Display` and serialization hide them; the few places that need them call [`Secret::reveal`].

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use testwright_sandboxes::Pattern;

/// A key or token.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret. Returns `None` for an empty value: a variable that is set to nothing counts as
    /// unset.
    pub fn new(value: &str) -> Option<Self> {
        let value = value.trim();
        (!value.is_empty()).then(|| Secret(value.to_owned()))
    }

    /// Returns the secret itself, trimmed.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(…)")
    }
}

/// Returns whether this may be the name of a variable; false for text that looks like a key.
pub(super) fn is_variable_name(name: &str) -> bool {
    static NAME: Pattern = Pattern::new(r"^[A-Za-z_][A-Za-z0-9_]*$");
    static KEY: Pattern = Pattern::new(r"^(?:gh[oprsu]_|github_pat_|gsk_|hf_)");
    NAME.is_match(name) && !KEY.is_match(name)
}

/// An address that may contain a user name and password (`https://user:password@index.example.org/simple`).
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct RedactedUrl(String);

impl RedactedUrl {
    /// Wraps an address, whatever its scheme.
    pub fn new(address: impl Into<String>) -> Self {
        RedactedUrl(address.into())
    }

    /// Returns the complete address.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns whether the scheme is `http` or `https` and an address follows it.
    pub fn is_http(&self) -> bool {
        static HTTP: Pattern = Pattern::new("(?i)^https?://.");
        HTTP.is_match(&self.0)
    }

    /// Returns the hidden parts: user name and password as written, the password alone, and the values of the
    /// query.
    pub fn secrets(&self) -> Vec<&str> {
        let rest = self
            .0
            .split_once("://")
            .map_or(self.0.as_str(), |(_, rest)| rest);
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = place.split('/').next().unwrap_or_default();
        let login = authority.rsplit_once('@').map(|(login, _)| login);
        let password = login.and_then(|login| Some(login.split_once(':')?.1));
        let values = query
            .split('&')
            .filter_map(|pair| Some(pair.split_once('=')?.1));
        login.into_iter().chain(password).chain(values).collect()
    }
}

impl fmt::Display for RedactedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_at(self.0.find("://").map_or(0, |at| at + 3));
        let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (user, login) = match rest[..authority].rfind('@') {
            Some(at) => (at + 1, "…@"),
            None => (0, ""),
        };
        let (end, query) = match rest.find('?') {
            Some(at) => (at, "?…"),
            None => (rest.len(), ""),
        };
        write!(f, "{scheme}{login}{}{query}", &rest[user..end])
    }
}

impl fmt::Debug for RedactedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactedUrl({self})")
    }
}

impl Serialize for RedactedUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for RedactedUrl {
    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hide_secrets() {
        for (address, expected) in [
            (
                "https://index.example.org/simple",
                "https://index.example.org/simple",
            ),
            (
                "https://u:p@index.example.org/simple",
                "https://…@index.example.org/simple",
            ),
            ("https://u:p%40@h:8080/a?token=x#y", "https://…@h:8080/a?…"),
            ("u:p@proxy:3128", "…@proxy:3128"),
            ("https://h/a@b", "https://h/a@b"),
            ("https://h?k=a@b/c", "https://h?…"),
        ] {
            let it = RedactedUrl::new(address);
            assert_eq!(it.to_string(), expected);
            assert_eq!(format!("{it:?}"), format!("RedactedUrl({expected})"));
            assert_eq!(it.reveal(), address);
        }
    }

    #[test]
    fn address_secrets_are_listed() {
        let secrets = |address| RedactedUrl::new(address).secrets().join(" ");
        assert_eq!(secrets("https://u:p@h/a?k=v&x=y#z"), "u:p p v y");
        assert_eq!(secrets("u:p@proxy:3128"), "u:p p");
        assert_eq!(secrets("https://token@h/simple"), "token");
        assert_eq!(secrets("https://h/a@b"), "");
    }

    #[test]
    fn empty_key_is_none() {
        assert_eq!(Secret::new(" \n"), None);
        assert_eq!(format!("{:?}", Secret::new("sk-abc")), "Some(Secret(…))");
    }
}
