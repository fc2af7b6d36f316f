#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;
use crate::testing::Fixture;

const CODE: &str = "class A:\n    @property\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n";

fn fixed(edits: &[serde_json::Value]) -> Result<String, String> {
    let f = Fixture::new(&[("a.py", CODE.as_bytes())]);
    let mut files = FixedFiles::default();
    let text = |error: ToolError| error.to_string();
    for edit in edits {
        let mut edit = edit.clone();
        edit["path"] = "a.py".into();
        let edit: FixEdit = serde_json::from_value(edit).unwrap();
        files.add(&f.workspace, &edit).map_err(text)?;
    }
    Ok(files.texts().map_err(text)?.remove(0).1)
}

#[test]
fn function_replacement_keeps_decorators() {
    let of = |function: &str, new: &str| fixed(&[json!({"function": function, "new": new})]);
    assert_eq!(
        of("A.f", "def f(self):\n    # new\n    return 2\n").unwrap(),
        CODE.replacen("        return 1", "        # new\n        return 2", 1)
    );
    let own = of("A.f", "    @cached\n    def f(self): return 3").unwrap();
    assert!(
        own.starts_with("class A:\n    @cached\n    def f(self): return 3\n\n    def g"),
        "{own}"
    );
    let last = CODE.find("    def g").unwrap();
    assert_eq!(of("A.g", "").unwrap(), &CODE[..last]);
    assert!(of("A.ff", "").unwrap_err().contains("nearest are: A.f"));
}

#[test]
fn function_replacement_keeps_tabs_and_strings() {
    let before = CODE.replace("    ", "\t");
    let f = Fixture::new(&[("a.py", before.as_bytes())]);
    let new = "def g(self):\n    return '''\nx\n'''\n";
    let edit = json!({"path": "a.py", "function": "A.g", "new": new});
    let edit: FixEdit = serde_json::from_value(edit).unwrap();
    let mut files = FixedFiles::default();
    files.add(&f.workspace, &edit).unwrap();
    let text = files.texts().unwrap().remove(0).1;
    assert!(
        text.ends_with("\n\n\tdef g(self):\n\t\treturn '''\nx\n'''\n"),
        "{text}"
    );
}

#[test]
fn edits_use_original_line_numbers() {
    let added = json!({"old": "class A:\n", "new": "import x\n\nclass A:\n"});
    let twice = json!({"old": "return 1", "new": "return 2"});
    let refused = fixed(&[added.clone(), twice]).unwrap_err();
    assert!(refused.contains("    4         return 1"), "{refused}");
    let second = json!({"old": "return 1", "new": "return 2", "line": 7});
    let text = fixed(&[added, second]).unwrap();
    assert_eq!(
        text,
        format!(
            "import x\n\n{}return 2\n",
            CODE.strip_suffix("return 1\n").unwrap()
        )
    );
}

#[test]
fn edits_can_target_earlier_edits() {
    let edits = [
        json!({"old": "def g(self):", "new": "def h(self, x):"}),
        json!({"old": "h(self, x)", "new": "h(self, y)"}),
        json!({"function": "A.f", "new": "def f(self):\n    return 5"}),
    ];
    let text = fixed(&edits).unwrap();
    assert!(
        text.contains("h(self, y)") && text.contains("return 5"),
        "{text}"
    );
}

#[test]
fn unparsable_fix_is_refused() {
    let broken = fixed(&[json!({"old": "def g(self):", "new": "def g(:"})]).unwrap_err();
    assert!(broken.contains("does not parse"), "{broken}");
}
