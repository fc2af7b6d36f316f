//! `testwright tools`: lists the tools and their schemas, as a model sees them.

use serde_json::Value;
use testwright_tools::registry;
use testwright_tools::tool::ToolSpec;

use super::repository_args::names::approaches;
use testwright_agent::approaches::Variant;
use testwright_config::error::Result;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print a JSON list of name, description and parameters (JSON Schema)
    #[arg(long)]
    json: bool,
    /// Show only the tools of this approach
    #[arg(long, value_name = "NAME", value_parser = approaches(), hide_possible_values = true)]
    approach: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let tools = match &args.approach {
        Some(name) => (Variant::parse(name)?.approach.tools)(),
        None => registry::for_models().collect(),
    };
    let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
    if args.json {
        super::output::print_json(&specs)
    } else {
        super::output::print_stdout(specs.iter().map(describe).collect::<String>());
        Ok(())
    }
}

fn describe(spec: &ToolSpec) -> String {
    let mut text = format!(
        "{}\n  {}\n",
        spec.name,
        spec.description.replace('\n', "\n  ")
    );
    let required: Vec<&str> = spec.parameters["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if let Some(properties) = spec.parameters["properties"].as_object() {
        for (name, schema) in properties {
            let kind = if required.contains(&name.as_str()) {
                ""
            } else {
                " (optional)"
            };
            let about = schema["description"].as_str().unwrap_or_default();
            text.push_str(&format!("    {name}{kind}: {}\n", about.replace('\n', " ")));
        }
    }
    text.push('\n');
    text
}
