//! A program that runs only the jail entry point, for tests and for hosts that embed this crate.

fn main() {
    testwright_sandboxes::local::jail_main()
}
