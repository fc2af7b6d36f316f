//! A sandbox prepared for a build: uv, certificates, and access to package indexes.
//!
//! Nothing in it outlasts it and is writable. The host keeps what is downloaded (see [`crate::egress`]), and uv's own
//! cache is deleted with the sandbox.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::build::Build;
use super::rust;
use super::steps::{Steps, text};
use crate::egress::{Gateway, HostPort};
use crate::error::SandboxError;
use crate::sandbox::{Command, Mount, Paths, Result, Sandbox, SandboxSource, Spec, output};
use crate::starting::retry_start;

/// Mount point of uv.
const PROGRAM: &str = "/opt/testwright-uv";

/// Interpreter of the images that SWE-bench publishes. Their shells activate it, but their PATH does not include it.
const PUBLISHED: &str = "/opt/miniconda3/envs/testbed/bin/python";

/// Variables of programs that download, with the path of trusted certificates.
const CA_VARIABLES: &str =
    "SSL_CERT_FILE PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO CARGO_HTTP_CAINFO";

/// Time limit of steps that take seconds. On a busy disk, removing thousands of files takes minutes.
pub(super) const SHORT_STEP: Duration = Duration::from_secs(600);

/// A sandbox that is ready for a build.
pub(super) struct BuildSandbox {
    pub sandbox: Box<dyn Sandbox>,
    inner: BuildTools,
    _port: Option<HostPort>,
}

impl Deref for BuildSandbox {
    type Target = BuildTools;

    fn deref(&self) -> &BuildTools {
        &self.inner
    }
}

/// The tools and paths that build steps need in a sandbox.
pub(super) struct BuildTools {
    pub paths: Paths,
    pub env: BTreeMap<String, String>,
    /// The variables without those of the recipe.
    pub own_env: BTreeMap<String, String>,
    /// Folder for files that only the build uses.
    pub tools: PathBuf,
    pub uv: String,
    pub python: String,
    _gateway: Gateway,
}

