//! What an approach asks of submissions, and what it does after one.

/// What an approach asks of a submission beyond the gate.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubmissionPolicy {
    /// The gate's findings go back to the model.
    pub feedback: bool,
    /// A candidate fix should have been tried before; asked for once.
    pub wants_fix: bool,
    /// A reviewer reads the failure against the issue; how often its doubts go back to the model.
    pub reviews: u32,
}

/// What happens after a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSubmit {
    /// The run goes on until the gate accepts.
    UntilAccepted,
    /// The first submission ends the run, accepted or not.
    Once,
}
