//! `testwright completions`: prints shell completions.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, output};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "For bash:\n  testwright completions bash > ~/.local/share/bash-completion/completions/testwright"
)]
pub(super) struct Args {
    shell: Shell,
}

pub(super) fn run(args: &Args) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "testwright", &mut script);
    output::print_stdout(String::from_utf8_lossy(&script));
}
