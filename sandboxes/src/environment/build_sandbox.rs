//! A sandbox made ready for building: uv, certificates, and the way out to package indexes. Nothing that outlasts it
//! can be written in it: what is fetched is kept by the host (see [`crate::egress`]), uv's own cache goes with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::layers::Build;
use super::steps::text;
use crate::egress::{Gateway, HostPort};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Mount, Paths, Result, Sandbox, Spec, Start, output};

/// Where uv itself is mounted.
const PROGRAM: &str = "/opt/testwright-uv";

/// The interpreter of the images that SWE-bench publishes: their shells activate it, their PATH does not name it.
const PUBLISHED: &str = "/opt/miniconda3/envs/testbed/bin/python";

/// A sandbox that was made ready for building.
pub(super) struct BuildSandbox {
    pub sandbox: Box<dyn Sandbox>,
    pub paths: Paths,
    pub env: BTreeMap<String, String>,
    /// The same without the recipe's variables.
    pub own_env: BTreeMap<String, String>,
    /// Files for the build alone.
    pub tools: PathBuf,
    pub uv: String,
    pub python: String,
    _gateway: Gateway,
    _port: Option<HostPort>,
}

/// What was found out about a sandbox.
struct Found {
    paths: Paths,
    env: BTreeMap<String, String>,
    own_env: BTreeMap<String, String>,
    tools: PathBuf,
    uv: String,
    python: String,
    gateway: Gateway,
}

