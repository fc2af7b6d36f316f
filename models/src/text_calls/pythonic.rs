//! Reads calls that are written as Python: `[search(pattern="x"), show_patch()]`.

use serde_json::{Map, Value};
use testwright_sandboxes::Pattern;

use super::Scan;
use super::parse_call::ParsedCall;
use crate::near_json;

static HEAD: Pattern =
    Pattern::new(r"\A\s*\[?\s*(?:[A-Za-z_]\w*\s*=\s*)?(?:print\(\s*)?([A-Za-z_][\w.\-]*)\(");

static ASSIGNMENT: Pattern = Pattern::new(r"\A[A-Za-z_]\w*\s*=\s*");

/// A line that prints the result of a call.
static PRINT_RESULT: Pattern = Pattern::new(r"\Aprint\(\s*[A-Za-z_]\w*\s*\)");

/// A text that consists of one fence, or of code in backquotes or a tag.
static FENCED: Pattern =
    Pattern::new(r"(?s)\A(?:```(?:[a-z_]*)[ \t]*\n(.*)\n[ \t]*```|<code>(.*)</code>|`([^`]+)`)\z");

/// Returns the code in a text that consists of nothing else, otherwise the text.
pub(super) fn without_fence(text: &str) -> &str {
    let groups = FENCED.captures(text);
    let code = groups.and_then(|groups| groups.iter().skip(1).flatten().next());
    code.map_or(text, |code| code.as_str().trim())
}

static KEYWORD: Pattern = Pattern::new(r"\A([A-Za-z_]\w*)\s*=");

/// Returns the first function's name if a text starts like calls in Python.
pub(super) fn first_name(text: &str) -> Option<&str> {
    Some(HEAD.captures(text)?.get(1)?.as_str())
}

/// Reads a list of calls, or calls one after the other. Also returns the offset after them.
///
/// # Errors
///
/// Fails with the name of the function, and the problem with its call.
pub(super) fn read(
    scan: &Scan<'_>,
    text: &str,
) -> Result<(usize, Vec<ParsedCall>), (String, String)> {
    let mut reader = Reader { text, at: 0, scan };
    reader.skip_blank();
    let is_list = reader.take("[");
    let mut calls = Vec::new();
    loop {
        reader.skip_blank();
        if is_list && reader.take("]") {
            break;
        }
        if let Some(print) = PRINT_RESULT
            .find(reader.rest())
            .filter(|_| !calls.is_empty())
        {
            reader.at += print.end();
            continue;
        }
        let rest = reader.rest();
        if first_name(rest).is_none() || rest.starts_with('[') {
            if is_list && !scan.whole {
                let problem = "the reply reached its token limit in the middle of the calls";
                return Err((String::new(), problem.to_owned()));
            }
            break;
        }
        let assignment = ASSIGNMENT.find(rest).map_or(0, |name| name.end());
        reader.at += assignment;
        let printed = reader.take("print(");
        calls.push(reader.call()?);
        reader.skip_blank();
        if printed {
            reader.take(")");
            reader.skip_blank();
        }
        while reader.take(",") || reader.take(";") {
            reader.skip_blank();
        }
    }
    Ok((reader.at, calls))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    scan: &'t Scan<'t>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn skip_blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn call(&mut self) -> Result<ParsedCall, (String, String)> {
        self.skip_blank();
        let Some((name, _)) = self.rest().split_once('(') else {
            let problem = "there is no call in `print(…)`".to_owned();
            return Err((String::new(), problem));
        };
        self.at += name.len() + 1;
        let name = name.trim().to_owned();
        let fail = |problem: String| {
            let problem = format!("its arguments cannot be read: {problem}");
            Err((name.clone(), problem))
        };
        let mut arguments = Map::new();
        self.skip_blank();
        if self.rest().starts_with('{')
            && let Ok(prefix) = near_json::prefix(self.rest(), self.scan.whole)
            && let Some(after) = self.rest()[prefix.end..].trim_start().strip_prefix(')')
        {
            self.at = self.text.len() - after.len();
            return Ok(self.scan.call(&name, prefix.value));
        }
        loop {
            self.skip_blank();
            if self.take(")") {
                break;
            }
            let rest = self.rest();
            let keyword = KEYWORD.captures(rest).and_then(|captures| captures.get(1));
            let key = match keyword {
                Some(keyword) => {
                    self.at += rest.find('=').unwrap_or_default() + 1;
                    keyword.as_str().to_owned()
                }
                None => match self.parameter_at(&name, arguments.len()) {
                    Some(key) if !rest.is_empty() => key,
                    _ if rest.is_empty() => return fail("the call has no `)`".to_owned()),
                    _ => return fail("an argument needs its name, as in `name=value`".to_owned()),
                },
            };
            let value = match self.value() {
                Ok(value) => value,
                Err(problem) => return fail(problem.to_string()),
            };
            if arguments.insert(key.clone(), value).is_some() {
                return fail(format!("\"{}\" is given twice", near_json::excerpt(&key)));
            }
            self.skip_blank();
            if !self.take(",") && !self.rest().starts_with(')') {
                return fail("`,` or `)` was expected after an argument".to_owned());
            }
        }
        let arguments = Value::Object(arguments);
        Ok(self.scan.call(&name, arguments))
    }

    /// Reads a value. Adjacent strings are one string, as in Python.
    fn value(&mut self) -> Result<Value, near_json::Problem> {
        let mut value = self.single_value()?;
        while let Value::String(text) = &mut value {
            let lead = self.rest().trim_start();
            if !lead.starts_with(['"', '\'']) {
                break;
            }
            match self.single_value()? {
                Value::String(more) => text.push_str(&more),
                other => return Ok(other),
            }
        }
        Ok(value)
    }

    fn single_value(&mut self) -> Result<Value, near_json::Problem> {
        let prefix = near_json::prefix(self.rest(), self.scan.whole)?;
        self.at += prefix.end;
        Ok(prefix.value)
    }

    /// Returns the parameter that an argument without a name means at this position: the only required one, or
    /// the one at the same position in the schema.
    fn parameter_at(&self, name: &str, position: usize) -> Option<String> {
        let tool = self.scan.find_tool(name).ok()?;
        let required = tool.parameters.get("required").and_then(Value::as_array);
        match (required.map(Vec::as_slice), position) {
            (Some([Value::String(only)]), 0) => Some(only.clone()),
            (Some([_]), _) => None,
            _ => {
                let properties = tool.parameters.get("properties")?.as_object()?;
                properties.keys().nth(position).cloned()
            }
        }
    }
}
