//! The toolbox alone, for the tests here. `testwright` is a toolbox too, by this name.

fn main() -> std::process::ExitCode {
    testwright_tools::program::main()
}
