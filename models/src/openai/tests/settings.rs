use super::*;

#[test]
fn unusable_settings_are_refused() {
    let with = |change: &dyn Fn(&mut OpenAiSettings)| {
        let mut settings = OpenAiSettings::new("m");
        change(&mut settings);
        OpenAi::new(settings).map(|_| ()).unwrap_err().to_string()
    };
    assert!(with(&|s| s.base_url = "localhost:8080".to_owned()).contains("localhost"));
    assert!(with(&|s| s.api_key = Some(SecretString::from("a\nb"))).contains("cannot be sent"));
    assert!(with(&|s| s.ca_bundle = Some("/nowhere.pem".into())).contains("/nowhere.pem"));
}

/// Checks that async-openai creates no client of its own: it would read only the system's certificates, and
/// panic without any.
#[test]
fn ca_bundle_works_without_system_certificates() {
    const BUNDLE: &str = "TESTWRIGHT_TEST_CA_BUNDLE";
    if let Some(bundle) = std::env::var_os(BUNDLE) {
        let mut settings = OpenAiSettings::new("m");
        settings.ca_bundle = Some(bundle.into());
        assert!(OpenAi::new(settings).is_ok());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    std::fs::write(&bundle, CERTIFICATE).unwrap();
    // Run this test again in a process that finds no certificates.
    let name = "openai::tests::settings::ca_bundle_works_without_system_certificates";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(BUNDLE, &bundle)
        .env("SSL_CERT_DIR", folder.path().join("none"))
        .env_remove("SSL_CERT_FILE")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
}

/// Certificate of an authority that signed nothing else.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBejCCASGgAwIBAgIUF0GdoZp5buj+Q/VaBnKLQhlJuf0wCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHdGVzdCBDQTAgFw0yNjExMjIxNzUxNTNaGA8yMTI2MTAyOTE3
NTE1M1owEjEQMA4GA1UEAwwHdGVzdCBDQTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABLH6uJJbUHPZdX5x09g+3VTqJM0/W9QEODPCpjmH3pi/3WygjgpK0ySwp0n2
7J2u1JuufvwPVYl54mRE01Ir1nejUzBRMB0GA1UdDgQWBBSwGo/mpss/v/+HQ0BY
J5OsVbgCQTAfBgNVHSMEGDAWgBSwGo/mpss/v/+HQ0BYJ5OsVbgCQTAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIC8nkeDxtg8qllFnKd93MA0PUiX4
nItKiU5KtWXGrWaNAiAqMx8rj6cTMJsBSqz9cp2MvZn9j5b1XRLKDrA82mW3lA==
-----END CERTIFICATE-----
";
