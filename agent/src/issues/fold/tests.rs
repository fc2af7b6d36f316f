#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn issue_without_repeats_is_unchanged() {
    let issue = "Title\n\nIt fails:\n\n```python\n>>> f(1)\n2\n```\n\n- a\n- b\n";
    assert_eq!(folded(issue), None);
}

#[test]
fn template_comments_are_removed() {
    let issue = "Title\n\n<!-- Thank you!\n\nPlease fill in -->\n\n### What happens?\n<!-- Tell us -->\nIt fails.\n\n```html\n<!-- kept -->\n```\n";
    assert_eq!(
        folded(issue).unwrap(),
        "Title\n\n### What happens?\nIt fails.\n\n```html\n<!-- kept -->\n```"
    );
    assert_eq!(folded("Title\n\n<!-- never ends\n"), None);
}

#[test]
fn repeated_text_is_folded() {
    let pasted: String = (0..8)
        .map(|n| format!("Some sentence with the number {n} that says something.\n"))
        .collect();
    let issue = format!("Title\n\n{pasted}\nAnd again:\n\n{pasted}\nThe end.\n");
    let folded_text = folded(&issue).unwrap();
    assert!(folded_text.contains("[… 8 lines folded: the same as above, from “Some sentence with the number 0 that says somethin…” on]\n\nThe end."), "{folded_text}");
    assert!(hint(&folded_text).contains("path `ISSUE`") && hint(&issue).is_empty());
    assert_eq!(folded_text.matches("number 7").count(), 1);
}

#[test]
fn version_tables_keep_python() {
    let versions = "INSTALLED VERSIONS\n------------------\ncommit: None\npython: 3.7.3 (default, Mar 27 2019)\nlibhdf5: 1.10.4\nxarray: 0.12.3\npandas: 0.25.1\nnumpy: 1.17.1\nscipy: 1.3.1\nnetCDF4: None\npydap: None\nh5netcdf: None\nsphinx: None\n";
    let folded_text = folded(&format!("Title\n\nIt fails.\n\n{versions}")).unwrap();
    assert!(folded_text.contains("python: 3.7.3 (default, Mar 27 2019)\n[… 10 lines of versions folded, from “commit: None” on]"), "{folded_text}");
    // A few lines are not a table.
    assert_eq!(folded("Title\n\nnumpy: 1.17.1\nscipy: 1.3.1\n"), None);
}

#[test]
fn empty_sections_are_removed() {
    let text = "## Crash in f\n\n## Steps\n\nf(1)\n\n### Expected\n\n_No response_\n\n## Version\n\n### Python\n3.11\n\n```\n## none\n```\n\n## Screenshots\n<!-- add some -->\n\n## Checklist\n";
    assert_eq!(
        folded(text).unwrap(),
        "## Crash in f\n\n## Steps\n\nf(1)\n\n## Version\n\n### Python\n3.11\n\n```\n## none\n```"
    );
    assert_eq!(folded("f(1) fails\n# expected: 3"), None);
}

#[test]
fn similar_lines_are_folded() {
    let log: String = (0..300)
        .map(|n| {
            format!(
                "2024-01-01 12:00:{:02} INFO worker-{n} reading source file {n}\n",
                n % 60
            )
        })
        .collect();
    let folded_text = folded(&format!("Title\n\n```\n{log}```\n\nThe end.")).unwrap();
    assert!(
        folded_text.contains("[… 296 like lines folded]\n2024-01-01 12:00:59 INFO worker-299"),
        "{folded_text}"
    );
    let data: String = (0..300)
        .map(|n| format!("    row ( {n}, {n} ),\n"))
        .collect();
    assert_eq!(
        folded(&format!(
            "Title\n\n```python\ndata = [\n{data}]\n```\n\nThe end."
        )),
        None
    );
}
