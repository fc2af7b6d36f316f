//! The state of a workspace, for records and to restore it in a fresh sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use testwright_sandboxes::SandboxError;
use testwright_tools::tool::Tool;
use testwright_tools::tools;

use super::Session;

const DEADLINE: Duration = Duration::from_secs(60);

/// Contents of the files that differ from the base commit: Base64, or `None` for a deleted file.
pub type Contents = BTreeMap<String, Option<String>>;

/// A file that differs from the base commit.
#[derive(Deserialize)]
struct FileContent {
    path: String,
    /// Content in Base64; `None` for a deleted file.
    content: Option<String>,
}

impl Session {
    /// Returns the files that differ from the base commit, and the names of some that are too large to store.
    ///
    /// # Errors
    ///
    /// Fails if the toolbox fails or its answer cannot be read.
    pub async fn changes(&self) -> Result<(Contents, Vec<String>), SandboxError> {
        #[derive(Deserialize)]
        struct Changes {
            files: Vec<FileContent>,
            #[serde(default)]
            left_out: Vec<String>,
        }
        let answer = self.host_call(tools::Changes::NAME, json!({})).await?;
        let changes: Changes = serde_json::from_value(answer)
            .map_err(|e| SandboxError::system(format!("read the changes: {e}")))?;
        let files = changes.files.into_iter();
        let contents = files.map(|file| (file.path, file.content)).collect();
        Ok((contents, changes.left_out))
    }

    /// Restores a recorded state: exactly these files will differ from the base commit.
    ///
    /// # Errors
    ///
    /// Fails if the toolbox fails or refuses the contents.
    pub async fn restore(&self, contents: &Contents) -> Result<(), SandboxError> {
        let files = contents.iter();
        let files = files.map(|(path, content)| json!({ "path": path, "content": content }));
        let files: Vec<_> = files.collect();
        self.host_call(tools::Restore::NAME, json!({ "files": files }))
            .await
            .map(drop)
    }

    /// Returns the toolbox's description of the workspace, for the first prompt.
    ///
    /// # Errors
    ///
    /// Fails if the toolbox fails.
    pub async fn describe(&self) -> Result<String, SandboxError> {
        self.call(tools::Describe::NAME, json!({}), DEADLINE)
            .await
            .map(|answer| answer.text)
    }

    async fn host_call(
        &self,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Result<serde_json::Value, SandboxError> {
        let answer = self.call(tool, arguments, DEADLINE).await?;
        if answer.refused {
            let text = format!("run `{tool}` in the sandbox: {}", answer.text);
            return Err(SandboxError::system(text));
        }
        Ok(answer.data)
    }
}
