//! GitHub, as a maintainer meets it: labels and comments go in as webhooks, comments and pull requests come out.

mod api;
mod hub;
mod issues;
mod pull_requests;
mod pytest;
mod signing_in;
