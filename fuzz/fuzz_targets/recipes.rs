//! Recipes: what was read is read again from what is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testwright_sandboxes::recipe;

fuzz_target!(init: testwright_fuzz::prepare(), |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match recipe::parse(text, "recipe.toml") {
        Ok(read) => {
            let written = toml::to_string(&read).expect("a recipe as TOML");
            assert_eq!(recipe::parse(&written, "recipe.toml").ok(), Some(read));
        }
        Err(error) => assert!(error.to_string().len() < 2 * data.len() + 2000),
    }
});
