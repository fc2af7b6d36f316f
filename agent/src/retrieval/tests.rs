use super::*;

fn index() -> Index {
    let file = |path: &str, text: &str| RetrievedFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    Index::of_files(vec![
        file(
            "pkg/slug.py",
            "def slugify(text):\n    return text.lower()\n",
        ),
        file(
            "pkg/http.py",
            "class HTTPServer:\n    def serve_forever(self):\n        pass\n",
        ),
        file(
            "tests/test_http.py",
            "def test_server():\n    HTTPServer().serve_forever()\n",
        ),
        file("pkg/empty.py", ""),
    ])
}

#[test]
fn identifiers_match_by_parts() {
    assert_eq!(parts("HTTPServer_port2"), ["http", "server", "port2"]);
    assert_eq!(parts("x"), [""; 0]);
    assert_eq!(
        IdentifierTokenizer.tokenize("This is a `serveForever()` call."),
        ["serveforever", "serve", "forever", "call"]
    );
    let paths = |query: &str| -> Vec<String> {
        index()
            .ranked(query)
            .iter()
            .map(|file| file.path.clone())
            .collect()
    };
    assert_eq!(paths("`slugify` forgets umlauts"), ["pkg/slug.py"]);
    let mut servers = paths("The server stops: serve_forever returns");
    servers.sort();
    assert_eq!(servers, ["pkg/http.py", "tests/test_http.py"]);
    assert!(paths("nothing of it").is_empty());
}

#[test]
fn files_stop_at_budget() {
    let index = index();
    let query = "HTTPServer serve_forever test";
    let all = within(index.ranked(query), 1_000, false);
    assert_eq!(all.len(), 2);
    let tokens = |files: &[RetrievedFile]| -> usize {
        let of = |file: &RetrievedFile| tokens::count(&file.path) + tokens::count(&file.text);
        files.iter().map(of).sum()
    };
    let budget = tokens(&all) - 3;
    let cut = within(index.ranked(query), budget, false);
    assert!(tokens(&cut) <= budget && cut.len() == 2);
    assert!(all[1].text.starts_with(&cut[1].text) && cut[1].text.len() < all[1].text.len());
    assert!(within(index.ranked(query), 2, false).is_empty());
    let numbered = within(index.ranked(query), budget, true);
    assert!(tokens(&numbered) <= budget);
    assert!(numbered[0].text.starts_with("1 "), "{numbered:?}");
    assert_eq!(shown("a\n\n  b", true), "1 a\n2\n3   b");
}
