//! MCP messages of the toolbox. For any message, the server must respond in its protocol or end. Arguments are parsed.
//! Tools that only read or edit files are run; tools that start processes are not.
#![no_main]

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use testwright_fuzz::{block_on, bounded_target, folder};
use testwright_tools::server::serve_on;
use testwright_tools::tool::{AnyTool, Context, ToolAnswer, ToolError};
use testwright_tools::workspace::Workspace;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const STARTS_PROCESSES: [&str; 6] = [
    "run_pytest",
    "run_python",
    "shell",
    "try_fix",
    "submit",
    "handshake",
];
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"f","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);
const FILE: &str =
    "import a\n\n\nclass TestA:\n    def test_a(self):\n        assert a.b() == 'c'\n";

static WORKSPACE: Mutex<Option<Workspace>> = Mutex::new(None);

fn open() -> Workspace {
    let root = folder().join("testbed");
    std::fs::create_dir_all(root.join("tests")).expect("a folder");
    std::fs::write(root.join("tests/test_a.py"), FILE).expect("a file");
    std::fs::write(root.join("a.py"), "def b():\n    return 'd'\n").expect("a file");
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_dir_all(".", &root).expect("an archive");
    std::fs::write(
        folder().join("base.tar"),
        archive.into_inner().expect("an archive"),
    )
    .expect("a file");
    std::fs::create_dir_all(folder().join("scratch")).expect("a folder");
    let config = serde_json::json!({
        "workspace": root, "base_archive": folder().join("base.tar"), "scratch": folder().join("scratch"), "python": "python3",
    });
    Workspace::open(serde_json::from_value(config).expect("a configuration")).expect("a workspace")
}

fn answer(tool: &dyn AnyTool, arguments: Value) -> Result<ToolAnswer, ToolError> {
    if STARTS_PROCESSES.contains(&tool.name()) {
        return Err(ToolError::refused("not here"));
    }
    let mut workspace = WORKSPACE.lock().expect("the workspace");
    let workspace = workspace.get_or_insert_with(open);
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut context = Context {
        workspace,
        deadline,
    };
    let answer = tool.call(&mut context, arguments);
    if let Err(ToolError::Broken(what)) = &answer {
        panic!("{} is broken: {what}", tool.name());
    }
    for change in context.workspace.changes().expect("changes") {
        let path = std::path::PathBuf::from(change.path);
        context.workspace.restore(&path).expect("restored");
    }
    answer
}

bounded_target!(fixed: 256 << 20, per_byte: 1024, |data: &[u8]| {
    let (near, far) = tokio::io::duplex(1 << 20);
    block_on(async {
        let (mut from, mut to) = tokio::io::split(near);
        let server = serve_on(far, answer);
        let client = async {
            let _ = to.write_all(HELLO.as_bytes()).await;
            let _ = to.write_all(data).await;
            let _ = to.shutdown().await;
        };
        let reader = async {
            let mut out = Vec::new();
            let _ = from.read_to_end(&mut out).await;
            for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let message: Value = serde_json::from_slice(line).expect("a line of JSON");
                assert_eq!(message["jsonrpc"], "2.0");
            }
        };
        tokio::join!(server, client, reader)
    });
});
