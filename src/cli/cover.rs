//! `testwright cover`: writes a test that executes given lines.

use super::repository_args::RepositoryArgs;
use super::run_options::{RunOptions, check_results_folder};
use testwright_agent::approaches::extra_inputs::ExtraInputs;
use testwright_agent::approaches::{COVER, Variant, model_selection};
use testwright_agent::issues::Issue;
use testwright_agent::job::RunJob;
use testwright_config::error::Result;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Code to cover: `pkg/mod.py::Class.method`, or `pkg/mod.py:10-20`; may be repeated
    #[arg(required = true, value_name = "FILE::FUNCTION|FILE:FIRST-LAST")]
    targets: Vec<String>,
    #[command(flatten)]
    place: RepositoryArgs,
    #[command(flatten)]
    options: RunOptions,
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    let terminal = args.options.terminal();
    let job = new_job(args)?;
    args.options.execute(job, terminal).await
}

fn new_job(args: &Args) -> Result<RunJob> {
    let settings = args.place.settings(|flags| {
        args.options.add_to_flags(flags);
        flags.set("run.approach", Some(COVER.name.to_owned()));
    })?;
    let selection = model_selection::select(&settings)?;
    let title = format!("Cover {}", args.targets.join(", "));
    check_results_folder(&settings)?;
    let issue = Issue {
        title,
        origin: "testwright cover".to_owned(),
        ..Issue::default()
    };
    let (place, approach) = (args.place.repository_location(None), Variant::plain(COVER));
    Ok(RunJob {
        extra_inputs: ExtraInputs {
            lines: args.targets.clone(),
            ..ExtraInputs::default()
        },
        ..args
            .options
            .job(settings, issue, place, approach, selection)
    })
}
