use testwright_agent::agent::LOOP_PROMPTS;
use testwright_agent::approaches::{ALL, CHECK, COVER, Workflow};
use testwright_agent::environment_repair::REPAIR_PROMPTS;

use super::*;

#[test]
fn every_prompt_is_used() {
    let used_prompts: Vec<&str> = (ALL.iter().chain([&CHECK, &COVER]))
        .flat_map(|approach| match approach.workflow {
            Workflow::Agent { prompts } | Workflow::Pipeline { prompts, .. } => prompts,
        })
        .chain(LOOP_PROMPTS)
        .chain(REPAIR_PROMPTS)
        .chain(PROMPTS)
        .copied()
        .collect();
    let all = testwright_agent_prompts::ALL.iter().map(|(name, _)| *name);
    let missing: Vec<&str> = all.filter(|name| !used_prompts.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}
