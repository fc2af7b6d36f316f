//! Authentication as a GitHub App, with a short-lived token that the App signs itself (RFC 7519, RS256).

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;

use testwright_config::error::{Error, Result};

/// Seconds for which a token is valid (GitHub allows ten minutes), and the allowed clock difference.
const TOKEN_LIFETIME: i64 = 540;
const CLOCK_SKEW: i64 = 60;

/// The App's id and its private key.
pub(super) struct AppKey {
    id: u64,
    key: RsaKeyPair,
}

impl AppKey {
    /// Reads a PEM file, in the format that GitHub issues (PKCS #1) or PKCS #8.
    pub(super) fn new(id: u64, pem: &str) -> Result<Self> {
        let refused = |cause: &dyn std::fmt::Display| {
            Error::usage("read the private key of the GitHub App")
                .cause(cause)
                .hint("use the .pem file that GitHub generated for the App")
        };
        let (label, text) = first_pem_block(pem).ok_or_else(|| refused(&"the text is not PEM"))?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|e| refused(&e))?;
        let key = match label {
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&bytes),
            "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&bytes),
            other => return Err(refused(&format!("unsupported PEM block: {other}"))),
        };
        let key = key.map_err(|e| refused(&e))?;
        Ok(AppKey { id, key })
    }

    /// Creates a token that is valid from now on; `now` is in seconds since 1970.
    pub(super) fn token(&self, now: i64) -> Result<String> {
        let encode = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(json!({"alg": "RS256", "typ": "JWT"}));
        let issuer = self.id.to_string();
        let claims = json!({"iat": now - CLOCK_SKEW, "exp": now + TOKEN_LIFETIME, "iss": issuer});
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

/// Returns the label and the Base64 text of the first PEM block.
fn first_pem_block(pem: &str) -> Option<(&str, String)> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (text, _) = rest.split_once("-----END ")?;
    // An environment variable may contain line breaks as `\n`.
    let text = text.replace("\\n", "");
    Some((label, text.split_whitespace().collect()))
}
