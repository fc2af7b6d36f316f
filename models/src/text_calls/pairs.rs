//! Reads arguments that are elements, such as `<parameter=name>text</parameter>`.

use testwright_sandboxes::Pattern;

static PARAMETER: Pattern = Pattern::new(
    r#"<(?:[a-z]+:)?(?:parameter|param|arg)(?:\s*=\s*|\s+name=)["']?([\w.\-]+)["']?[^>\n]*>"#,
);

static PARAMETER_END: Pattern = Pattern::new(r"</(?:[a-z]+:)?(?:parameter|param|arg)>");

static ARG_PAIR: Pattern =
    Pattern::new(r"(?s)<arg_key>([^<]*)(?:</arg_key>)?\s*<arg_value>(.*?)(?:</arg_value>|\z)");

/// Returns the names and texts of `<parameter=name>text</parameter>`.
pub(super) fn parameters(inner: &str) -> Vec<(String, String)> {
    let openers: Vec<_> = PARAMETER.captures_iter(inner).collect();
    let mut pairs = Vec::new();
    for (i, opener) in openers.iter().enumerate() {
        let (Some(all), Some(name)) = (opener.get(0), opener.get(1)) else {
            continue;
        };
        let limit = openers
            .get(i + 1)
            .and_then(|next| next.get(0))
            .map_or(inner.len(), |next| next.start());
        let value = &inner[all.end()..limit];
        let last_end = PARAMETER_END.find_iter(value).last();
        let value = last_end.map_or(value, |end| &value[..end.start()]);
        pairs.push((name.as_str().to_owned(), unwrap_lines(value)));
    }
    pairs
}

/// Returns the names and texts of `<arg_key>name</arg_key><arg_value>text</arg_value>`.
pub(super) fn arg_pairs(inner: &str) -> Vec<(String, String)> {
    ARG_PAIR
        .captures_iter(inner)
        .map(|c| (c[1].trim().to_owned(), unwrap_lines(&c[2])))
        .collect()
}

/// Returns the names and texts in a text that consists of elements; `None` for any other text.
pub(super) fn elements(text: &str) -> Option<Vec<(String, String)>> {
    let text = text.trim();
    let starts = text.starts_with("<parameter") || text.starts_with("<arg_key>");
    if !starts || !text.ends_with('>') {
        return None;
    }
    let pairs = [parameters(text), arg_pairs(text)].concat();
    (!pairs.is_empty()).then_some(pairs)
}

/// Removes the newlines that only separate a value from its tags.
pub(super) fn unwrap_lines(value: &str) -> String {
    let value = value
        .strip_prefix("\r\n")
        .or_else(|| value.strip_prefix('\n'))
        .unwrap_or(value);
    let value = value
        .strip_suffix("\r\n")
        .or_else(|| value.strip_suffix('\n'))
        .unwrap_or(value);
    value.to_owned()
}
