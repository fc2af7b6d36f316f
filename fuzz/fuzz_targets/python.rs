//! Python sources: a file, and code that a model gives for it, divided by the byte 0xff. What is put into a file that
//! parses leaves a file that parses, and what stood there stays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testwright_fuzz::texts;
use testwright_tools::python::edit::{
    Code, InsertionPoint, Lines, add_imports, insert, read_imports, replace,
};
use testwright_tools::python::{
    Module, contributed, flatten, outer_names, scopes, undefined_names,
};
use testwright_tools::workspace::{Layout, unified};

fuzz_target!(init: testwright_fuzz::prepare(), |data: &[u8]| {
    let [Some(file), code] = texts(data) else {
        return;
    };
    let code = code.unwrap_or_default();
    let (text, lines) = Lines::split(&file);
    assert_eq!(lines.join(&text), file);
    let module = Module::parse(text.clone());
    let is_whole = module.errors().is_empty();
    let outline = module.outline();
    let definitions = flatten(&outline);
    undefined_names(&module);
    scopes(&text);
    module.imports();
    module.assignments();
    let _ = read_imports(std::slice::from_ref(&code));
    let layout = Layout::default();
    contributed("tests/test_a.py", Some(&code), &text, &layout);
    let same = contributed("tests/test_a.py", Some(&text), &text, &layout);
    assert!(same.is_empty(), "the same file has contributed tests: {same:?}");
    for definition in definitions.iter().take(4) {
        assert!(definition.first <= definition.line && definition.line <= definition.last);
        assert!(text.get(definition.bytes.clone()).is_some());
        outer_names(&module, &definition.bytes);
    }
    let Ok(code) = Code::read(&code) else {
        return;
    };
    let Ok((text, _)) = add_imports(&module, &code.imports) else {
        return;
    };
    let module = Module::parse(text);
    assert!(!is_whole || module.errors().is_empty(), "an import broke the file");
    let outline = module.outline();
    let mut edits = vec![insert(&module, &code, InsertionPoint::End)];
    for definition in flatten(&outline).into_iter().take(4) {
        edits.push(insert(&module, &code, InsertionPoint::After(definition)));
        edits.push(insert(&module, &code, InsertionPoint::In(definition)));
        edits.push(replace(&module, definition, &code));
    }
    for edited in edits {
        assert!(edited.first <= edited.last, "{}-{}", edited.first, edited.last);
        assert!(edited.text.lines().count() >= edited.last);
        Module::parse(edited.text.as_str()).new_errors(Some(&module));
        unified(module.text(), &edited.text, 3);
    }
});
