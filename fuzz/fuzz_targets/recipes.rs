//! Recipes: writing and reading a recipe must give the same recipe.
#![no_main]

use testwright_fuzz::bounded_target;
use testwright_sandboxes::recipe;

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
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
