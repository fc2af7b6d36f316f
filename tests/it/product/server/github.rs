//! The GitHub integration: labels and comments arrive as webhooks, and the server posts comments and pull requests.

mod api;
mod hub;
mod issues;
mod pull_requests;
mod pytest;
mod signing_in;
