//! Search for the error that decided a failure, among warnings and the errors that follow from it.

use crate::pattern::Pattern;

/// Maximum lines that explain an error, beginning with its own.
const MAX_LINES: usize = 14;

/// A failed step's output, and the error that decided it.
pub(super) struct Failure<'a> {
    /// First line of the error, without pytest's and uv's marks.
    pub line: String,
    /// The error with the lines that explain it, without marks.
    pub error: String,
    pub output: &'a str,
}

/// Lines with which an error begins, without marks.
static STARTS: Pattern = Pattern::new(concat!(
    // Exceptions of Python, e.g. `django.core.exceptions.ImproperlyConfigured: …`.
    r"^(?:(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit|ImproperlyConfigured|NotFound|NotReady|Unavailable|Timeout|Failure|Missing|Undefined\w+|BadName|BadObject)\b(?::|$)",
    // uv and pip.
    r"|No solution found|Because |Failed to parse|Failed to (?:fetch|download|clone)|Git operation failed|ERROR: |TOML parse error",
    r"|[^\s]* was not found in the package registry",
    // Parsers of options, such as pytest's, and pytest's own messages.
    r"|[\w.()-]+: error: |fixture '\w+' not found|(?:Failed: )?'\w+' not found in `markers`",
    // Compilers, linkers, CMake, Meson and cargo.
    r"|(?:[^\s:]+:\d+:(?:\d+:)? )?(?:fatal )?error(?:\[E\d+\])?: |fatal: |CMake Error|[^\s:]*meson\.build:\d+:\d+: ERROR: |(?:\S+/)?ld: |collect2: |Caused by:",
    // Shells and make.
    r"|(?:\S+: )?(?:\d+: |line \d+: )?\S+: (?:command )?not found$|make(?:\[\d+\])?: \*\*\* No rule|(?:\S+: )+No such file or directory",
    r")",
));

/// Errors that only follow from another one.
static CONSEQUENCES: Pattern = Pattern::new(concat!(
    r"(?i)returned non-zero exit status|failed with exit (?:status|code)|exit status: |^failed to build|^call to `",
    r"|build backend returned|metadata-generation-failed|subprocess-exited-with-error|^error: command .* failed",
    r"|^ninja: |^make(?:\[\d+\])?: \*\*\* \[|CompileError: command|`cargo \w+` failed|Compilation failed|could not compile",
    r"|aborting due to|CMake configuration failed|ImportError while|^error: failed-wheel-build|SystemExit",
    r"|errors? during collection|^collect2: |^hint: |^Failed to (?:install|resolve|download and build|prepare)|CMakeError",
    r"|^Caused by:$|^Caused by: (?:Cargo metadata failed\. Does|`cargo metadata` exited)|^CalledProcessError|^subprocess\.|could not be collected|backend_editable|^ERROR: (?:usage|not found)",
));

/// Lines that can be ignored wherever they occur: advice of other programs and testwright's own notices.
static NOISE: Pattern = Pattern::new(concat!(
    "^(?:hint: (?:This usually indicates|Build failures usually indicate)|help: |network: |package index: ",
    "|note: (?:This error originates|This is an issue with the package))",
));

/// Messages of uv that newer versions put after `error: `.
const UV_MESSAGES: [&str; 3] = ["No solution found", "Failed to ", "Git operation failed"];

impl<'a> Failure<'a> {
    /// Finds the last error that is not a consequence of another one. Returns `None` if no line looks like an error.
    pub(super) fn read(output: &'a str) -> Option<Failure<'a>> {
        let lines: Vec<&str> = output.lines().map(without_marks).collect();
        let is_error = |line: &&str| {
            !NOISE.is_match(line) && STARTS.is_match(line) && !CONSEQUENCES.is_match(line)
        };
        let at = lines.iter().rposition(is_error)?;
        // A resolver explains its error over several lines, each of which may begin like one.
        let at = lines[..at]
            .iter()
            .rposition(|line| line.starts_with("No solution found"))
            .filter(|start| at - start < MAX_LINES)
            .unwrap_or(at);
        let explanation = lines[at..].iter().take(MAX_LINES);
        let explanation: Vec<&str> = explanation
            .copied()
            .filter(|line| !NOISE.is_match(line))
            .collect();
        Some(Failure {
            line: lines[at].to_owned(),
            error: explanation.join("\n"),
            output,
        })
    }
}

/// Returns the line that states the error, shortened.
pub(in crate::environment) fn decisive_line(output: &str) -> Option<String> {
    let failure = Failure::read(output)?;
    let line = match failure.line.starts_with("No solution found") {
        // The next line names the packages.
        true => failure.error.lines().nth(1).unwrap_or(&failure.line),
        false => &failure.line,
    };
    Some(shortened(line))
}

/// Returns a line for a note or a message, of which a long one loses its end.
pub(in crate::environment) fn shortened(line: &str) -> String {
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_owned(),
    }
}

/// Removes what pytest (`E   `) and uv (`╰─▶ `, or `error: ` and `cause: ` since 0.13) put before a line.
fn without_marks(line: &str) -> &str {
    let line = line.trim();
    let line = line
        .strip_prefix("E ")
        .or_else(|| line.strip_prefix("INTERNALERROR> "))
        .unwrap_or(line);
    let line = line
        .trim_start_matches(['×', '├', '╰', '─', '▶', '│', '💥', '!', ' '])
        .trim();
    let line = line.strip_prefix("cause: ").unwrap_or(line);
    let is_message = |text: &&str| {
        UV_MESSAGES.iter().any(|start| text.starts_with(start))
            && (STARTS.is_match(text) || CONSEQUENCES.is_match(text))
    };
    line.strip_prefix("error: ")
        .filter(is_message)
        .unwrap_or(line)
}
