//! Signatures of webhooks, which prove that the sender knows the secret.

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

const SCHEME: &str = "sha256=";

/// Length of a signature, in bytes.
const LENGTH: usize = 32;

/// Parses the signature header; `None` if it is malformed.
pub(super) fn read(header: &str) -> Option<Vec<u8>> {
    let digits = header.strip_prefix(SCHEME)?.chars();
    let digits = digits.map(|digit| u8::try_from(digit.to_digit(16)?).ok());
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let (pairs, _) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| high << 4 | low);
    (digits.len() == 2 * LENGTH).then(|| bytes.collect())
}

/// Returns whether the body was signed with one of the secrets. Compares in constant time.
pub(super) fn is_valid(secrets: &[SecretString], body: &[u8], signature: &[u8]) -> bool {
    secrets
        .iter()
        .any(|secret| hmac::verify(&key(secret), body, signature).is_ok())
}

/// Returns a keyed hash of a text in hexadecimal digits, which only someone with the secret can compute.
pub(super) fn mark(secret: &SecretString, text: &str) -> String {
    testwright_config::hex::hex(hmac::sign(&key(secret), text.as_bytes()).as_ref())
}

fn key(secret: &SecretString) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example from GitHub's documentation.
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const SIGNATURE: &str =
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn only_documented_signature_is_valid() {
        let is_valid = |secrets: &[SecretString], body: &[u8], header: Option<&str>| {
            let signature = header.and_then(read);
            signature.is_some_and(|signature| is_valid(secrets, body, &signature))
        };
        let secrets = ["an older secret", SECRET].map(SecretString::from);
        assert!(is_valid(&secrets, BODY, Some(SIGNATURE)));
        assert!(!is_valid(&secrets[..1], BODY, Some(SIGNATURE)));
        assert!(!is_valid(&secrets, b"Hello, World?", Some(SIGNATURE)));
        let changed = SIGNATURE.replace("757", "758");
        for wrong in [
            None,
            Some(""),
            Some("sha256="),
            Some(&SIGNATURE[7..]),
            Some(&SIGNATURE[..70]),
            Some(&SIGNATURE[..71]),
            Some(changed.as_str()),
            Some("sha1=757107ea0eb2509fc211221cce984b8a37570b6d"),
        ] {
            let is_correct = wrong == Some(SIGNATURE);
            assert_eq!(is_valid(&secrets, BODY, wrong), is_correct, "{wrong:?}");
        }
        assert!(!is_valid(&[], BODY, Some(SIGNATURE)));
    }
}
