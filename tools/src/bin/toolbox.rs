//! Stand-alone toolbox for the tests of this crate. `testwright` also acts as a toolbox if it is started by that name.

fn main() -> std::process::ExitCode {
    testwright_tools::program::main()
}
