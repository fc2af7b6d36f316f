//! Replaces a test with one that does nothing; whatever still runs is due to the file, not to the test.

use testwright_tools::python::Module;

/// Returns the file with the given test (`Class::test_x` or `test_x`) emptied: no decorators, no fixtures, no body.
/// Returns `None` if the test does not exist.
pub fn empty_test(source: &str, test: &str) -> Option<String> {
    let module = Module::parse(source);
    let name = test.split('[').next().unwrap_or(test);
    // In Python the last definition of a name wins.
    let definition = module.find(name).pop()?;
    let mut emptied = source.to_owned();
    // `*_` works for functions and methods, and pytest does not take it for a fixture.
    let nothing = format!("def {}(*_): pass", definition.name);
    emptied.replace_range(definition.bytes, &nothing);
    Some(emptied)
}

#[cfg(test)]
mod tests;
