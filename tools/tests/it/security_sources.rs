//! Python sources with excessive nesting, designed to break parsers.

use testwright_tools::python::edit::{Code, InsertionPoint, insert};
use testwright_tools::python::{
    Module, STACK, contributed, flatten, new_undefined_names, undefined_names,
};
use testwright_tools::workspace::Layout;

/// Returns sources with `depth` levels of nesting, each of a different kind.
fn nested(depth: usize) -> Vec<String> {
    let indented: String = (0..depth.min(300))
        .map(|level| format!("{}if 1:\n", " ".repeat(level)))
        .collect();
    vec![
        format!("x = {}{}\n", "(".repeat(depth), ")".repeat(depth)),
        format!("x = {}\n", "(".repeat(depth)),
        format!("x = {}1\n", "[".repeat(depth)),
        format!("x = {}a\n", "a+".repeat(depth)),
        format!("x = {}a\n", "not ".repeat(depth)),
        format!("x = {}a\n", "lambda: ".repeat(depth)),
        format!("x = a{}\n", ".b()".repeat(depth)),
        format!("x = {}1{}\n", "f(".repeat(depth), ")".repeat(depth)),
        format!("x = {}1\n", "{1:".repeat(depth)),
        format!("def test_a():\n    return {}1\n", "-".repeat(depth)),
        format!("@{}a\ndef test_a(): pass\n", "(".repeat(depth)),
        format!("x = f'{}'\n", "{f\"".repeat(depth)),
        format!("{indented}{}pass\n", " ".repeat(300)),
    ]
}

fn read_all(source: &str) {
    let module = Module::parse(source);
    module.errors();
    let outline = module.outline();
    undefined_names(&module);
    module.imports();
    module.assignments();
    let code = Code::read("def new(): pass").unwrap();
    for definition in flatten(&outline).into_iter().take(3) {
        insert(&module, &code, InsertionPoint::After(definition));
    }
    let _ = Code::read(source);
    contributed("tests/test_a.py", Some(source), source, &Layout::default());
}

/// Runs work on a thread with the same stack as in the toolbox and the program.
fn on_a_thread(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn excessive_nesting_is_a_syntax_error() {
    on_a_thread(|| {
        for source in nested(60_000) {
            read_all(&source);
        }
    });
    let deep = Module::parse(nested(60_000).swap_remove(0));
    let errors = deep.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].what.contains("nests more than"), "{errors:?}");
}

#[test]
fn maximum_nesting_fits_the_stack() {
    on_a_thread(|| {
        for source in nested(600) {
            read_all(&source);
        }
    });
    // Real code contains long sums.
    let sum = Module::parse(format!("y = 1\nx = {}z\n", "y + ".repeat(600)));
    assert_eq!(sum.errors(), []);
    let unknown = new_undefined_names(None, &sum);
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].name, "z");
}
