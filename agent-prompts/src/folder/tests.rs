#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn built_in_templates_are_valid() {
    for (name, template) in ALL {
        check(name, template).unwrap();
    }
}

#[test]
fn broken_templates_are_rejected() {
    let problem = |name: &str, template: &str| match check(name, template).unwrap_err() {
        FolderError::Broken { problem, .. } => problem,
        other => format!("{other:?}"),
    };
    assert_eq!(
        problem("review-doubt", "{{ reasons }}"),
        "it uses `reasons`; the fields of this prompt are: opinion, reason, beyond"
    );
    assert_eq!(
        problem("try-a-fix", "{{ reason }}"),
        "it uses `reason`, and this prompt has no fields"
    );
    assert!(problem("review", "{% if issue %}").contains("syntax error"));
    assert!(problem("reviews", "").contains("Unknown"));
    check(
        "review-doubt",
        "{% for line in beyond %}{{ line }}{% endfor %}",
    )
    .unwrap();
}

#[test]
fn names_are_paths_without_suffix() {
    let folder = tempfile_dir();
    std::fs::create_dir_all(folder.join("zero-shot")).unwrap();
    std::fs::write(folder.join("zero-shot/task.md"), "x").unwrap();
    std::fs::write(folder.join("notes.txt"), "x").unwrap();
    let mut templates = BTreeMap::new();
    let read_text = |path: &Path| std::fs::read_to_string(path);
    read(&folder, "", &read_text, &mut templates).unwrap();
    assert_eq!(
        templates.into_keys().collect::<Vec<_>>(),
        ["zero-shot/task"]
    );
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile_dir() -> PathBuf {
    let name = format!("testwright-prompts-{}", std::process::id());
    std::env::temp_dir().join(name)
}
