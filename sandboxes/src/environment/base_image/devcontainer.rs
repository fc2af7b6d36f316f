//! Reads the image of a `devcontainer.json`: <https://containers.dev/implementors/json_reference/>.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ImageSource;
use crate::error::SandboxError;
use crate::recipe::join_path;
use crate::sandbox::Result;

/// Reads the text of a `devcontainer.json` in this folder. The result lacks the text of the Dockerfile that it names.
pub(super) fn parse(text: &str, folder: &str) -> Result<ImageSource> {
    let invalid = |why: String| {
        let message = format!("the devcontainer in `{folder}` cannot be used: {why}");
        SandboxError::input(message)
    };
    let json: Value =
        serde_json::from_str(&plain_json(text)).map_err(|error| invalid(error.to_string()))?;
    let build = &json["build"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let path = |path: String| {
        let outside = || invalid(format!("`{path}` is outside of the repository"));
        join_path(folder, &path).ok_or_else(outside)
    };
    let args = build["args"].as_object().into_iter().flatten();
    // Values from the developer's machine are not available.
    let args = args.filter_map(|(name, value)| Some((name.clone(), text(value)?)));
    let args: BTreeMap<String, String> = args.filter(|(_, value)| !value.contains("${")).collect();
    // The keys at the top level are those of older files.
    let dockerfile = text(&build["dockerfile"]).or(text(&json["dockerFile"]));
    if let Some(dockerfile) = dockerfile {
        let context = text(&build["context"]).or(text(&json["context"]));
        return Ok(ImageSource {
            dockerfile: String::new(),
            path: Some(path(dockerfile)?),
            context: path(context.unwrap_or_default())?,
            args,
            target: text(&build["target"]),
        });
    }
    let Some(image) = text(&json["image"]) else {
        let why = match json["dockerComposeFile"].is_null() {
            true => "it names neither an image nor a Dockerfile",
            false => "testwright does not start the services of a Compose file",
        };
        return Err(invalid(why.to_owned())
            .hint("pass the Dockerfile with --dockerfile, or an image with --image"));
    };
    Ok(ImageSource {
        dockerfile: format!("FROM {}\n", image.replace(['\n', '\r'], " ")),
        ..ImageSource::default()
    })
}

/// Removes comments and trailing commas, which these files may have.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    let (mut is_quoted, mut is_escaped) = (false, false);
    while let Some(c) = chars.next() {
        if is_quoted {
            is_quoted = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            plain.push(c);
            continue;
        }
        match (c, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut before = ' ';
                for c in chars.by_ref() {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            ('}' | ']', _) => {
                let shorter = plain.trim_end().strip_suffix(',').map(str::len);
                plain.truncate(shorter.unwrap_or(plain.len()));
                plain.push(c);
            }
            _ => {
                is_quoted = c == '"';
                plain.push(c);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests;
