#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::*;

#[test]
fn built_in_recipes_are_listed_and_valid() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
    let mut names = Vec::new();
    for owner in std::fs::read_dir(&root).unwrap() {
        for file in std::fs::read_dir(owner.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().with_extension("");
            names.push(name.to_str().unwrap().to_owned());
        }
    }
    names.sort();
    assert_eq!(names, FILES.map(|(name, _)| name));
    for (name, text) in FILES {
        let file: File = parse::read(text, name).unwrap();
        assert!(!file.versions.is_empty(), "{name}");
        for mut table in file.versions {
            let when = table
                .remove("when")
                .unwrap_or(toml::Value::Table(toml::Table::new()));
            let when: VersionCondition = when.try_into().unwrap();
            assert!(
                when.version.is_some() || when.until.is_some(),
                "{name}: a table without an upper bound would claim untested versions"
            );
            let mut all = file.common.clone();
            parse::merge(&mut all, table);
            let recipe = parse::parse_table(all, name).unwrap();
            assert!(recipe.python.is_some(), "{name}");
            assert!(
                recipe.exclude_newer.is_some(),
                "{name}: commits would not share a layer of requirements"
            );
        }
    }
}

#[test]
fn versions_compare_by_number() {
    assert!(within(&numbers("2.10.1.dev0"), ">=2.9,<2.11"));
    assert!(!within(&numbers("2.9"), ">=2.10"));
    assert!(within(&numbers("2, 10, 0"), "<=2.10"));
    assert!(!within(&numbers("3.0"), "<3"));
}
