//! Python sources: a file and a model's code for it, divided by the byte 0xff. Inserting code into a valid file must
//! give a valid file, and keep the existing code.
#![no_main]

use testwright_fuzz::{bounded_target, texts};
use testwright_tools::python::edit::{Code, InsertionPoint, LineEnding, insert, replace};
use testwright_tools::python::import_edit::{add_imports, read_imports};
use testwright_tools::python::{
    Module, constant_failure, contributed, flatten, outer_names, scopes, undefined_names,
    unreached_assertions, used_code,
};
use testwright_tools::workspace::{Layout, unified};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let [Some(file), code] = texts(data) else {
        return;
    };
    let code = code.unwrap_or_default();
    let (text, lines) = LineEnding::split(&file);
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
    let ids: Vec<String> = contributed("tests/test_a.py", None, &text, &layout)
        .into_iter()
        .filter_map(|test| test.id.strip_prefix("tests/test_a.py::").map(str::to_owned))
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    used_code("tests/test_a.py", &text, &ids, &layout);
    unreached_assertions(&text, 1, 1 + text.len() % 50);
    constant_failure(&text, 1, Some(1 + text.len() % 50));
    assert!(same.is_empty(), "the same file has contributed tests: {same:?}");
    for definition in definitions.iter().take(4) {
        assert!(definition.first <= definition.line && definition.line <= definition.last);
        assert!(text.get(definition.bytes.clone()).is_some());
        outer_names(&module, &definition.bytes);
    }
    let Ok(code) = Code::read(&code) else {
        return;
    };
    let Ok(imported) = add_imports(&module, &code.imports, &|top| top.len() % 2 == 0) else {
        return;
    };
    let text = imported.text;
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
        unified(module.text(), &edited.text, true);
    }
});
