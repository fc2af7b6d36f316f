//! An approach's requirements for submissions, and the action after one.

/// The requirements of an approach for a submission beyond the gate.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubmissionPolicy {
    /// Whether the gate's findings are sent back to the model.
    pub feedback: bool,
    /// Whether a candidate fix should have been tried before; asked for once.
    pub wants_fix: bool,
    /// Number of times that a reviewer's doubts are sent back to the model; `None` for no reviewer.
    pub reviews: Option<u32>,
}

/// The action after a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSubmit {
    /// The run continues until the gate accepts.
    UntilAccepted,
    /// The first submission ends the run, accepted or not.
    Once,
}
