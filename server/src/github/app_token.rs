//! A GitHub App's proof of who it is: a token that it signs itself (RFC 7519, RS256), good for minutes.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;

use testwright_config::error::{Error, Result};

/// Seconds for which a token is good, of at most ten minutes; and by how much clocks may differ.
const LIFETIME: i64 = 540;
const CLOCKS: i64 = 60;

/// The App's number and its private key.
pub struct AppKey {
    id: u64,
    key: RsaKeyPair,
}

impl AppKey {
    /// Reads PEM, as GitHub gives it out (PKCS #1) or as PKCS #8.
    pub fn new(id: u64, pem: &str) -> Result<Self> {
        let refused = |cause: &dyn std::fmt::Display| {
            Error::usage("read the private key of the GitHub App")
                .cause(cause)
                .hint("give the .pem file that GitHub made for the App")
        };
        let (label, text) = block(pem).ok_or_else(|| refused(&"it is not PEM"))?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|e| refused(&e))?;
        let key = match label {
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&bytes),
            "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&bytes),
            other => return Err(refused(&format!("it is a {other}"))),
        };
        let key = key.map_err(|e| refused(&e))?;
        Ok(AppKey { id, key })
    }

    /// A token that is good from now on; `now` is in seconds since 1970.
    pub fn token(&self, now: i64) -> Result<String> {
        let encode = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(json!({"alg": "RS256", "typ": "JWT"}));
        let issuer = self.id.to_string();
        let claims = json!({"iat": now - CLOCKS, "exp": now + LIFETIME, "iss": issuer});
        let signed = format!("{header}.{}", encode(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        self.key
            .sign(
                &RSA_PKCS1_SHA256,
                &random,
                signed.as_bytes(),
                &mut signature,
            )
            .map_err(|error| Error::infrastructure("sign a token").cause(error))?;
        Ok(format!(
            "{signed}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        ))
    }
}

/// What the first block is called, and its Base64.
fn block(pem: &str) -> Option<(&str, String)> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (text, _) = rest.split_once("-----END ")?;
    // A variable may hold its lines as `\n`.
    let text = text.replace("\\n", "");
    Some((label, text.split_whitespace().collect()))
}
