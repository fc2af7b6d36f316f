//! Looks tools up in the list of all tools ([`crate::tools`]), in the order in which a model sees them.

use crate::tool::{AnyTool, Audience};
use crate::tools::ALL;

/// Returns every tool, including the host's.
pub fn all() -> Vec<&'static dyn AnyTool> {
    ALL.to_vec()
}

/// Returns the tools that a model or an MCP client may be offered.
pub fn for_models() -> impl Iterator<Item = &'static dyn AnyTool> {
    with_wanted_lines().filter(|tool| !tool.needs_wanted_lines())
}

/// Returns the tools that a model may be offered if the settings name lines that tests are requested for.
pub fn with_wanted_lines() -> impl Iterator<Item = &'static dyn AnyTool> {
    ALL.iter()
        .copied()
        .filter(|tool| tool.audience() == Audience::Model)
}

/// Finds a tool by name, including the host's.
pub fn find(name: &str) -> Option<&'static dyn AnyTool> {
    ALL.iter().copied().find(|tool| tool.name() == name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::tool::{Effect, Route};

    #[test]
    fn the_list_as_a_model_sees_it() {
        let specs: Vec<_> = for_models().map(|tool| tool.spec()).collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&specs).unwrap());
    }

    #[test]
    fn client_tools_have_titles_and_schemas() {
        for tool in with_wanted_lines() {
            assert!(!tool.title().is_empty(), "{}", tool.name());
            let schema = tool.data_schema();
            assert_eq!(schema["type"], "object", "{}", tool.name());
            assert!(schema["properties"].is_object(), "{}", tool.name());
        }
    }

    #[test]
    fn wanted_lines_tools_need_wanted_lines() {
        let names = |tools: Vec<&'static dyn AnyTool>| -> Vec<_> {
            tools.iter().map(|tool| tool.name()).collect()
        };
        let plain = names(for_models().collect());
        assert!(!plain.contains(&"cover"));
        let mut all = names(with_wanted_lines().collect());
        all.retain(|name| !plain.contains(name));
        assert_eq!(all, ["cover"]);
    }

    const SELF_EXPLAINING: [&str; 13] = [
        "path", "first", "lines", "code", "new", "content", "after", "class", "pattern", "glob",
        "name", "tests", "edits",
    ];

    #[test]
    fn names_are_unique_and_fields_described() {
        let mut names = std::collections::HashSet::new();
        for tool in all() {
            let spec = tool.spec();
            assert!(names.insert(spec.name.clone()), "{} twice", spec.name);
            assert!(
                !spec.description.is_empty() && !spec.description.contains("  "),
                "{}",
                spec.name
            );
            assert_eq!(spec.parameters["type"], "object");
            for (field, schema) in spec.parameters["properties"].as_object().unwrap() {
                let described = schema["description"].is_string()
                    // The name of these fields explains them, or the tool's description does.
                    || SELF_EXPLAINING.contains(&field.as_str())
                    || tool.audience() == Audience::Host;
                assert!(described, "{}.{field}", spec.name);
            }
        }
    }

    #[test]
    fn tool_properties_are_consistent() {
        for tool in all() {
            // Executed code may change any file, unless it runs in a copy.
            if tool.runs_code() && tool.effect() == Effect::Reads {
                assert_eq!(tool.route(), Route::Fork, "{}", tool.name());
            }
            if tool.audience() == Audience::Host {
                assert_eq!(tool.route(), Route::Sandbox, "{}", tool.name());
            }
        }
    }
}