impl Build<'_> {
    pub(super) async fn build_sandbox(&self, start: SandboxSource) -> Result<BuildSandbox> {
        let program = self.program().await?;
        let port = match self.backend.has_own_loopback() {
            true => None,
            false => Some(self.egress.listen().await?),
        };
        let mut mounts = vec![Mount {
            host: program,
            inside: PathBuf::from(PROGRAM),
        }];
        let rust = self.rust_toolchain()?;
        // The compiler finds its parts by its own path, which is the host's under any isolation.
        mounts.extend(rust.map(|folder| Mount {
            host: folder.to_owned(),
            inside: folder.to_owned(),
        }));
        let spec = Spec {
            host_port: port.as_ref().map(|port| port.port),
            root: true,
            limits: self.settings.limits.clone(),
            // Variables can make almost any program run code (PERL5OPT, PYTHONWARNINGS), and a process started here may
            // still run while system packages are installed. The recipe's own steps set its variables themselves.
            env: only_path(&self.recipe.env),
            mounts,
            ..Spec::new(start, "build")
        };
        let sandbox = self
            .log
            .timed("start a sandbox", retry_start(|| self.backend.start(&spec)))
            .await?;
        let install = self.install_build_tools(sandbox.as_ref(), port.as_ref());
        match self.log.timed("prepare the sandbox", install).await {
            Ok(inner) => Ok(BuildSandbox {
                sandbox,
                inner,
                _port: port,
            }),
            Err(error) => {
                if let Err(error) = sandbox.stop().await {
                    tracing::warn!(%error, "could not stop a sandbox");
                }
                Err(error)
            }
        }
    }

    /// Returns what runs steps in the sandbox, with all variables.
    pub(super) fn steps<'b>(&'b self, builder: &'b BuildSandbox) -> Steps<'b> {
        Steps {
            sandbox: builder.sandbox.as_ref(),
            log: self.log,
            progress: self.progress,
            env: &builder.env,
            deadline: self.settings.step_deadline,
            egress: Some(self.egress),
        }
    }

    /// Removes the tools and saves the state, or only stops the sandbox if the work failed.
    pub(super) async fn finish<T>(
        &self,
        builder: BuildSandbox,
        done: Result<T>,
        name: &str,
    ) -> Result<T> {
        let sandbox = builder.sandbox.as_ref();
        let saving = async {
            let value = done?;
            let clean = Command::new(["rm", "-rf", &text(&builder.tools)]);
            output(sandbox, &clean, SHORT_STEP).await?;
            self.log.timed("save the state", sandbox.save(name)).await?;
            Ok(value)
        };
        let saved: Result<T> = saving.await;
        let stopped = self.log.timed("stop the sandbox", sandbox.stop()).await;
        let value = saved?;
        stopped?;
        Ok(value)
    }

    /// Returns a folder that contains only uv, to be mounted.
    async fn program(&self) -> Result<PathBuf> {
        let metadata = tokio::fs::metadata(&self.uv).await?;
        let changed = metadata
            .modified()
            .ok()
            .and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        let key = format!(
            "uv-{}-{}",
            metadata.len(),
            changed.map_or(0, |d| d.as_secs())
        );
        let folder = self.settings.cache.join("programs").join(key);
        let target = folder.join("uv");
        if !tokio::fs::try_exists(&target).await? {
            tokio::fs::create_dir_all(&folder).await?;
            let aside = folder.join(format!("uv-{}", std::process::id()));
            tokio::fs::copy(&self.uv, &aside).await?;
            tokio::fs::rename(&aside, &target).await?;
        }
        Ok(folder)
    }

    /// Locates the programs in the sandbox, and uploads the missing ones.
    async fn install_build_tools(
        &self,
        sandbox: &dyn Sandbox,
        port: Option<&HostPort>,
    ) -> Result<BuildTools> {
        let paths = sandbox.info().paths.clone();
        let tools = paths.store.join("build");
        self.upload_constraints(sandbox, &tools).await?;
        let mut env = self.upload_ca_bundle(sandbox, &tools).await?;
        let programs = self.probe(sandbox).await?;
        // A remote engine has no mounts, so uv is uploaded.
        let uv = match programs.uv {
            Some(uv) => uv,
            None => {
                let uv = tools.join("uv");
                sandbox
                    .upload(&uv, &tokio::fs::read(&self.uv).await?, 0o755)
                    .await?;
                text(&uv)
            }
        };
        let any_python = programs.base.or_else(|| self.recipe.interpreter.clone());
        let python = match (&self.recipe.image, &self.recipe.interpreter) {
            (None, _) => text(&paths.environment.join("bin/python")),
            (Some(_), Some(interpreter)) => interpreter.clone(),
            (Some(image), None) => programs.image_python.ok_or_else(|| {
                SandboxError::input(format!("the image {image} has no `python` on its PATH"))
                    .hint("set interpreter = \"/path/to/python\" in [environment]")
            })?,
        };
        let gateway = match port {
            Some(port) => self.egress.gateway_through(port),
            None => {
                let python = any_python.as_ref().unwrap_or(&python);
                self.egress.attach(sandbox, python).await?
            }
        };
        env.extend(self.egress.variables(&gateway));
        let mut path = search_path(&programs.path, &python, &uv);
        if let Some(folder) = self.rust_toolchain()? {
            path = format!("{path}:{}", text(&folder.join("bin")));
        }
        env.extend(fixed_variables(&path, &tools));
        if self.recipe.image.is_none() {
            env.insert("VIRTUAL_ENV".to_owned(), text(&paths.environment));
        }
        let own_env = env.clone();
        env.extend(self.recipe.env.clone());
        Ok(BuildTools {
            paths,
            env,
            own_env,
            tools,
            uv,
            python,
            _gateway: gateway,
        })
    }

    /// Returns the folder of the host's Rust toolchain if the code needs it.
    fn rust_toolchain(&self) -> Result<Option<&'static Path>> {
        let is_needed = rust::is_needed(&self.source.tree()?)?;
        Ok(rust::toolchain(self.backend).filter(|_| is_needed))
    }

    async fn upload_constraints(&self, sandbox: &dyn Sandbox, tools: &Path) -> Result<()> {
        let requirements = &self.plan.requirements;
        for (name, lines) in [
            ("build.txt", &requirements.build_constraints),
            ("constraints.txt", &requirements.constraints),
        ] {
            if !lines.is_empty() {
                let content = lines.join("\n") + "\n";
                sandbox
                    .upload(&tools.join(name), content.as_bytes(), 0o644)
                    .await?;
            }
        }
        Ok(())
    }

    /// Uploads the CA certificates from the settings. Returns the variables that point to them.
    async fn upload_ca_bundle(
        &self,
        sandbox: &dyn Sandbox,
        tools: &Path,
    ) -> Result<BTreeMap<String, String>> {
        let mut env = BTreeMap::new();
        if let Some(bundle) = &self.settings.ca_bundle {
            let inside = tools.join("ca.pem");
            sandbox
                .upload(&inside, &tokio::fs::read(bundle).await?, 0o644)
                .await?;
            for name in CA_VARIABLES.split(' ') {
                env.insert(name.to_owned(), text(&inside));
            }
        }
        Ok(env)
    }

    async fn probe(&self, sandbox: &dyn Sandbox) -> Result<Programs> {
        let mut probe = Command::shell(
            "echo \"$PATH\"; [ -x \"$PROGRAM\" ] && echo \"$PROGRAM\" || echo; \
             { [ -n \"$VERSION\" ] && command -v \"python$VERSION\"; } || command -v python3 || \
             { [ -x \"$PUBLISHED\" ] && echo \"$PUBLISHED\"; } || command -v python || echo; \
             [ -x \"$PUBLISHED\" ] && echo \"$PUBLISHED\" || command -v python || echo",
        );
        // Passed as variables, because a backend may mount at other paths and adjusts variables accordingly.
        let version = self.recipe.python.clone().unwrap_or_default();
        let variables = [
            ("VERSION", version),
            ("PROGRAM", format!("{PROGRAM}/uv")),
            ("PUBLISHED", PUBLISHED.to_owned()),
        ];
        probe.env = variables
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        let output = output(sandbox, &probe, Duration::from_secs(60)).await?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = output.lines().map(str::to_owned);
        let path = lines.next().unwrap_or_default();
        let mut found = || lines.next().filter(|line| !line.is_empty());
        Ok(Programs {
            path,
            uv: found(),
            base: found(),
            image_python: found(),
        })
    }
}

