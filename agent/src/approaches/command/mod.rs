//! A program of the user as an approach: it gets the issue on stdin, works through a local address for the tools
//! and one for the model, and submits or prints a patch. It runs on the host, like any program that the user starts.

mod chat;
pub(super) mod command_line;
mod gateway;
mod mcp;
mod process_group;
mod program;

use std::time::Duration;

use serde_json::{Value, json};
use testwright_tools::registry;
use testwright_tools::tool::AnyTool;
use testwright_tools::visible;

use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Limit, Outcome, Run, SubmissionPolicy};
use command_line::HINT;
use gateway::{Gateway, ProgramRequest};
use mcp::ToolReply;
use program::{Program, ProgramEnd, exited, printed_patch};

/// Time for the program to end by itself after the run has ended.
const GRACE: Duration = Duration::from_secs(5);

/// File with the error output of the program, in the folder of the run.
const LOG: &str = "program.log";

pub(super) static APPROACH: Approach = Approach {
    tools: || registry::for_models().collect(),
    ..Approach::new(
        "command",
        "runs your own program",
        Workflow::Agent { prompts: &[] },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let Some(command) = &context.command else {
        return Err(failed("start a program", &"no command line is given"));
    };
    let tools = (APPROACH.tools)();
    run.set_submission_policy(SubmissionPolicy {
        feedback: true,
        ..SubmissionPolicy::default()
    });
    let gateway = Gateway::start(tools.clone(), run.model_name().to_owned()).await;
    let mut gateway = gateway.map_err(|error| failed("open a local port", &error))?;
    let input = input(run, &gateway).to_string();
    let started = Program::start(command, &context.key_variable, &gateway, input);
    let program =
        started.map_err(|error| failed(&format!("start `{}`", command.program()), &error))?;
    run.progress.phase("program", command.line());
    let (outcome, rejected) = serve(run, &mut gateway, &program, &tools).await;
    if outcome.is_some() {
        let _ = tokio::time::timeout(GRACE, exited(program.pid)).await;
    }
    let end = program.stop().await;
    if let Err(error) = run.folder().write(LOG, &end.stderr) {
        run.progress.note(&format!("failed to {error}"));
    }
    match outcome {
        Some(outcome) => Ok(outcome),
        None => take_result(run, &end, rejected).await,
    }
}

/// Answers the requests of the program. Returns the outcome if the run ended before the program, and the outcome of
/// the last submission that the gate rejected.
async fn serve(
    run: &mut Run,
    gateway: &mut Gateway,
    program: &Program,
    tools: &[&'static dyn AnyTool],
) -> (Option<Outcome>, Option<Outcome>) {
    let mut rejected = None;
    let outcome = loop {
        let request = tokio::select! {
            request = gateway.requests.recv() => request,
            () = exited(program.pid) => break None,
            () = tokio::time::sleep(run.budget.left()) => {
                break Some(Outcome::from(Limit::Minutes));
            }
        };
        let Some(request) = request else {
            break None;
        };
        match answer(run, request, gateway, tools).await {
            Ok(None) => {}
            Ok(Some(refused @ Outcome::Refused { .. })) => rejected = Some(refused),
            Ok(Some(outcome)) | Err(outcome) => break Some(outcome),
        }
    };
    if let Some(outcome) = &outcome {
        gateway.end(outcome);
    }
    (outcome, rejected)
}

/// Answers one request. Returns the outcome of a submission.
async fn answer(
    run: &mut Run,
    request: ProgramRequest,
    gateway: &mut Gateway,
    tools: &[&'static dyn AnyTool],
) -> Flow<Option<Outcome>> {
    // The program sees why the run has ended, so the gateway must know it before the request is dropped.
    match request {
        ProgramRequest::Tool {
            name,
            arguments,
            reply,
        } => {
            let called = run.program_call(&name, arguments, tools).await;
            let (answer, outcome) = called.inspect_err(|outcome| gateway.end(outcome))?;
            // send() fails only if the program has closed its connection.
            let _ = reply.send(ToolReply {
                text: answer.result.content,
                refused: answer.refused,
                accepted: (outcome.as_ref())
                    .map(|outcome| matches!(outcome, Outcome::Accepted { .. })),
            });
            Ok(outcome)
        }
        ProgramRequest::Chat { request, reply } => {
            let answer = run.program_reply(*request).await;
            let answer = answer.inspect_err(|outcome| gateway.end(outcome))?;
            let _ = reply.send(answer);
            Ok(None)
        }
    }
}

/// Submits the patch that the program printed. Without one, the last submission counts.
async fn take_result(run: &mut Run, end: &ProgramEnd, rejected: Option<Outcome>) -> Flow<Outcome> {
    run.leave_recording();
    if let Some(patch) = printed_patch(&end.stdout) {
        run.write_patch(&patch).await?;
        return run.submit_tests().await;
    }
    Ok(rejected.unwrap_or_else(|| Outcome::nothing(visible(&end.reason()))))
}

/// Returns the task for the program.
fn input(run: &Run, gateway: &Gateway) -> Value {
    let (issue, limits) = (&run.issue, &run.budget.limits);
    let url = issue.origin.starts_with("http").then_some(&issue.origin);
    json!({
        "format": 1,
        "issue": {
            "title": issue.title,
            "body": issue.body,
            "comments": issue.comments,
            "url": url,
            "hint": issue.wish.hint,
            "test_files": issue.wish.test_files,
        },
        "repository": run.source.name,
        "commit": run.source.commit,
        "limits": {
            "steps": limits.steps,
            "tokens": limits.tokens,
            "dollars": limits.dollars,
            "minutes": limits.minutes,
        },
        "model": {
            "name": run.model_name(),
            "base_url": gateway.model_url(),
            "api_key": gateway.token,
        },
        "mcp": { "url": gateway.mcp_url(), "token": gateway.token },
    })
}

fn failed(action: &str, error: &dyn std::fmt::Display) -> Outcome {
    Outcome::Infrastructure {
        message: format!("{action}: {error}"),
        hint: Some(HINT.to_owned()),
        shortage: None,
    }
}
