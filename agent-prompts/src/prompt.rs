//! Renders a template with its struct.

use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::folder::own_template;

/// A failure to render a template, such as a syntax error.
#[derive(Debug)]
pub struct RenderError(minijinja::Error);

impl std::fmt::Display for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "render a prompt: {:#}", self.0)
    }
}

impl std::error::Error for RenderError {}

/// A prompt: a struct with the fields that its template may use.
pub trait Prompt: Serialize {
    /// Name of the prompt: the path of its template, without `.md`.
    const NAME: &'static str;
    /// Text of the built-in template.
    const TEMPLATE: &'static str;

    /// Renders the prompt, without white space at its start and end.
    ///
    /// # Errors
    ///
    /// Fails if the template has a syntax error or uses a variable that the struct lacks.
    fn render(&self) -> Result<String, RenderError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let template = own_template(Self::NAME).unwrap_or(Self::TEMPLATE);
        let text = environment
            .render_named_str(Self::NAME, template, Value::from(Serde(self)))
            .map_err(RenderError)?;
        Ok(text.trim().to_owned())
    }
}
