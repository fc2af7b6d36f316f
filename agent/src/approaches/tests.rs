#![allow(clippy::unwrap_used)]

use testwright_tools::tool::{Audience, Route};

use super::*;
use testwright_config::settings::Settings;

#[test]
fn first_approach_is_the_default() {
    assert_eq!(Settings::default().run.approach, ALL[0].name);
}

#[test]
fn agents_offer_distinct_tools_and_submit() {
    for approach in ALL {
        let tools = (approach.tools)();
        if let Workflow::Pipeline { .. } = approach.workflow {
            assert!(tools.is_empty(), "{}", approach.name);
            continue;
        }
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{}", approach.name);
        let for_models = |tool: &&dyn AnyTool| tool.audience() == Audience::Model;
        assert!(tools.iter().all(for_models), "{}", approach.name);
        let submits = |tool: &&dyn AnyTool| tool.route() == Route::Gate;
        assert!(tools.iter().any(submits), "{}", approach.name);
    }
}

#[test]
fn named_prompts_exist() {
    let is_prompt = |name: &&str| {
        testwright_agent_prompts::ALL
            .iter()
            .any(|(prompt, _)| prompt == name)
    };
    for approach in ALL {
        let (Workflow::Agent { prompts } | Workflow::Pipeline { prompts, .. }) = approach.workflow;
        assert!(
            !prompts.is_empty() && prompts.iter().all(is_prompt),
            "{}",
            approach.name
        );
    }
}

#[test]
fn default_approach_selects_declared_tools() {
    let approach = find("testwright").unwrap();
    let names: Vec<&str> = (approach.tools)().iter().map(|tool| tool.name()).collect();
    assert_eq!(
        names,
        [
            "search",
            "open_file",
            "read_function",
            "run_python",
            "insert_function",
            "edit",
            "run_pytest",
            "try_fix",
            "submit",
        ]
    );
}
