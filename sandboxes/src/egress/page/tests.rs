#![allow(clippy::unwrap_used)]
use super::*;

const DIGEST: &str = "2ce1b7d9d8ba9d6bba1e8b7e6c0fd2b8d28f24ce6f0b4ea5a2f36b3a9c8d7e6f";

fn page(body: &str, json: bool) -> (String, Files) {
    let url = Url::parse("https://index.example.org/simple/thing/").unwrap();
    let (body, files) = rewrite(body.as_bytes(), json, &url, "../files/").unwrap();
    (String::from_utf8(body).unwrap(), files)
}

#[test]
fn urls_point_to_relay() {
    let body = format!(
        r#"{{"meta":{{"api-version":"1.1"}},"name":"thing","files":[
            {{"filename":"thing-1.0+a-py3-none-any.whl","url":"../../f/thing-1.0+a-py3-none-any.whl","hashes":{{"sha256":"{DIGEST}"}},
             "upload-time":"2020-01-01T00:00:00Z","core-metadata":{{"sha256":"{DIGEST}"}},"requires-python":">=3.6","yanked":false}},
            {{"filename":"../../etc/passwd","url":"x"}},{{"filename":"a.whl"}},3]}}"#
    );
    let (text, files) = page(&body, true);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["files"].as_array().unwrap().len(), 1);
    let entry = &value["files"][0];
    assert_eq!(entry["url"], "../files/thing-1.0+a-py3-none-any.whl");
    assert_eq!(entry["upload-time"], "2020-01-01T00:00:00Z");
    assert_eq!(entry["core-metadata"]["sha256"], DIGEST);
    let file = &files["thing-1.0+a-py3-none-any.whl"];
    assert_eq!(
        file.url,
        "https://index.example.org/f/thing-1.0+a-py3-none-any.whl"
    );
    assert_eq!(file.sha256.as_deref(), Some(DIGEST));
    assert_eq!(file.metadata, Some(Some(DIGEST.to_owned())));
}

#[test]
fn oversized_pages_are_rejected() {
    let url = Url::parse("https://index.example.org/simple/thing/").unwrap();
    let refused = |body: &str, json| {
        rewrite(body.as_bytes(), json, &url, "x")
            .unwrap_err()
            .to_string()
    };
    let links = "<a href='a.whl'>".repeat(MAX_FILES + 1);
    assert!(refused(&links, false).contains("2000 files"));
    let files = format!("{{\"files\":[{}0]}}", "0,".repeat(MAX_FILES));
    assert!(refused(&files, true).contains("2000 files"));
    let values = format!("{{\"files\":[],\"x\":[{}0]}}", "0,".repeat(MAX_VALUES));
    assert!(refused(&values, true).contains("3000000 values"));
}

#[test]
fn html_is_rewritten() {
    let body = format!(
        "<html><base href='https://files.example.org/a/'><script>x</script>\n\
         <A class=x HREF=\"b/thing-1.0.tar.gz#sha256={DIGEST}\" data-requires-python='&gt;=3.6' data-yanked data-upload-time=\"2020-01-01T00:00:00Z\" onclick=\"x\">t</A>\n\
         <a href='thing%2B1.whl?x=1&amp;y=2' data-core-metadata=true>u</a><a href='/other/'>v</a></html>"
    );
    let (text, files) = page(&body, false);
    assert_eq!(
        text,
        format!(
            "<!DOCTYPE html>\n<html><body>\n\
             <a href=\"../files/thing-1.0.tar.gz#sha256={DIGEST}\" data-requires-python=\"&gt;=3.6\" data-upload-time=\"2020-01-01T00:00:00Z\" data-yanked=\"\">thing-1.0.tar.gz</a><br>\n\
             <a href=\"../files/thing+1.whl\" data-core-metadata=\"true\">thing+1.whl</a><br>\n</body></html>\n"
        )
    );
    assert_eq!(
        files["thing-1.0.tar.gz"].url,
        "https://files.example.org/a/b/thing-1.0.tar.gz"
    );
    assert_eq!(
        files["thing+1.whl"].url,
        "https://files.example.org/a/thing%2B1.whl?x=1&y=2"
    );
    assert_eq!(files["thing+1.whl"].metadata, Some(None));
}
