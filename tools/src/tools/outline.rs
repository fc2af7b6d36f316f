//! `outline`: the classes and functions of a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::line_numbers::{count, cut};
use crate::python::{Definition, Kind, Module, flatten, plain_name};
use crate::tool::{Answer, Context, Effect, Tool, ToolError};
use crate::workspace::forward;

const SHOWN: usize = 200;
const WIDTH: usize = 160;

pub struct Outline;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The file.
    #[schemars(example = "src/package/module.py")]
    path: String,
    /// Only this class or function.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    within: Option<String>,
    /// Only names that contain this.
    #[serde(default)]
    name: Option<String>,
}

impl Tool for Outline {
    type Args = Args;
    const NAME: &'static str = "outline";
    const DESCRIPTION: &'static str = "List the classes and functions of a Python file; of a test file also the fixtures that it may use.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Args) -> Result<Answer, ToolError> {
        let relative = context.workspace.resolve_file(&args.path)?;
        let shown = forward(&relative);
        let text = context.workspace.read_text(&relative)?;
        let module = Module::parse(text);
        let mut outline = module.outline();
        if let Some(within) = &args.within {
            outline = module.find(within);
            if outline.is_empty() {
                return Err(super::read_function::unknown(
                    &module,
                    &shown,
                    &plain_name(within),
                ));
            }
        }
        let mut out = format!(
            "{shown}, {}\n",
            count(module.text().lines().count(), "line")
        );
        if outline.is_empty() {
            out.push_str("No classes or functions.\n");
        }
        let mut lines = Vec::new();
        match args.name.as_deref().map(plain_name) {
            Some(name) => {
                let wanted = name.to_lowercase();
                let fits = |d: &&Definition| d.qualified.to_lowercase().contains(&wanted);
                for definition in flatten(&outline).into_iter().filter(fits) {
                    lines.push(line(definition, &definition.qualified));
                }
                if lines.is_empty() && !outline.is_empty() {
                    return Err(super::read_function::unknown(&module, &shown, &name));
                }
            }
            None => {
                for definition in &outline {
                    list(definition, 0, args.within.is_some(), &mut lines);
                }
            }
        }
        for line in lines.iter().take(SHOWN) {
            out.push_str(line);
            out.push('\n');
        }
        if lines.len() > SHOWN {
            out.push_str(&format!(
                "… and {} more; name a class with `within`, or a part of the names with `name`.\n",
                lines.len() - SHOWN
            ));
        }
        for error in module.errors().iter().take(3) {
            out.push_str(&format!("line {}: {}\n", error.line, error.what));
        }
        Ok(Answer::text(out))
    }
}

/// Range, decorators and signature; `name` stands in the signature for its own.
fn line(definition: &Definition, name: &str) -> String {
    let decorators: String = definition
        .decorators
        .iter()
        .map(|d| format!("{} ", cut(d, 60)))
        .collect();
    let decorators = decorators.replace('\n', " ");
    let signature =
        definition
            .signature
            .replacen(&format!(" {}", definition.name), &format!(" {name}"), 1);
    format!(
        "{}-{} {decorators}{}",
        definition.first,
        definition.last,
        cut(&signature, WIDTH)
    )
}

fn list(definition: &Definition, depth: usize, inner_functions: bool, lines: &mut Vec<String>) {
    let pad = "  ".repeat(depth);
    lines.push(format!("{pad}{}", line(definition, &definition.name)));
    // What functions define inside is left out unless asked for.
    if definition.kind == Kind::Class || inner_functions {
        for child in &definition.children {
            list(child, depth + 1, inner_functions, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    #[test]
    fn nested_definitions_with_ranges() {
        let file = b"import a\n\n@deco(1)\nclass A(B):\n    @property\n    def f(self,\n          x=1):  # why\n        def inner(): pass\n\nif a:\n    async def g(): pass\n";
        let mut f = Fixture::new(&[("a.py", file), ("b.py", b"x = 1\n")]);
        assert_eq!(
            f.text("outline", json!({"path": "a.py"})),
            "a.py, 11 lines\n3-8 @deco(1) class A(B)\n  5-8 @property def f(self, x=1)\n11-11 async def g()\n"
        );
        assert!(
            f.text("outline", json!({"path": "a.py", "within": "A.f"}))
                .contains("  8-8 def inner()")
        );
        assert_eq!(
            f.text("outline", json!({"path": "a.py", "name": "A.F"})),
            "a.py, 11 lines\n5-8 @property def A.f(self, x=1)\n8-8 def A.f.inner()\n"
        );
        assert_eq!(
            f.text("outline", json!({"path": "a.py", "name": "g"})),
            "a.py, 11 lines\n11-11 async def g()\n"
        );
        assert!(
            f.refusal("outline", json!({"path": "a.py", "name": "zz"}))
                .contains("defines no `zz`")
        );
        assert!(
            f.text("outline", json!({"path": "b.py"}))
                .contains("No classes")
        );
        assert!(
            f.refusal("outline", json!({"path": "a.py", "within": "A.ff"}))
                .contains("A.f")
        );
    }
}
