//! Tests of user-visible behaviour.

/// `testwright apply` and `run --apply`.
mod apply;
/// `testwright eval cases`: the lines that each test runs.
mod cases;
/// `testwright check`, for given tests and for a dataset.
mod check;
/// `testwright clover`.
mod clover;
/// `testwright compare`, in one process and with workers.
mod compare;
/// `testwright cover`.
mod cover;
/// Logs and `TESTWRIGHT_LOG`.
mod diagnostics;
/// Drafts and the choice between them.
mod drafts;
/// Checks that come before the build of an environment.
mod early_checks;
/// Repair of an environment by a model.
mod environment_repair;
/// `testwright eval`, in one process and with workers.
mod eval;
/// The first request that each approach sends.
mod first_requests;
/// Issues of GitLab, Gitea and Bitbucket.
mod forges;
/// Output that the README and the guide show.
mod guide_samples;
/// `testwright history`.
mod history;
/// `testwright inspect`.
mod inspect;
/// Issues by address, file and standard input.
mod issues;
/// Runs without progress.
mod loops;
/// Several calls in one message.
mod messages;
/// `testwright mine`.
mod mine;
/// Programs of the user as approaches.
mod own_agent;
/// Approaches that are pipelines.
mod pipelines;
/// `testwright pr`.
mod pr;
/// The reviewer of submissions.
mod review;
/// Hints, and `testwright revise`.
mod revise;
/// `testwright run`, `replay`, `show`: their results, and resuming after a crash.
mod runs;
/// Attacks on runs by the repository, the model or received files.
mod security;
/// `testwright select`.
mod select;
/// Files that `testwright select` takes, and its notes on them.
mod select_inputs;
/// `testwright serve`, `worker`, `runs` and `tokens`: the API, pages, MCP, GitHub, two databases.
mod server;
