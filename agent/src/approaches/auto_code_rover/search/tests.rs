use super::*;

fn file(path: &str, text: &str) -> SearchedFile {
    SearchedFile {
        outline: Module::parse(text.to_owned()).outline(),
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

fn code() -> CodeSearch {
    let text = "class Model:\n    def save(self):\n        return self.write(1)\n\n    def load(self):\n        pass\n\n\ndef save(x):\n    x.save()\n";
    CodeSearch::of_files(vec![
        file(
            "a_tests/test_model.py",
            "def test_save():\n    Model().save()\n",
        ),
        file("pkg/model.py", text),
    ])
}

fn answer(written: &str) -> String {
    let calls = calls(written);
    assert_eq!(calls.len(), 1, "{written}");
    code().answer(&calls[0])
}

#[test]
fn calls_are_found_in_prose() {
    let search_calls = calls(
        "I need:\n- `search_class(\"Model\")`\n- search_method_in_class(method_name='save', class_name = 'Model')\n\
         1. search_code(\"x = f(\\\"a\\\")\") and again search_class('Model'); search_class(Model) is not a call",
    );
    let texts: Vec<String> = search_calls.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "search_class(\"Model\")",
            "search_method_in_class(\"save\", \"Model\")",
            "search_code(\"x = f(\\\"a\\\")\")"
        ]
    );
    assert!(calls("I have enough: research_class('x') and search().").is_empty());
}

#[test]
fn searches_return_pieces_of_files() {
    let method_match = answer("search_method_in_class('save', 'Model')");
    assert!(
        method_match.contains(
            "(\"save\", \"Model\"): 1 found\n<file>pkg/model.py</file> lines 2-3 in Model\n<code>\n    def save(self):"
        ),
        "{method_match}"
    );
    assert!(answer("search_method('save')").contains("2 found"));
    let signatures = answer("search_class_signature('Model')");
    assert!(
        signatures.contains("    def load(self)") && !signatures.contains("write(1)"),
        "{signatures}"
    );
    let lines = answer("search_code_in_file('.save()', 'test_model.py')");
    assert!(
        lines.contains("1 found") && lines.contains("in test_save"),
        "{lines}"
    );
    let near = answer("search_code('save')");
    // Code comes before tests, and adjacent lines are one place.
    let (code, tests) = near.split_once("a_tests/").unwrap_or_default();
    assert!(
        code.contains(
            ": 5 lines found, in 2 places\n<file>pkg/model.py</file> lines 1-10 in Model.save\n"
        ),
        "{near}"
    );
    assert!(
        tests.starts_with("test_model.py</file> lines 1-2 in test_save"),
        "{near}"
    );
    assert!(answer("search_class('save')").ends_with("nothing found"));
    assert!(answer("search_class('a', 'b', 'c')").contains("no search has this name"));
}

#[test]
fn other_places_are_listed_by_line() {
    let text: String = (0..5)
        .map(|n| format!("def f{n}():\n    call()\n{}", "\n".repeat(9)))
        .collect();
    let code = CodeSearch::of_files(vec![file("pkg/a.py", &text)]);
    let search_calls = calls("search_code('call()')");
    let answer = search_calls
        .iter()
        .map(|call| code.answer(call))
        .collect::<String>();
    assert!(
        answer.ends_with("also in pkg/a.py:35 in f3, pkg/a.py:46 in f4\n"),
        "{answer}"
    );
}
