//! `testwright approaches`: what there is, and how it works.

use serde::Serialize;

use crate::approaches::{ALL, Approach, ApproachOption, Workflow};
use crate::error::Result;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Description {
    name: &'static str,
    description: &'static str,
    #[serde(flatten)]
    workflow: Workflow,
    /// Names.
    tools: Vec<&'static str>,
    options: &'static [ApproachOption],
}

impl Description {
    fn of(approach: &dyn Approach) -> Description {
        Description {
            name: approach.name(),
            description: approach.description(),
            workflow: approach.workflow(),
            tools: approach.tools().iter().map(|tool| tool.name()).collect(),
            options: approach.options(),
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.name, self.description)];
        let prompts = match self.workflow {
            Workflow::Agent { prompts } => {
                lines.push(format!("  tools: {}", self.tools.join(", ")));
                prompts
            }
            Workflow::Pipeline {
                stages,
                model_calls,
                prompts,
            } => {
                lines.push(format!("  stages: {}", stages.join(", ")));
                lines.push(format!("  model calls: {model_calls}"));
                prompts
            }
        };
        let files: Vec<String> = prompts.iter().map(|name| format!("{name}.md")).collect();
        lines.push(format!("  prompts: {}", files.join(", ")));
        for option in self.options {
            let default = if option.default { "on" } else { "off" };
            lines.push(format!(
                "  option {}: {} ({default})",
                option.name, option.description
            ));
        }
        lines.join("\n")
    }
}

pub fn run(args: &Args) -> Result<()> {
    let all: Vec<Description> = ALL
        .iter()
        .map(|approach| Description::of(*approach))
        .collect();
    if args.json {
        return super::output::json(&all);
    }
    let texts: Vec<String> = all.iter().map(Description::text).collect();
    super::output::out(format!("{}\n", texts.join("\n\n")));
    Ok(())
}
