//! What testwright does for other agents, as tools: a file each, and this list of them.

use super::service_tool::ServiceTool;
use super::{check_patch, check_test, cov, session_tools, verify, write_failing_test};

/// In the order in which they are listed.
pub const ALL: [&dyn ServiceTool; 7] = [
    &write_failing_test::WriteFailingTest,
    &check_test::CheckTest,
    &check_patch::CheckPatch,
    &verify::Verify,
    &cov::Cov,
    &session_tools::OpenSession,
    &session_tools::CloseSession,
];
