//! testwright's services for other agents, as tools with a file each.

use super::service_tool::ServiceTool;
use super::{check_patch, check_test, cov, revise_test, session_tools, verify, write_failing_test};

/// All services, in the order in which they are listed.
pub(super) const ALL: [&dyn ServiceTool; 8] = [
    &write_failing_test::WriteFailingTest,
    &revise_test::ReviseTest,
    &check_test::CheckTest,
    &check_patch::CheckPatch,
    &verify::Verify,
    &cov::Cov,
    &session_tools::OpenSession,
    &session_tools::CloseSession,
];
