//! Rendering a template with its struct.

use std::path::PathBuf;
use std::sync::OnceLock;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

#[derive(Debug)]
pub struct RenderError(minijinja::Error);

impl std::fmt::Display for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "render a prompt: {:#}", self.0)
    }
}

impl std::error::Error for RenderError {}

/// Templates over ours.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// From now on, templates of this folder (`NAME.md`) stand in for ours of the same name. The first call counts.
pub fn use_folder(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// A template over ours may name nothing that ours may not.
fn template_over(name: &str) -> Result<Option<String>, RenderError> {
    let Some(folder) = FOLDER.get() else {
        return Ok(None);
    };
    let path = folder.join(format!("{name}.md"));
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("read {}: {error}", path.display());
            let kind = minijinja::ErrorKind::TemplateNotFound;
            Err(RenderError(minijinja::Error::new(kind, message)))
        }
    }
}

/// A prompt: a struct of what the template may use.
pub trait Prompt: Serialize {
    const NAME: &'static str;
    const TEMPLATE: &'static str;

    /// The prompt's text, without white space at its ends.
    fn render(&self) -> Result<String, RenderError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let over = template_over(Self::NAME)?;
        let template = over.as_deref().unwrap_or(Self::TEMPLATE);
        let text = environment
            .render_named_str(Self::NAME, template, Value::from(Serde(self)))
            .map_err(RenderError)?;
        Ok(text.trim().to_owned())
    }
}
