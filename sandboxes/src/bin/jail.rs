//! The jail entry point as a program of its own, for tests and for hosts that embed this crate.

fn main() {
    testwright_sandboxes::local::jail_main()
}
