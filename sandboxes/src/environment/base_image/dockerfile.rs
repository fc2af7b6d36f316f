//! Reads what a Dockerfile refers to, before the engine builds it.
//!
//! The Dockerfile is untrusted. The engine resolves images and addresses itself, with the user's rights and network, so
//! a reference that cannot be read with certainty is refused.

use std::collections::BTreeMap;

use regex::Captures;

use crate::error::SandboxError;
use crate::pattern::Pattern;
use crate::sandbox::Result;

/// Everything outside of the Dockerfile that it uses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct References {
    /// Names of images.
    pub images: Vec<String>,
    /// Image below the last stage; `None` for `scratch`.
    pub base: Option<String>,
    /// Whether it copies files of the context.
    pub copies_files: bool,
}

/// Returns the references of a Dockerfile that is built with these arguments.
pub(super) fn references(text: &str, args: &BTreeMap<String, String>) -> Result<References> {
    let mut all = References::default();
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    // The stages so far: lower-case name, and the image below.
    let mut stages: Vec<(String, Option<String>)> = Vec::new();
    for instruction in instructions(text)? {
        let words = instruction.split_whitespace();
        let mut words = words.skip_while(|word| word.eq_ignore_ascii_case("ONBUILD"));
        let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
        let words: Vec<&str> = words.collect();
        let flags = words.iter().take_while(|word| word.starts_with("--"));
        let flags: Vec<&str> = flags.copied().collect();
        let operands = &words[flags.len()..];
        let stage = |name: &str| {
            let stage = stages
                .iter()
                .find(|(own, _)| own.eq_ignore_ascii_case(name));
            stage.map(|(_, image)| image.clone())
        };
        match keyword.as_str() {
            "ARG" if stages.is_empty() => {
                for word in operands {
                    let (name, default) = word.split_once('=').unwrap_or((word, ""));
                    let default = || expand(default.trim_matches(['"', '\'']), &variables);
                    let value = args.get(name).cloned().unwrap_or_else(default);
                    variables.insert(name.to_owned(), value);
                }
            }
            "FROM" => {
                let name = operands.first().copied().unwrap_or_default();
                let name = expand(name, &variables);
                let image = match stage(&name) {
                    Some(image) => image,
                    None if name == "scratch" => None,
                    None => Some(all.add(&name)?),
                };
                all.base.clone_from(&image);
                let alias = operands.get(2).copied().unwrap_or_default();
                stages.push((alias.to_lowercase(), image));
            }
            "COPY" | "ADD" => {
                if keyword == "ADD" && operands.iter().any(|word| word.contains([':', '$', '\\'])) {
                    return Err(refused(
                        &instruction,
                        "it may download a file, which the network of builds does not allow",
                        "use RUN with curl, and list the host in build.allowed-hosts",
                    ));
                }
                let from = flags.iter().find_map(|flag| flag.strip_prefix("--from="));
                match from {
                    None => all.copies_files = true,
                    Some(name) if name.parse::<usize>().is_ok() || stage(name).is_some() => {}
                    Some(name) => {
                        all.add(name)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

impl References {
    fn add(&mut self, image: &str) -> Result<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        if image.is_empty() || !image.chars().all(is_plain) {
            let message = format!("invalid Dockerfile: `{image}` is not the name of an image");
            return Err(SandboxError::input(message)
                .hint("write the name of the image out, or give the variable in it a default"));
        }
        self.images.push(image.to_owned());
        Ok(image.to_owned())
    }
}

fn refused(instruction: &str, why: &str, hint: &str) -> SandboxError {
    let message = format!("unsupported Dockerfile: `{}`: {why}", instruction.trim());
    SandboxError::input(message).hint(hint)
}

/// Splits a Dockerfile into instructions, each on one line.
fn instructions(text: &str) -> Result<Vec<String>> {
    let ambiguous = |line: &str| {
        let why = "engines read this line in different ways";
        refused(line, why, "write each instruction without such a line")
    };
    let (mut all, mut instruction) = (Vec::new(), String::new());
    let mut has_comment = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let start = line.trim_start();
        if let Some(comment) = start.strip_prefix('#') {
            let directive = comment
                .split_once('=')
                .filter(|(name, _)| name.trim().eq_ignore_ascii_case("escape") && all.is_empty());
            if directive.is_some_and(|(_, value)| value.trim() != "\\") {
                return Err(ambiguous(line));
            }
            // Some engines take an indented comment for a part of the instruction, which then may end there.
            has_comment |= !instruction.is_empty() && !line.starts_with('#');
            continue;
        }
        if start.is_empty() {
            continue;
        }
        let keyword = start.split_whitespace().next().unwrap_or_default();
        let is_reference = ["FROM", "COPY", "ADD", "ONBUILD"]
            .iter()
            .any(|other| keyword.eq_ignore_ascii_case(other));
        let line = line.trim_end();
        if line.ends_with("\\\\") || (is_reference && has_comment && !instruction.is_empty()) {
            return Err(ambiguous(line));
        }
        match line.strip_suffix('\\') {
            Some(part) => instruction.push_str(part),
            None => {
                instruction.push_str(line);
                all.push(std::mem::take(&mut instruction));
                has_comment = false;
            }
        }
    }
    all.push(instruction);
    all.retain(|instruction| !instruction.trim().is_empty());
    Ok(all)
}

static VARIABLE: Pattern = Pattern::new(r"\$(?:(\w+)|\{(\w+)(?::-([^${}]*))?\})");

/// Replaces `$NAME`, `${NAME}` and `${NAME:-default}`.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let value = |found: &Captures<'_>| {
        let name = found
            .get(1)
            .or(found.get(2))
            .map_or("", |name| name.as_str());
        let default = found.get(3).map_or("", |default| default.as_str());
        let value = variables.get(name).filter(|value| !value.is_empty());
        value.map_or(default, String::as_str).to_owned()
    };
    VARIABLE.replace_all(text, value).into_owned()
}

#[cfg(test)]
mod tests;