impl Build<'_> {
    pub async fn build_sandbox(&self, start: Start) -> Result<BuildSandbox> {
        let program = self.program().await?;
        let port = match self.backend.own_loopback() {
            true => None,
            false => Some(self.egress.listen().await?),
        };
        let spec = Spec {
            start,
            network: false,
            host_port: port.as_ref().map(|port| port.port),
            root: true,
            limits: self.settings.limits.clone(),
            // A variable can make almost any program run code (PERL5OPT, PYTHONWARNINGS), and what begins here may go on
            // while system packages are installed. Steps that are the recipe's get its variables themselves.
            env: path_alone(&self.recipe.env),
            mounts: vec![Mount {
                host: program,
                inside: PathBuf::from(PROGRAM),
                read_only: true,
            }],
            purpose: "build".to_owned(),
        };
        let sandbox = self
            .timed("start a sandbox", self.backend.start(&spec))
            .await?;
        match self.equip(sandbox.as_ref(), port.as_ref()).await {
            Ok(found) => Ok(BuildSandbox {
                sandbox,
                paths: found.paths,
                env: found.env,
                own_env: found.own_env,
                tools: found.tools,
                uv: found.uv,
                python: found.python,
                _gateway: found.gateway,
                _port: port,
            }),
            Err(error) => {
                let _ = sandbox.stop().await;
                Err(error)
            }
        }
    }

    /// A folder with uv alone in it, to be mounted.
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

    /// Finds out where things are, and puts there what is missing.
    async fn equip(&self, sandbox: &dyn Sandbox, port: Option<&HostPort>) -> Result<Found> {
        let paths = sandbox.facts().paths.clone();
        let tools = paths.store.join("build");
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
        let mut env = BTreeMap::new();
        if let Some(bundle) = &self.settings.ca_bundle {
            let inside = tools.join("ca.pem");
            sandbox
                .upload(&inside, &tokio::fs::read(bundle).await?, 0o644)
                .await?;
            for name in [
                "SSL_CERT_FILE",
                "PIP_CERT",
                "REQUESTS_CA_BUNDLE",
                "CURL_CA_BUNDLE",
                "GIT_SSL_CAINFO",
            ] {
                env.insert(name.to_owned(), text(&inside));
            }
        }
        let mut probe = Command::shell(
            "echo \"$PATH\"; [ -x \"$PROGRAM\" ] && echo \"$PROGRAM\" || echo; \
             { [ -n \"$VERSION\" ] && command -v \"python$VERSION\"; } || command -v python3 || \
             { [ -x \"$PUBLISHED\" ] && echo \"$PUBLISHED\"; } || command -v python || echo; \
             [ -x \"$PUBLISHED\" ] && echo \"$PUBLISHED\" || command -v python || echo",
        );
        // As variables, because a backend may have mounts elsewhere, and says so in them.
        let version = self.recipe.python.clone().unwrap_or_default();
        probe.env.insert("VERSION".to_owned(), version);
        probe
            .env
            .insert("PROGRAM".to_owned(), format!("{PROGRAM}/uv"));
        probe
            .env
            .insert("PUBLISHED".to_owned(), PUBLISHED.to_owned());
        let said = output(sandbox, &probe, Duration::from_secs(60)).await?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut lines = said.lines().map(str::to_owned);
        let path = lines.next().unwrap_or_default();
        let mut mounted = || lines.next().filter(|l| !l.is_empty());
        // A remote engine has no mounts.
        let uv = match mounted() {
            Some(uv) => uv,
            None => {
                let uv = tools.join("uv");
                sandbox
                    .upload(&uv, &tokio::fs::read(&self.uv).await?, 0o755)
                    .await?;
                text(&uv)
            }
        };
        let any_python = mounted().or_else(|| self.recipe.interpreter.clone());
        let python = match (&self.recipe.image, &self.recipe.interpreter) {
            (None, _) => text(&paths.environment.join("bin/python")),
            (Some(_), Some(interpreter)) => interpreter.clone(),
            (Some(image), None) => mounted().ok_or_else(|| {
                SandboxError::new(
                    ErrorKind::Input,
                    format!("the image {image} has no `python` on its PATH"),
                )
                .hint("name it with interpreter = \"/path/to/python\" in [environment]")
            })?,
        };
        let gateway = match port {
            Some(port) => self.egress.by_host(port),
            None => {
                let python = any_python.as_ref().unwrap_or(&python);
                self.egress.attach(sandbox, python).await?
            }
        };
        env.extend(self.egress.variables(&gateway));
        let packages = text(&tools.join("packages"));
        let bin = Path::new(&python).parent().map(text).unwrap_or_default();
        let path = if path.split(':').any(|p| p == bin) {
            path
        } else {
            format!("{bin}:{path}")
        };
        // Behind everything, for the recipe's own commands.
        let path = format!(
            "{path}:{}",
            Path::new(&uv).parent().map(text).unwrap_or_default()
        );
        let fixed = [
            ("PATH", path.as_str()),
            ("UV_CACHE_DIR", packages.as_str()),
            // Its cache is this sandbox's own.
            ("UV_LINK_MODE", "hardlink"),
            ("UV_NO_CONFIG", "1"),
            ("UV_NO_PROGRESS", "1"),
            ("UV_PYTHON_DOWNLOADS", "never"),
            ("UV_CONCURRENT_BUILDS", "2"),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // Steps run as root, the workspace belongs to the user that tools run as.
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ];
        env.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if self.recipe.image.is_none() {
            env.insert("VIRTUAL_ENV".to_owned(), text(&paths.environment));
        }
        let own_env = env.clone();
        env.extend(self.recipe.env.clone());
        Ok(Found {
            paths,
            env,
            own_env,
            tools,
            uv,
            python,
            gateway,
        })
    }
}

/// Programs are looked for where the recipe says.
fn path_alone(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let path = env.get_key_value("PATH");
    path.map(|(name, value)| (name.clone(), value.clone()))
        .into_iter()
        .collect()
}

impl BuildSandbox {
    pub fn uv<S: Into<String>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        Command::new(std::iter::once(self.uv.clone()).chain(arguments.into_iter().map(Into::into)))
    }

    /// `name==version` of everything that is installed.
    pub async fn packages(&self) -> Result<Vec<String>> {
        let mut command = self.uv([
            "pip",
            "list",
            "--quiet",
            "--format=freeze",
            "--python",
            &self.python,
        ]);
        command.env = self.env.clone();
        let said = output(self.sandbox.as_ref(), &command, Duration::from_secs(120)).await?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut packages: Vec<_> = said
            .lines()
            .map(str::trim)
            .filter(|l| l.contains("=="))
            .map(str::to_owned)
            .collect();
        packages.sort();
        Ok(packages)
    }
}
