//! Reads calls that are written as Python: `[search(pattern="x"), show_patch()]`.

use serde_json::{Map, Value};
use testwright_sandboxes::Pattern;
use testwright_tools::tool::ToolSpec;

use super::parse_call::{self, ParsedCall};
use crate::near_json;

static HEAD: Pattern = Pattern::new(r"\A\s*\[?\s*(?:print\(\s*)?([A-Za-z_][\w.\-]*)\(");

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
    text: &str,
    tools: &[ToolSpec],
    whole: bool,
) -> Result<(usize, Vec<ParsedCall>), (String, String)> {
    let mut reader = Reader {
        text,
        at: 0,
        whole,
        tools,
    };
    reader.skip_blank();
    let is_list = reader.take("[");
    let mut calls = Vec::new();
    loop {
        reader.skip_blank();
        if is_list && reader.take("]") {
            break;
        }
        let rest = reader.rest();
        if first_name(rest).is_none() || rest.starts_with('[') {
            if is_list && !whole {
                let problem = "the reply reached its token limit in the middle of the calls";
                return Err((String::new(), problem.to_owned()));
            }
            break;
        }
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
    whole: bool,
    tools: &'t [ToolSpec],
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
            && let Ok(prefix) = near_json::prefix(self.rest(), self.whole)
            && let Some(after) = self.rest()[prefix.end..].trim_start().strip_prefix(')')
        {
            self.at = self.text.len() - after.len();
            return Ok(parse_call::call(
                &name,
                prefix.value,
                self.tools,
                self.whole,
            ));
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
                None => match self.only_parameter(&name).filter(|_| arguments.is_empty()) {
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
        Ok(parse_call::call(&name, arguments, self.tools, self.whole))
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
        let prefix = near_json::prefix(self.rest(), self.whole)?;
        self.at += prefix.end;
        Ok(prefix.value)
    }

    /// Returns the parameter that an argument without a name must mean.
    fn only_parameter(&self, name: &str) -> Option<String> {
        let name = parse_call::tool_name(name, self.tools).ok()?;
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        let required = tool.parameters.get("required").and_then(Value::as_array);
        match required.map(Vec::as_slice) {
            Some([Value::String(only)]) => Some(only.clone()),
            _ => None,
        }
    }
}
