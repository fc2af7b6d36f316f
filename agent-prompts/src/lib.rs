//! Prompts as files, with one typed struct each.
//!
//! A template is a file `templates/NAME.md`; templates of one approach share a folder with its name. The
//! struct of the same name holds every field that the template may use. A template that uses any other field
//! fails in this crate's tests instead of in front of a model.
//! This crate has no notion of models, tools or repositories: callers pass plain text.

#![warn(missing_docs)]

mod code;
mod folder;
mod prompt;

pub use code::{CodeBlock, CodeFile, TestFile};
pub use folder::{FolderError, own_templates, use_folder};
pub use prompt::{Prompt, RenderError};

use serde::Serialize;

/// Declares prompts: for each, the struct and its template file.
macro_rules! prompts {
    ($($(#[$doc:meta])* $name:ident, $file:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, Serialize)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl Prompt for $name {
                const NAME: &'static str = $file;
                const TEMPLATE: &'static str = include_str!(concat!("../templates/", $file, ".md"));
            }
        )*

        /// Names and templates of all prompts.
        pub const ALL: &[(&str, &str)] = &[$(($file, <$name as Prompt>::TEMPLATE)),*];

        /// The field names of each prompt.
        const FIELDS: &[(&str, &[&str])] = &[$(($file, &[$(stringify!($field)),*])),*];
    };
}

