//! A server on the loopback interface for one program: the tools over MCP at `/mcp`, and the model at `/v1`. Requests
//! need the token of the run, and are handled one after the other by the owner of the [`Gateway`].

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use testwright_config::hex::hex;
use testwright_tools::tool::AnyTool;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::mcp::ToolReply;
use super::{chat, mcp};
use crate::outcome::Outcome;
use testwright_models::Reply;

/// Maximum bytes of a request.
const MAX_BODY_LEN: usize = 32 << 20;
/// Maximum concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// Maximum requests that wait for their turn.
const MAX_WAITING: usize = 16;
/// Delay after a connection could not be accepted.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A request of the program. Dropping `reply` tells the program that the run has ended.
pub(super) enum ProgramRequest {
    /// A call of a tool.
    Tool {
        name: String,
        arguments: Value,
        reply: oneshot::Sender<ToolReply>,
    },
    /// A call of the model. The error is a message for the program.
    Chat {
        request: Box<testwright_models::Request>,
        reply: oneshot::Sender<Result<Reply, String>>,
    },
}

/// A running server. Dropping it ends all connections.
pub(super) struct Gateway {
    /// Token that the program sends with each request.
    pub(super) token: String,
    /// Requests in the order of their arrival.
    pub(super) requests: mpsc::Receiver<ProgramRequest>,
    address: SocketAddr,
    end: Arc<OnceLock<String>>,
    task: JoinHandle<()>,
}

struct Server {
    token: String,
    tools: Vec<&'static dyn AnyTool>,
    model: String,
    requests: mpsc::Sender<ProgramRequest>,
    /// Reason why the run has ended.
    end: Arc<OnceLock<String>>,
}

impl Gateway {
    pub(super) async fn start(
        tools: Vec<&'static dyn AnyTool>,
        model: String,
    ) -> io::Result<Gateway> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let server = Server {
            token: hex(&random),
            tools,
            model,
            requests: sender,
            end: Arc::default(),
        };
        Ok(Gateway {
            token: server.token.clone(),
            end: server.end.clone(),
            requests,
            address,
            task: tokio::spawn(accept(listener, Arc::new(server))),
        })
    }

    pub(super) fn mcp_url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(super) fn model_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Refuses all further requests, because the run has ended.
    pub(super) fn end(&mut self, outcome: &Outcome) {
        // Later reasons follow from the first.
        let _ = self.end.set(outcome.summary());
        self.requests.close();
        while self.requests.try_recv().is_ok() {}
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                    connections.spawn(serve(stream, server.clone()));
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, server: Arc<Server>) {
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "a connection of the program ended");
    }
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.is_authorized(&request) {
            return refusal(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        }
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_BODY_LEN).collect().await else {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long");
        };
        let body = body.to_bytes();
        let is_post = parts.method == Method::POST;
        match parts.uri.path() {
            "/mcp" if is_post => self.answer_mcp(&body).await,
            "/v1/chat/completions" if is_post => self.answer_chat(&body).await,
            "/v1/models" if parts.method == Method::GET => {
                json(StatusCode::OK, &chat::models(&self.model))
            }
            "/mcp" | "/v1/chat/completions" | "/v1/models" => {
                refusal(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed")
            }
            _ => refusal(StatusCode::NOT_FOUND, "there is nothing at this address"),
        }
    }

    /// Compares digests, so that the time does not depend on the token.
    fn is_authorized(&self, request: &Request<Incoming>) -> bool {
        let header = request.headers().get(AUTHORIZATION);
        let token = header.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.is_some_and(|token| Sha256::digest(token) == Sha256::digest(&self.token))
    }

    async fn answer_mcp(&self, body: &[u8]) -> Response<Full<Bytes>> {
        let (id, name, arguments) = match mcp::read(body, &self.tools) {
            mcp::Incoming::Call {
                id,
                name,
                arguments,
            } => (id, name, arguments),
            mcp::Incoming::Answered(answer) => return json(StatusCode::OK, &answer),
            mcp::Incoming::Notification => {
                let mut accepted = Response::default();
                *accepted.status_mut() = StatusCode::ACCEPTED;
                return accepted;
            }
        };
        let (reply, replied) = oneshot::channel();
        let request = ProgramRequest::Tool {
            name,
            arguments,
            reply,
        };
        let answer = match self.ask(request, replied).await {
            Some(answer) => mcp::result(&id, &answer),
            None => mcp::error(&id, mcp::RUN_ENDED, self.end_reason()),
        };
        json(StatusCode::OK, &answer)
    }

    async fn answer_chat(&self, body: &[u8]) -> Response<Full<Bytes>> {
        let asked = match chat::read(body) {
            Ok(asked) => asked,
            Err(problem) => return refusal(StatusCode::BAD_REQUEST, &problem),
        };
        let (reply, replied) = oneshot::channel();
        let request = ProgramRequest::Chat {
            request: Box::new(asked.request),
            reply,
        };
        match self.ask(request, replied).await {
            Some(Ok(reply)) if asked.stream => {
                let events = chat::events(&reply, &self.model);
                with_content(StatusCode::OK, "text/event-stream", events)
            }
            Some(Ok(reply)) => json(StatusCode::OK, &chat::completion(&reply, &self.model)),
            Some(Err(problem)) => refusal(StatusCode::BAD_REQUEST, &problem),
            // Clients retry 429, but not this.
            None => refusal(StatusCode::PAYMENT_REQUIRED, self.end_reason()),
        }
    }

    /// Waits for the reply to a request; `None` if the run has ended.
    async fn ask<T>(&self, request: ProgramRequest, replied: oneshot::Receiver<T>) -> Option<T> {
        self.requests.send(request).await.ok()?;
        replied.await.ok()
    }

    fn end_reason(&self) -> &str {
        self.end.get().map_or("the run has ended", String::as_str)
    }
}

fn with_content(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn json(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    with_content(status, "application/json", value.to_string())
}

/// Returns an error in the format of OpenAI's API.
fn refusal(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    json(status, &chat::error(message, status.as_u16()))
}
