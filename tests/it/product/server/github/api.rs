//! A mock of GitHub's API on loopback: comments, git data, pull requests, tokens of an App.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::server::{MockServer, Request, Response};

#[derive(Default)]
pub(super) struct ApiState {
    /// Comments on issues and pull requests, with their numbers.
    pub comments: Vec<(u64, String)>,
    /// Created git objects by hash.
    pub objects: BTreeMap<String, Value>,
    pub references: BTreeMap<String, String>,
    pub pull_requests: Vec<Value>,
    /// Response to the next new pull request, which is refused.
    pub pull_request_refusal: Option<Response>,
    /// Responses to the next comments; with `true` the comment is stored all the same.
    pub comment_responses: Vec<(Response, bool)>,
    /// Values of `Authorization`, with the path of the request.
    pub logins: Vec<(String, String)>,
}

pub(super) struct GitHubApi {
    server: MockServer,
    state: Arc<Mutex<ApiState>>,
}

impl GitHubApi {
    pub(super) fn start() -> Self {
        let state: Arc<Mutex<ApiState>> = Arc::default();
        let of_server = state.clone();
        let server =
            MockServer::start(move |request| answer(request, &mut of_server.lock().unwrap()));
        GitHubApi { server, state }
    }

    /// Returns the base URL of the API. It has a path, because a URL without one means a GitHub server.
    pub(super) fn url(&self) -> String {
        format!("{}/api", self.server.url)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ApiState> {
        self.state.lock().unwrap()
    }

    pub(super) fn requests(&self) -> usize {
        self.server.requests(|_| ()).len()
    }

    /// Waits for a number of comments on an issue or a pull request, and returns them.
    pub(super) fn wait_for_comments(&self, number: u64, min_count: usize) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let comments = self.comments(number);
            if comments.len() >= min_count {
                return comments;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(240),
                "{comments:?} on #{number}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(super) fn comments(&self, number: u64) -> Vec<String> {
        let state = self.state();
        let on = state.comments.iter().filter(|(on, _)| *on == number);
        on.map(|(_, text)| text.clone()).collect()
    }
}

fn answer(request: &Request, state: &mut ApiState) -> Response {
    let path = request.path.split('?').next().unwrap().to_owned();
    let login = request.header("authorization").unwrap_or_default();
    state.logins.push((path.clone(), login.to_owned()));
    let parts: Vec<&str> = path.split('/').skip(2).collect();
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let created = |value: Value| Response {
        status: 201,
        ..Response::json(value)
    };
    match (request.method.as_str(), &parts[..]) {
        ("POST", ["app", "installations", "99", "access_tokens"]) => created(
            json!({"token": "ghs_of_the_installation", "expires_at": "2999-01-01T00:00:00Z"}),
        ),
        ("GET", ["repos", "acme", "slugs"]) => Response::json(json!({"default_branch": "main"})),
        (method, ["repos", "acme", "slugs", "issues", number, "comments"]) => {
            comments(method, number.parse().unwrap(), &body, state)
        }
        ("GET", ["repos", "acme", "slugs", "git", "commits", sha]) => {
            Response::json(json!({"sha": sha, "tree": {"sha": format!("tree of {sha}")}}))
        }
        ("POST", ["repos", "acme", "slugs", "git", "refs"]) => {
            let name = body["ref"].as_str().unwrap().to_owned();
            if state.references.contains_key(&name) {
                let message = json!({"message": "Reference already exists"});
                return Response {
                    status: 422,
                    ..Response::json(message)
                };
            }
            let sha = body["sha"].as_str().unwrap().to_owned();
            state.references.insert(name, sha);
            created(body)
        }
        ("POST", ["repos", "acme", "slugs", "git", _]) => {
            let sha = format!("{:040x}", state.objects.len() + 1);
            state.objects.insert(sha.clone(), body);
            created(json!({"sha": sha}))
        }
        ("GET", ["repos", "acme", "slugs", "pulls"]) => Response::json(json!(state.pull_requests)),
        ("POST", ["repos", "acme", "slugs", "pulls"]) => {
            if let Some(refusal) = state.pull_request_refusal.take() {
                return refusal;
            }
            let mut pull = body;
            pull["number"] = json!(20 + state.pull_requests.len());
            state.pull_requests.push(pull.clone());
            created(pull)
        }
        _ => Response::status(404),
    }
}

fn comments(method: &str, number: u64, body: &Value, state: &mut ApiState) -> Response {
    let comment = |text: &str| json!({"body": text, "html_url": format!("https://x/{number}")});
    if method == "GET" {
        let on = state.comments.iter().filter(|(on, _)| *on == number);
        let listed: Vec<Value> = on.map(|(_, text)| comment(text)).collect();
        return Response::json(json!(listed));
    }
    let text = body["body"].as_str().unwrap().to_owned();
    let mishap = (!state.comment_responses.is_empty()).then(|| state.comment_responses.remove(0));
    if !matches!(mishap, Some((_, false))) {
        state.comments.push((number, text.clone()));
    }
    match mishap {
        Some((response, _)) => response,
        None => Response {
            status: 201,
            ..Response::json(comment(&text))
        },
    }
}
