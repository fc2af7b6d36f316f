//! What users run and see.

/// `testwright eval cases`: which tests run which lines.
mod cases;
/// `testwright clover`.
mod clover;
/// `testwright compare`, also by workers.
mod compare;
/// `testwright cover`.
mod cover;
/// `testwright serve`, `worker`, `runs` and `tokens`: the API, pages, MCP, GitHub, two databases.
mod daemon;
/// Logs, and what `TESTWRIGHT_LOG` adds.
mod diagnostics;
/// Drafts, and how one of them is chosen.
mod drafts;
/// `testwright eval`, also by workers.
mod eval;
/// The first request that each approach sends.
mod first_requests;
/// Attacks on runs: by the repository, by the model, by files that somebody sent.
mod hostile;
/// Issues by address, file and standard input.
mod issues;
/// Messages about wrong input.
mod messages;
/// `testwright mine`.
mod mine;
/// Approaches that are pipelines.
mod pipelines;
/// The reviewer of submissions.
mod review;
/// `testwright run`, `replay`, `show`: what they leave, and going on after a crash.
mod runs;
/// `testwright select` and `inspect`.
mod select;
