//! `testwright version`: prints the version and the build, as `--version` does.

use std::sync::LazyLock;

use testwright_evals::machine::COMMIT;

use super::output;

/// Date of the commit and target of the build, which `.ci/dist` sets. Other builds do not know them.
const BUILD: Option<&str> = option_env!("TESTWRIGHT_BUILD");

static LONG: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let build: Vec<&str> = COMMIT.into_iter().chain(BUILD).collect();
    match build.as_slice() {
        [] => version.to_owned(),
        build => format!("{version} ({})", build.join(" ")),
    }
});

/// Returns the version with the commit, its date and the target of the build, if they are known.
pub(super) fn long() -> &'static str {
    &LONG
}

pub(super) fn run() {
    output::print_stdout(format!("testwright {}\n", long()));
}
