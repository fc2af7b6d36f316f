//! `testwright.toml` of the user, who may set everything, and of a repository, which must not redirect keys.
#![no_main]

use testwright_config::settings::{Settings, Sources};
use testwright_fuzz::{bounded_target, file, folder};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let path = file("testwright.toml", data);
    let user = Sources { user_file: Some(path), ..Sources::default() };
    match Settings::load(&user) {
        Ok(settings) => {
            settings.describe();
            settings.record();
        }
        Err(error) => assert!(error.render().len() < 4 * data.len() + 4000),
    }
    let theirs = Sources { repository: Some(folder().to_owned()), ..Sources::default() };
    let Ok(settings) = Settings::load(&theirs) else {
        return;
    };
    let own = Settings::load(&Sources::default()).expect("the defaults");
    assert_eq!(settings.model.base_url, own.model.base_url);
    assert_eq!(settings.model.api_key_env, own.model.api_key_env);
    assert_eq!(settings.github, own.github);
    assert_eq!(settings.cache, own.cache);
    assert_eq!(settings.docker.host, own.docker.host);
    assert_eq!(settings.local, own.local);
});
