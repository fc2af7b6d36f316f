//! `testwright approaches`: lists the approaches and how they work.

use std::collections::BTreeMap;

use serde::Serialize;

use testwright_agent::agent::LOOP_PROMPTS;
use testwright_agent::approaches::{ALL, Approach, ApproachOption, Workflow};
use testwright_config::error::Result;
use testwright_config::settings::Effort;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    /// Prompts of the agent loop; empty for pipelines.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    loop_prompts: &'static [&'static str],
    /// Names of the tools.
    tools: Vec<&'static str>,
    options: &'static [ApproachOption],
    /// Options by level of effort, as they are written on the command line.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    effort: BTreeMap<&'static str, Vec<String>>,
}

impl Description {
    fn from_approach(approach: &Approach) -> Description {
        Description {
            name: approach.name,
            description: approach.description,
            workflow: approach.workflow,
            loop_prompts: match approach.workflow {
                Workflow::Agent { .. } => LOOP_PROMPTS,
                Workflow::Pipeline { .. } => &[],
            },
            tools: (approach.tools)().iter().map(|tool| tool.name()).collect(),
            options: approach.options,
            effort: levels(approach),
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
        let files = |names: &[&str]| {
            let files: Vec<String> = names.iter().map(|name| format!("{name}.md")).collect();
            files.join(", ")
        };
        lines.push(format!("  prompts: {}", files(prompts)));
        if !self.loop_prompts.is_empty() {
            lines.push(format!(
                "  prompts of the loop: {}",
                files(self.loop_prompts)
            ));
        }
        for option in self.options {
            let default = if option.default { "on" } else { "off" };
            lines.push(format!(
                "  option {}: {} ({default})",
                option.name, option.description
            ));
        }
        for (level, options) in &self.effort {
            let options = match options.as_slice() {
                [] => "defaults".to_owned(),
                options => options.join(", "),
            };
            lines.push(format!("  effort {level}: {options}"));
        }
        lines.join("\n")
    }
}

fn levels(approach: &Approach) -> BTreeMap<&'static str, Vec<String>> {
    let written = |(option, value): &(ApproachOption, bool)| {
        format!("{}={}", option.name, if *value { "on" } else { "off" })
    };
    [
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
    ]
    .into_iter()
    .filter_map(|(name, level)| {
        let options = (approach.effort)(level)?.iter();
        Some((name, options.map(written).collect()))
    })
    .collect()
}

pub(super) fn run(args: &Args) -> Result<()> {
    let all: Vec<Description> = ALL
        .iter()
        .map(|approach| Description::from_approach(approach))
        .collect();
    if args.json {
        return super::output::print_json(&all);
    }
    let texts: Vec<String> = all.iter().map(Description::text).collect();
    super::output::print_stdout(format!("{}\n", texts.join("\n\n")));
    Ok(())
}
