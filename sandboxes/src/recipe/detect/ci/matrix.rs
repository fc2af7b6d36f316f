//! Values of a workflow's matrix, which stand in its commands as `${{ matrix.name }}`.

use std::borrow::Cow;

use regex::Captures;

use crate::pattern::Pattern;

/// Maximum number of references that are replaced in a file, because each searches the file before it.
const MAX_REFERENCES: usize = 200;

static REFERENCE: Pattern = Pattern::new(r"\$\{\{ *matrix\.([\w-]+) *\}\}");

/// A list of values, in brackets or with an item on each line.
static LIST: Pattern =
    Pattern::new(r"(?m)^[ \t-]*([\w-]+):[ \t]*(?:\[([^\[\]]*)\]|((?:\n[ \t]*- [^\n]*)+))");

/// Words in values for versions that are not the usual ones.
static UNUSUAL: Pattern = Pattern::new("main|master|dev|nightly|min|low|old|pre|alpha|beta|rc");

/// Replaces references to the matrix by a value of the list that precedes them: the last usual one, which is the newest as
/// a rule. References without such a value stay.
pub(super) fn with_values(text: &str) -> Cow<'_, str> {
    let mut left = MAX_REFERENCES;
    REFERENCE.replace_all(text, |reference: &Captures<'_>| {
        let whole = reference.get(0).map_or(0..0, |whole| whole.range());
        let value = (left > 0).then(|| newest_value(&text[..whole.start], &reference[1]));
        left = left.saturating_sub(1);
        value.flatten().unwrap_or_else(|| text[whole].to_owned())
    })
}

fn newest_value(before: &str, name: &str) -> Option<String> {
    let lists = LIST.captures_iter(before);
    let list = lists.filter(|list| &list[1] == name).last()?;
    let text = list.get(2).or(list.get(3))?.as_str();
    let mut values = text.lines().flat_map(|line| {
        let line = line.split(" #").next().unwrap_or_default();
        line.split(',').map(|value| {
            value
                .trim()
                .trim_start_matches("- ")
                .trim_matches(['"', '\'', ' '])
        })
    });
    let is_usual = |value: &&str| {
        !value.is_empty() && !value.contains(['$', '{', '}', ':']) && !UNUSUAL.is_match(value)
    };
    values.rfind(is_usual).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKFLOW: &str = "jobs:\n  old:\n    strategy:\n      matrix:\n        list: [a.txt]\n    steps:\n    - run: use ${{ \
                            matrix.list }}\n  new:\n    strategy:\n      matrix:\n        list: [\n          'b.txt', # as \
                            usual\n          \"c.txt\",\n          main.txt\n        ]\n        django:\n          - 4.2\n          - \
                            '5.1'  # newest\n        many: ${{ fromJSON('[1]') }}\n        only: [main.txt]\n    steps:\n";

    #[test]
    fn references_get_newest_usual_value() {
        for (command, expected) in [
            ("-r ${{ matrix.list }}", "-r c.txt"),
            ("Django==${{matrix.django}}", "Django==5.1"),
            ("${{ matrix.many }}", "${{ matrix.many }}"),
            ("${{ matrix.only }}", "${{ matrix.only }}"),
            ("${{ matrix.other }}", "${{ matrix.other }}"),
            ("${{ github.ref }}", "${{ github.ref }}"),
        ] {
            let text = format!("{WORKFLOW}    - run: {command}\n");
            let replaced = with_values(&text);
            let expected = format!("    - run: {expected}\n");
            assert!(replaced.ends_with(&expected), "{replaced}");
            assert!(replaced.contains("- run: use a.txt\n"));
        }
    }
}
