//! Writes SVG pictures piece by piece. Only this module escapes their texts.

use std::fmt::Write as _;

use super::MAX_TEXT_LEN;
use crate::untrusted_text::excerpt;

/// Alignment of a text relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// The text starts at the point.
    Start,
    /// The text is centred at the point.
    Middle,
    /// The text ends at the point.
    End,
}

/// A picture under construction. Coordinates are in SVG units from the top left corner.
pub struct Svg {
    width: f64,
    body: String,
}

impl Svg {
    /// Starts an empty picture of this width, in SVG units.
    pub fn new(width: f64) -> Svg {
        Svg {
            width,
            body: String::new(),
        }
    }

    fn put(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(piece);
    }

    /// Draws a line with a CSS class.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// Draws a dot with a CSS class; `about` is its tooltip.
    pub fn dot(&mut self, class: &str, at: (f64, f64), about: &str) {
        let ((x, y), about) = (at, escape(about));
        self.put(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{about}</title></circle>"
        ));
    }

    /// Writes a text with a CSS class, aligned to a point.
    pub fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        let ((x, y), text) = (at, escape(text));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.put(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    /// Completes the picture. Screen readers read `description` in its place.
    pub fn finish(self, height: f64, description: &str) -> String {
        let (width, description, body) = (self.width, escape(description), self.body);
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{description}\">{body}</svg>"
        )
    }
}

fn escape(text: &str) -> String {
    let text = excerpt(text, MAX_TEXT_LEN);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
