//! Prompts as files, one typed struct each.
//!
//! A template lives in `templates/NAME.md`, those of one approach in a folder of its name; the struct of the same name holds everything it may use, so
//! that a template that names anything else fails in this crate's tests and not in front of a model.
//! Nothing here knows what a model, a tool or a repository is: callers hand in plain text.

mod folder;
mod prompt;

pub use folder::{FolderError, own_templates, use_folder};
pub use prompt::{Prompt, RenderError};

use serde::Serialize;

/// A file of the repository, or the begin of one.
#[derive(Debug, Clone, Serialize)]
pub struct CodeFile {
    pub path: String,
    pub text: String,
}

/// A test file that a model is to change.
#[derive(Debug, Clone, Serialize)]
pub struct TestFile {
    pub path: String,
    /// As it is; empty for one that is to be created.
    pub text: String,
    pub is_new: bool,
    pub is_cut: bool,
}

/// Lines of a file that a test is to run.
#[derive(Debug, Clone, Serialize)]
pub struct CodeBlock {
    pub path: String,
    /// Counted from 1.
    pub first: u32,
    pub last: u32,
    pub source: String,
}

/// Declares one prompt: the struct and its template file.
macro_rules! prompts {
    ($($(#[$doc:meta])* $name:ident, $file:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Serialize)]
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

        /// What each may name.
        const FIELDS: &[(&str, &[&str])] = &[$(($file, &[$(stringify!($field)),*])),*];
    };
}

prompts! {
    /// System message of the approach `testwright`.
    TestwrightSystem, "testwright/system" {
        /// Model calls that may be made.
        max_steps: u32,
    }

    /// A way to go about it, said after the task: first a test that passes.
    PassingFirst, "testwright/passing-first" {}

    /// A way to go about it, said after the task: first the faulty code.
    CodeFirst, "testwright/code-first" {
        /// `path::Class.method`, the likeliest first.
        functions: Vec<String>,
    }

    /// System message of the approach `swe-agent-plus`.
    SweAgentPlusSystem, "swe-agent-plus/system" {
        max_steps: u32,
    }

    /// System message of the approach `swe-agent`.
    SweAgentSystem, "swe-agent/system" {
        max_steps: u32,
    }

    /// System message of the approach `zero-shot`: answer with a unified diff.
    ZeroShotSystem, "zero-shot/system" {}

    /// System message of the approaches `zero-shot-plus` and `libro`: answer with function blocks.
    ZeroShotPlusSystem, "zero-shot-plus/system" {}

    /// System message of the approach `zero-shot-file`: answer with a whole file.
    ZeroShotFileSystem, "zero-shot-file/system" {}

    /// User message of the approaches that write in one call.
    ZeroShotTask, "zero-shot/task" {
        repository: String,
        issue: String,
        /// A code patch for the issue, which may be right or wrong.
        code_patch: Option<String>,
        is_patch_cut: bool,
        /// Those that the test is to go into, where they are given.
        test_files: Vec<TestFile>,
        /// Retrieved, the most relevant first.
        files: Vec<CodeFile>,
        /// They are not retrieved, but those that a code patch changes.
        are_of_patch: bool,
        /// Lines of the last one that are left out, since the budget ended in it.
        lines_left_out: usize,
        /// The lines of the files have numbers.
        are_numbered: bool,
    }

    /// LIBRO: do the failure and the issue speak of the same?
    LibroJudge, "libro/judge" {
        issue: String,
        test: String,
        failure: String,
    }

    /// Otter's localizer: which files?
    OtterFiles, "otter/files" {
        repository: String,
        issue: String,
        /// Test files; else source files.
        tests: bool,
        files: Vec<String>,
        /// How many to name.
        most: usize,
    }

    /// Otter's localizer: which functions of these files?
    OtterFunctions, "otter/functions" {
        repository: String,
        issue: String,
        tests: bool,
        /// With the names of their functions.
        files: Vec<CodeFile>,
    }

    /// Otter's planner: what to read?
    OtterPlan, "otter/plan" {
        repository: String,
        issue: String,
        /// Localized functions, `path::function`.
        code: Vec<CodeFile>,
    }

    /// Otter's planner: reflect and improve.
    OtterReflect, "otter/reflect" {
        repository: String,
        issue: String,
        valid: Vec<String>,
        invalid: Vec<String>,
        code: Vec<CodeFile>,
    }

    /// Otter's generator.
    OtterGenerate, "otter/generate" {
        repository: String,
        issue: String,
        code: Vec<CodeFile>,
        /// The test file.
        path: String,
        /// Of the new test; empty where the plan does not say.
        name: String,
        /// The test to modify; empty for a new one.
        original: String,
        /// Imports and outline of the test file.
        structure: String,
    }

    /// e-Otter++: the issue in another form.
    EOtterRewrite, "e-otter-plus-plus/rewrite" {
        repository: String,
        issue: String,
    }

    /// System message of the approach `assert-flip`: a test that passes, in function blocks.
    AssertFlipSystem, "assert-flip/system" {}

    /// AssertFlip: the test cannot be used, or does not pass.
    AssertFlipRefine, "assert-flip/refine" {
        reply: String,
        /// Why the reply cannot be used; empty where it was run.
        problem: String,
        failure: String,
    }

    /// AssertFlip: the assertions are to be turned round.
    AssertFlipFlip, "assert-flip/flip" {
        issue: String,
        /// The test that passes.
        reply: String,
    }

    /// AssertFlip: is it the issue's failure?
    AssertFlipValidate, "assert-flip/validate" {
        issue: String,
        reply: String,
        failure: String,
    }

    /// AssertFlip: the validator was not content.
    AssertFlipRegenerate, "assert-flip/regenerate" {
        reply: String,
        reasons: String,
    }

    /// System message of the approach `auto-code-rover`: the searches.
    AutoCodeRoverSystem, "auto-code-rover/system" {}

    /// AutoCodeRover: the issue.
    AutoCodeRoverTask, "auto-code-rover/task" {
        repository: String,
        issue: String,
    }

    /// AutoCodeRover: what searches came to; is that enough?
    AutoCodeRoverMore, "auto-code-rover/more" {
        results: Vec<String>,
        /// Rounds.
        left: usize,
    }

    /// AutoCodeRover: the tests, as pieces of files.
    AutoCodeRoverWrite, "auto-code-rover/write" {}

    /// AutoCodeRover: an answer could not be applied.
    AutoCodeRoverAgain, "auto-code-rover/again" {
        problem: String,
    }

    /// System message of CLOVER's tasks.
    CloverSystem, "clover/system" {}

    /// CLOVER's task I: fill the blank of an assertion.
    CloverAssertion, "clover/assertion" {
        repository: String,
        /// Of the test file.
        path: String,
        /// The test file up to the assertion.
        code: String,
        /// With `____` for its blank.
        assertion: String,
        /// What follows the test; may be empty.
        after: String,
        /// The answer is the whole assertion; else what goes into the blank.
        whole: bool,
        /// Code of the project; empty for none.
        context: String,
    }

    /// CLOVER's task II: a test that calls a given class or function.
    CloverTarget, "clover/target" {
        repository: String,
        path: String,
        /// Name of the test.
        test: String,
        /// The test file without the statements of the test.
        code: String,
        /// `class` or `function`.
        target_kind: String,
        target: String,
        /// Empty where it is not told.
        target_path: String,
        /// The answer is the test's statements; else the whole file.
        part: bool,
        context: String,
    }

    /// CLOVER's task III: a test that covers given blocks.
    CloverBlocks, "clover/blocks" {
        repository: String,
        path: String,
        test: String,
        code: String,
        blocks: Vec<CodeBlock>,
        part: bool,
        context: String,
    }

    /// System message of the approach `snippet`.
    SnippetSystem, "snippet/system" {}

    /// System message of the agent that writes tests for given lines.
    CoverSystem, "cover/system" {
        /// Model calls that may be made.
        max_steps: u32,
        /// The statements of one test are wanted, no new tests.
        is_given_test: bool,
    }

    /// Its first user message.
    CoverTask, "cover/task" {
        repository: String,
        /// The lines with their numbers, one stretch each.
        blocks: Vec<String>,
        /// The test whose statements are wanted, `file::Class::function`; empty where new tests are.
        test: String,
        /// What its file imports at its head.
        imports: Vec<String>,
        /// Its source, with `...` for the statements.
        stub: String,
        /// Of all model calls together, where that is limited.
        max_tokens: Option<u64>,
        /// What the toolbox says of the workspace.
        workspace: String,
        /// What the user should know of the environment.
        notes: Vec<String>,
    }

    /// First user message of every agent: the issue and what is known of the repository.
    Task, "task" {
        repository: String,
        issue: String,
        /// What the toolbox says of the workspace: versions, folders, how test files are named.
        workspace: String,
        /// What the user should know of the environment, e.g. a missing system package.
        notes: Vec<String>,
    }

    /// Asks a reviewer whether the failure is the one that the issue speaks of.
    Review, "review" {
        issue: String,
        /// Version of the Python that ran the tests.
        python: String,
        /// The patch.
        change: String,
        /// Unchanged code of the same files that the tests use; may be empty.
        used_code: String,
        /// One line for each test: how it does now, and how it did before the change.
        outcomes: String,
        /// Class, exception, message and frames of each failure.
        failure: String,
        /// The functions that failed and that candidate fixes change; may be empty.
        code_under_test: String,
        /// What candidate fixes did to the tests; empty if none was tried.
        fixes: String,
        /// The author's own words on the tests; may be empty.
        reason: String,
    }

    /// The reviewer doubts it: goes back to the author.
    ReviewDoubt, "review-doubt" {
        /// What the reviewer thinks, as a clause that follows "A reviewer".
        opinion: String,
        reason: String,
        /// What the tests ask for beyond the issue, a line each; may be empty.
        beyond: Vec<String>,
    }

    /// The gate is content, but no candidate fix was tried yet.
    TryAFix, "try-a-fix" {}

    /// The model says that the issue cannot fail here, and not why.
    ReasonMissing, "reason-missing" {}

    /// The model says that the issue cannot fail here, and ran nothing.
    NothingTried, "nothing-tried" {}

    /// A call that depends on an edit which was refused in the same message.
    Skipped, "skipped" {
        /// It was the trial of a fix, which is kept.
        keeps_fix: bool,
    }

    /// A submission after a call of the same message that does not speak for the test.
    HeldBack, "held-back" {
        why: String,
    }

    /// The model answered without calling a tool.
    NoToolCall, "no-tool-call" {
        left: u32,
    }

    /// SWE-agent+: submitted without having seen the new tests fail.
    RunBeforeSubmit, "swe-agent-plus/run-before-submit" {}

    /// Put in place of older tool answers when the context is full.
    Cut, "cut" {
        tool: String,
        lines: usize,
    }

    /// The steps or the money are nearly used up.
    NearlySpent, "nearly-spent" {
        /// e.g. `3 steps` or `0.05 dollars`.
        left: String,
    }
}

#[cfg(test)]
mod tests;