/// The programs that a sandbox has before anything is uploaded.
struct Programs {
    path: String,
    /// Path of uv, if it could be mounted.
    uv: Option<String>,
    /// Interpreter to start from, of the recipe's version if available.
    base: Option<String>,
    /// The interpreter that the image is made for.
    image_python: Option<String>,
}

/// Returns a PATH with the interpreter's folder first, and uv's last for the recipe's own commands.
fn search_path(path: &str, python: &str, uv: &str) -> String {
    let folder = |program: &str| Path::new(program).parent().map(text).unwrap_or_default();
    let bin = folder(python);
    if path.split(':').any(|part| part == bin) {
        format!("{path}:{}", folder(uv))
    } else {
        format!("{bin}:{path}:{}", folder(uv))
    }
}

fn fixed_variables(path: &str, tools: &Path) -> [(String, String); 14] {
    let packages = text(&tools.join("packages"));
    let (cargo, target) = (text(&tools.join("cargo")), text(&tools.join("target")));
    [
        ("PATH", path),
        // Downloaded crates and compiled parts are deleted with the sandbox.
        ("CARGO_HOME", cargo.as_str()),
        ("CARGO_TARGET_DIR", target.as_str()),
        ("UV_CACHE_DIR", packages.as_str()),
        // The cache is on this sandbox's own file system.
        ("UV_LINK_MODE", "hardlink"),
        ("UV_NO_CONFIG", "1"),
        ("UV_NO_PROGRESS", "1"),
        ("UV_PYTHON_DOWNLOADS", "never"),
        ("UV_CONCURRENT_BUILDS", "2"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        // Steps run as root, but the workspace belongs to the user that tools run as.
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Returns only PATH, so that programs are found where the recipe says.
fn only_path(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let path = env.get_key_value("PATH");
    path.map(|(name, value)| (name.clone(), value.clone()))
        .into_iter()
        .collect()
}

impl BuildSandbox {
    pub(super) fn uv<S: Into<String>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        Command::new(std::iter::once(self.uv.clone()).chain(arguments.into_iter().map(Into::into)))
    }

    /// Uploads a file that only the build uses. Returns its path in the sandbox.
    pub(super) async fn upload(&self, name: &str, content: &[u8]) -> Result<String> {
        let file = self.tools.join(name);
        self.sandbox.upload(&file, content, 0o644).await?;
        Ok(text(&file))
    }

    /// Uploads a Python script. Returns the command that runs it for a folder of the workspace.
    pub(super) async fn script(&self, name: &str, code: &str, folder: &str) -> Result<Command> {
        let script = self.upload(name, code.as_bytes()).await?;
        let folder = text(&self.paths.workspace.join(folder));
        Ok(Command::new([self.python.clone(), script, folder]))
    }

    /// Returns all installed packages as `name==version`.
    pub(super) async fn packages(&self) -> Result<Vec<String>> {
        let mut command = self.uv([
            "pip",
            "list",
            "--quiet",
            "--format=freeze",
            "--python",
            &self.python,
        ]);
        command.env = self.env.clone();
        let list = output(self.sandbox.as_ref(), &command, SHORT_STEP).await?;
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let mut packages: Vec<_> = list
            .lines()
            .map(str::trim)
            .filter(|l| l.contains("=="))
            .map(str::to_owned)
            .collect();
        packages.sort();
        Ok(packages)
    }
}
