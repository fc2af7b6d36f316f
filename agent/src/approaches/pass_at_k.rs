//! Pass@k (SWT-bench §4.1): one sample of `zero-shot-plus`, with a temperature above 0. A comparison takes
//! several samples, and the grader picks the best. The result is an upper bound, not a score of an approach.

use testwright_agent_prompts::{Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::extra_inputs;
use super::stages::{SAMPLE_TEMPERATURE, SAMPLES};
use super::zero_shot_plus::sample;
use super::{Approach, Workflow};

pub(super) static APPROACH: Approach = Approach {
    options: extra_inputs::OPTIONS,
    oracle_samples: SAMPLES as u32,
    ..Approach::new(
        "pass-at-k",
        "one sample of zero-shot-plus; `testwright compare` counts the best of five samples, as an upper bound",
        Workflow::Pipeline {
            stages: &["retrieve", "write"],
            model_calls: "1 per sample",
            prompts: &[ZeroShotPlusSystem::NAME, ZeroShotTask::NAME],
        },
        |run, context| Box::pin(sample(run, context, SAMPLE_TEMPERATURE)),
    )
};