prompts! {
    /// System message for the repair of an environment.
    EnvironmentRepairSystem, "environment-repair/system" {
        /// Maximum number of amendments.
        tries: u32,
    }

    /// User message for the repair of an environment.
    EnvironmentRepairTask, "environment-repair/task" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Date of the code.
        date: Option<String>,
        /// Python versions that the sandbox has.
        pythons: Vec<String>,
        /// Origin of the recipe.
        origin: String,
        /// Recipe as TOML.
        recipe: String,
        /// Error of the build.
        error: String,
        /// Results of the tests that were tried.
        sample: Option<String>,
        /// End of the build's log.
        log: String,
        /// Names in the root folder.
        files: Vec<String>,
        /// Lines of the repository's files about installing and testing, with their places.
        commands: Vec<String>,
    }

    /// System message of the approach `testwright`.
    TestwrightSystem, "testwright/system" {
        /// Maximum number of model calls.
        max_steps: u32,
    }

    /// Instructions after the task: write a passing test first.
    PassingFirst, "testwright/passing-first" {}

    /// Instructions after the task: find the faulty code first.
    CodeFirst, "testwright/code-first" {
        /// Functions as `path::Class.method`, the most likely first.
        functions: Vec<String>,
    }

    /// System message of the approach `swe-agent-plus`.
    SweAgentPlusSystem, "swe-agent-plus/system" {
        /// Maximum number of model calls.
        max_steps: u32,
    }

    /// System message of the approach `swe-agent`.
    SweAgentSystem, "swe-agent/system" {
        /// Maximum number of model calls.
        max_steps: u32,
    }

    /// System message of the approach `zero-shot`: answer with a unified diff.
    ZeroShotSystem, "zero-shot/system" {}

    /// System message of the approaches `zero-shot-plus` and `libro`: answer with function blocks.
    ZeroShotPlusSystem, "zero-shot-plus/system" {}

    /// System message of the approach `zero-shot-file`: answer with a complete file.
    ZeroShotFileSystem, "zero-shot-file/system" {}

    /// User message of the approaches that write in one call.
    ZeroShotTask, "zero-shot/task" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Code patch for the issue; it may be right or wrong.
        code_patch: Option<String>,
        /// Whether the code patch is truncated.
        is_patch_cut: bool,
        /// Test files in which to put the test, if they are given.
        test_files: Vec<TestFile>,
        /// Retrieved files, the most relevant first.
        files: Vec<CodeFile>,
        /// Whether `files` are those that a code patch changes, rather than retrieved ones.
        are_of_patch: bool,
        /// Number of lines of the last file that are omitted because the budget ran out.
        lines_left_out: usize,
        /// Whether the lines of the files are numbered.
        are_numbered: bool,
    }

    /// LIBRO: asks whether the failure matches the issue.
    LibroJudge, "libro/judge" {
        /// Text of the issue.
        issue: String,
        /// The reply with the test.
        test: String,
        /// Output of pytest on the old code.
        failure: String,
    }

    /// Otter's localizer: asks for the relevant files.
    OtterFiles, "otter/files" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Whether test files are listed; otherwise source files.
        tests: bool,
        /// Paths to choose from.
        files: Vec<String>,
        /// Maximum number of files to name.
        most: usize,
    }

    /// Otter's localizer: asks for the relevant functions of these files.
    OtterFunctions, "otter/functions" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Whether these are test files; otherwise source files.
        tests: bool,
        /// Files with the names of their functions.
        files: Vec<CodeFile>,
    }

    /// Otter's planner: asks what to read.
    OtterPlan, "otter/plan" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Localized functions, `path::function`.
        code: Vec<CodeFile>,
    }

    /// Otter's planner: asks to reflect on the plan and improve it.
    OtterReflect, "otter/reflect" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Possible actions of the plan, one each.
        valid: Vec<String>,
        /// Actions of the plan that are not possible, one each.
        invalid: Vec<String>,
        /// Localized functions, `path::function`.
        code: Vec<CodeFile>,
    }

    /// Otter's generator: asks for the test.
    OtterGenerate, "otter/generate" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Localized functions, `path::function`.
        code: Vec<CodeFile>,
        /// Path of the test file.
        path: String,
        /// Name of the new test; empty if the plan does not give one.
        name: String,
        /// Test to modify; empty for a new test.
        original: String,
        /// Imports and outline of the test file.
        structure: String,
    }

    /// e-Otter++: asks for the issue in another form.
    EOtterRewrite, "e-otter-plus-plus/rewrite" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
    }

    /// System message of the approach `assert-flip`: a passing test, as function blocks.
    AssertFlipSystem, "assert-flip/system" {}

    /// AssertFlip: the test cannot be used, or does not pass.
    AssertFlipRefine, "assert-flip/refine" {
        /// The reply with the test.
        reply: String,
        /// Why the reply cannot be used; empty if the test was run.
        problem: String,
        /// Output of pytest; empty if the test was not run.
        failure: String,
    }

    /// AssertFlip: asks to invert the assertions.
    AssertFlipFlip, "assert-flip/flip" {
        /// Text of the issue.
        issue: String,
        /// The passing test.
        reply: String,
    }

    /// AssertFlip: asks whether the failure is the one in the issue.
    AssertFlipValidate, "assert-flip/validate" {
        /// Text of the issue.
        issue: String,
        /// The reply with the failing test.
        reply: String,
        /// Output of pytest on the old code.
        failure: String,
    }

    /// AssertFlip: the validator rejected the test.
    AssertFlipRegenerate, "assert-flip/regenerate" {
        /// The reply with the rejected test.
        reply: String,
        /// Reasons of the validator.
        reasons: String,
        /// Whether the test should pass before its assertions are inverted.
        passes_first: bool,
    }

    /// System message of the approach `auto-code-rover`: the searches.
    AutoCodeRoverSystem, "auto-code-rover/system" {}

    /// AutoCodeRover: the issue.
    AutoCodeRoverTask, "auto-code-rover/task" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
    }

    /// AutoCodeRover: gives the results of searches, and asks whether they suffice.
    AutoCodeRoverMore, "auto-code-rover/more" {
        /// Results of the searches, one text each.
        results: Vec<String>,
        /// Remaining rounds.
        left: usize,
    }

    /// AutoCodeRover: asks for the tests, as parts of files.
    AutoCodeRoverWrite, "auto-code-rover/write" {}

    /// AutoCodeRover: the answer could not be applied.
    AutoCodeRoverAgain, "auto-code-rover/again" {
        /// Problem with the answer.
        problem: String,
    }

    /// System message of CLOVER's tasks.
    CloverSystem, "clover/system" {}

    /// CLOVER task I: fill in the blank of an assertion.
    CloverAssertion, "clover/assertion" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Path of the test file.
        path: String,
        /// The test file up to the assertion.
        code: String,
        /// Assertion with `____` for its blank.
        assertion: String,
        /// Code after the test; may be empty.
        after: String,
        /// Whether the answer is the complete assertion; otherwise it is the text of the blank.
        whole: bool,
        /// Code of the project; may be empty.
        context: String,
    }

    /// CLOVER task II: write a test that calls a given class or function.
    CloverTarget, "clover/target" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Path of the test file.
        path: String,
        /// Name of the test.
        test: String,
        /// The test file without the statements of the test.
        code: String,
        /// `class` or `function`.
        target_kind: String,
        /// Name of the class or function.
        target: String,
        /// Path of the target; empty if it is not revealed.
        target_path: String,
        /// Whether the answer is the body of the test; otherwise it is the complete file.
        part: bool,
        /// Code of the project; may be empty.
        context: String,
    }

    /// CLOVER task III: write a test that covers given blocks.
    CloverBlocks, "clover/blocks" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Path of the test file.
        path: String,
        /// Name of the test.
        test: String,
        /// The test file without the statements of the test.
        code: String,
        /// Blocks to cover.
        blocks: Vec<CodeBlock>,
        /// Whether the answer is the body of the test; otherwise it is the complete file.
        part: bool,
        /// Code of the project; may be empty.
        context: String,
    }

    /// System message of the approach `snippet`.
    SnippetSystem, "snippet/system" {}

    /// System message of the agent that writes tests for given lines.
    CoverSystem, "cover/system" {
        /// Maximum number of model calls.
        max_steps: u32,
        /// Whether to write the body of a given test instead of new tests.
        is_given_test: bool,
    }

    /// First user message of the agent that writes tests for given lines.
    CoverTask, "cover/task" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Numbered lines, one block each.
        blocks: Vec<String>,
        /// Test whose body to write, as `file::Class::function`; empty for new tests.
        test: String,
        /// Imports at the top of the test's file.
        imports: Vec<String>,
        /// Source of the test, with `...` as its body.
        stub: String,
        /// Maximum number of tokens of all model calls together, if limited.
        max_tokens: Option<u64>,
        /// Description of the workspace by the toolbox.
        workspace: String,
        /// Notes about the environment for the user.
        notes: Vec<String>,
    }

    /// System message of the agent that tries fixes on a given test.
    CheckSystem, "check/system" {
        /// Maximum number of model calls.
        max_steps: u32,
    }

    /// End of the task of the agent that tries fixes on a given test.
    CheckTest, "check/test" {
        /// Test, as a patch.
        test: String,
        /// Result of the test on the old code.
        result: String,
    }

    /// First user message of every agent: the issue and the facts about the repository.
    Task, "task" {
        /// Repository as `owner/name`, or the name of its folder.
        repository: String,
        /// Text of the issue.
        issue: String,
        /// Description of the workspace by the toolbox: versions, folders, and how test files are named.
        workspace: String,
        /// Notes about the environment for the user, e.g. a missing system package.
        notes: Vec<String>,
    }

    /// Asks a reviewer whether the failure is the one that the issue describes.
    Review, "review" {
        /// Text of the issue.
        issue: String,
        /// Version of the Python interpreter that ran the tests.
        python: String,
        /// The patch with the tests.
        change: String,
        /// Unchanged code in the same files that the tests use; may be empty.
        used_code: String,
        /// One line per test: its outcome now, and before the change.
        outcomes: String,
        /// Class, exception, message and frames of each failure.
        failure: String,
        /// Functions in which tests failed and that candidate fixes change; may be empty.
        code_under_test: String,
        /// Effect of candidate fixes on the tests; empty if none was tried.
        fixes: String,
        /// The author's own explanation of the tests; may be empty.
        reason: String,
    }

    /// Tells the author that the reviewer doubts the test.
    ReviewDoubt, "review-doubt" {
        /// Opinion of the reviewer, as a clause that follows "A reviewer".
        opinion: String,
        /// Explanation by the reviewer.
        reason: String,
        /// Requirements of the tests beyond the issue, one per line; may be empty.
        beyond: Vec<String>,
    }

    /// The gate accepts the test, but no candidate fix was tried yet.
    TryAFix, "try-a-fix" {}

    /// The model says that the issue cannot fail here, but not why.
    ReasonMissing, "reason-missing" {}

    /// The model says that the issue cannot fail here, but ran nothing.
    NothingTried, "nothing-tried" {}

    /// Skips a call that depends on an edit that was refused in the same message.
    Skipped, "skipped" {
        /// Whether the call was a trial of a fix, which is kept.
        keeps_fix: bool,
    }

    /// Holds back a submission because an earlier call of the same message speaks against the test.
    HeldBack, "held-back" {
        /// Reason, as a clause that follows "Not carried out:".
        why: String,
    }

    /// The model answered without calling a tool.
    NoToolCall, "no-tool-call" {
        /// Number of further answers without a tool call that end the run.
        left: u32,
    }

    /// The model's reply was cut off before any tool call.
    ReplyCut, "reply-cut" {
        /// Number of further such replies that end the run.
        left: u32,
    }

    /// The model repeats itself, or writes calls that cannot be read.
    Stuck, "stuck" {
        /// Number of replies in a row without progress.
        replies: u32,
        /// Cause, as a clause that follows a colon.
        why: String,
        /// Number of further such replies that end the run.
        left: u32,
    }

    /// SWE-agent+: the model submitted without having seen the new tests fail.
    RunBeforeSubmit, "swe-agent-plus/run-before-submit" {}

    /// Replaces older tool results when the context is full.
    Cut, "cut" {
        /// Name of the tool that gave the result.
        tool: String,
        /// Number of lines that were cut.
        lines: usize,
    }

    /// Warns that the steps, the money, the time or the tokens are nearly used up.
    NearlySpent, "nearly-spent" {
        /// e.g. `3 steps` or `0.05 dollars`.
        left: String,
    }
}

#[cfg(test)]
mod tests;
