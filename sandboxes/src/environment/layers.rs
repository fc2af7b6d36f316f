//! The build of the two layers of an environment, step by step.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::build::{Build, BuildInput};
use super::build_sandbox::BuildSandbox;
use super::eviction;
use super::install_targets::install_targets;
use super::lease::Lease;
use super::log::Log;
use super::records::{self, Layer};
use super::scm_version::tag_of;
use super::sharing::FetchOutcome;
use super::steps::{Steps, label, text};
use super::{Environment, lock, surroundings};
use crate::egress::Host;
use crate::error::SandboxError;
use crate::sandbox::{Command, Result, SandboxSource, output, quote};
use crate::uv;

/// A finished build that is not recorded yet.
pub(super) struct BuildResult {
    pub environment: Environment,
    /// Lease on the layer, held until the record says that the environment is built on it.
    pub layer: Lease,
    pub log: Log,
    /// Size of the downloads in the cache, in bytes.
    pub downloads: u64,
}

pub(super) async fn build(input: &BuildInput<'_>) -> Result<BuildResult> {
    let (source, settings, plan) = (input.source, input.settings, input.plan);
    let log = settings.log(&plan.environment)?;
    log.count_from(input.begun);
    log.line(&format!(
        "{} {}\n{}\npackages as of {}\n",
        source.name,
        source.commit.as_deref().unwrap_or(&source.digest),
        input.origin,
        plan.date.as_deref().unwrap_or("now"),
    ));
    let seconds = log.end_step(input.begun);
    log.line(&format!(
        "-- wait for locks, and look for the environment: {seconds:.1} s"
    ));
    let (given, cache) = (settings.uv.clone(), settings.cache.clone());
    let may_install = !settings.offline;
    let find_uv = async {
        tokio::task::spawn_blocking(move || uv::find(given.as_deref(), &cache, may_install)).await?
    };
    let uv = log.timed("find uv", find_uv).await?;
    let egress = settings.egress()?;
    let build = Build {
        input,
        log: &log,
        uv,
        egress: &egress,
        begun: Instant::now(),
    };
    let done = build.layers().await;
    // Runs after failures too: a build that fails on purpose must not leave more downloads behind than others.
    let downloads = tokio::task::spawn_blocking(move || egress.finish()).await?;
    log.finish();
    let (environment, layer) = done?;
    Ok(BuildResult {
        environment,
        layer,
        log,
        downloads,
    })
}

impl Build<'_> {
    async fn layers(&self) -> Result<(Environment, Lease)> {
        let (source, recipe) = (self.source, self.recipe);
        self.findings.omit(&source.notes);
        let built = self.dependencies().await;
        let (mut notes, layer) = built.map_err(|error| self.with_omissions(error))?;
        self.findings.omit(&notes);
        let built = self.environment().await;
        let mut environment = built.map_err(|error| self.with_omissions(error))?;
        self.findings.omit(&environment.notes);
        notes.append(&mut environment.notes);
        notes.extend(source.notes.iter().cloned());
        if recipe.untested {
            notes.push("this recipe is untested: it follows published recipes".to_owned());
        }
        environment.notes = notes;
        // If this process ends before the environment is recorded, the next eviction removes its state.
        let folder = self.settings.cache.join("environments");
        let mark = records::removal_path(&folder, &environment.saved);
        records::write(&mark, &environment).await?;
        let verified = self.verify(&mut environment).await;
        if let Err(error) = verified {
            // The tests may reject a value that was guessed.
            let guessed = surroundings::guessed_variables(&environment.notes);
            self.findings.omit(&guessed);
            // A broken environment must not stay available under its name.
            if let Some(unwanted) = self.keep_rejected(environment) {
                eviction::remove(self.backend, &folder, &unwanted.saved, &mut Vec::new()).await;
            }
            return Err(self.with_omissions(error));
        }
        Ok((environment, layer))
    }

    /// Builds or finds the layer of requirements. Its notes are stored with its record, for builds that reuse it.
    async fn dependencies(&self) -> Result<(Vec<String>, Lease)> {
        let name = &self.plan.dependencies;
        let folder = self.settings.cache.join("environments");
        let record = records::path(&folder, name);
        let lock_path = folder.join(format!("{name}.lock"));
        let waiting = lock(&lock_path, self.progress);
        let _lock = self
            .log
            .timed("wait for the lock of the requirements", waiting)
            .await?;
        if !self.settings.rebuild
            && let Some(layer) = records::read::<Layer>(&record).await
            && self.backend.has_saved(name).await?
        {
            self.log.line(&format!("== {name} already exists\n"));
            self.keep_for_amendments();
            return Ok((layer.notes, Lease::take(&folder, name)?));
        }
        let sharing = self.sharing.filter(|_| !self.settings.rebuild);
        let claim = match sharing {
            Some(sharing) => {
                let look = async { Ok(sharing.fetch_or_claim::<Layer>(name).await) };
                let what = "look for the requirements on other machines";
                match self.log.timed(what, look).await? {
                    FetchOutcome::Fetched(layer) => {
                        self.log.line(&format!("== {name} was fetched\n"));
                        return self.record_layer(layer.notes).await;
                    }
                    FetchOutcome::Missing(claim) => claim,
                }
            }
            None => None,
        };
        let below = self.layer_below().await?;
        let has_interpreter = below.is_some();
        let start = match (&self.recipe.image, &self.recipe.python) {
            _ if let Some(below) = below => SandboxSource::Saved(below),
            (Some(image), _) => SandboxSource::Image(image.clone()),
            (None, Some(python)) => SandboxSource::Python(python.clone()),
            (None, None) => {
                return Err(SandboxError::input("the recipe sets no Python version").hint(
                    "set python = \"X.Y\" in [environment] of testwright.toml, or use --python X.Y",
                ));
            }
        };
        let builder = self.build_sandbox(start).await?;
        let done = self.install_requirements(&builder, has_interpreter).await;
        let notes = self.finish(builder, done, name).await?;
        self.keep_for_amendments();
        let recorded = self.record_layer(notes).await?;
        if let Some(sharing) = self.sharing
            && let Some(layer) = records::read::<Layer>(&record).await
        {
            let publish = async {
                sharing.publish(name, &layer).await;
                Ok(())
            };
            self.log.timed("share the requirements", publish).await?;
        }
        drop(claim);
        Ok(recorded)
    }

    /// Records the layer of requirements, which is in the cache. The caller holds its lock.
    async fn record_layer(&self, notes: Vec<String>) -> Result<(Vec<String>, Lease)> {
        let name = &self.plan.dependencies;
        let folder = self.settings.cache.join("environments");
        let layer = Layer {
            notes,
            bytes: self.backend.saved_bytes(name).await?,
            backend: self.backend.name().to_owned(),
        };
        records::write(&records::path(&folder, name), &layer).await?;
        Ok((layer.notes, Lease::take(&folder, name)?))
    }

    async fn install_requirements(
        &self,
        builder: &BuildSandbox,
        has_interpreter: bool,
    ) -> Result<Vec<String>> {
        let steps = self.steps(builder);
        // No code of the repository may run in the one step that can reach other hosts.
        let trusted = Steps {
            env: &builder.own_env,
            ..steps
        };
        let mut notes = self.system_packages(builder, &trusted).await?;
        if self.recipe.image.is_none() && !has_interpreter {
            let version = self.recipe.python.as_deref().unwrap_or("3");
            let find =
                format!("command -v python{version} || command -v python3 || command -v python");
            let base = steps.shell("find the interpreter", &find).await?;
            let base = base.trim().lines().last().unwrap_or_default().to_owned();
            let environment = text(&builder.paths.environment);
            let venv = builder.uv([
                "venv",
                "--quiet",
                "--no-project",
                "--python",
                &base,
                &environment,
            ]);
            steps.run("create the virtual environment", &venv).await?;
        }
        self.install_services(builder, &self.recipe.services)
            .await?;
        let requirements = &self.plan.requirements;
        if requirements.lines.is_empty() {
            return Ok(notes);
        }
        let step = "install the requirements";
        let printed = self.try_install(builder, step, &requirements.lines).await?;
        if printed.code == 0 {
            return Ok(notes);
        }
        if let Some(older) = self.older_python(builder, &printed).await? {
            return Err(self.try_older_python(older, steps.failed(step, &printed)));
        }
        self.require_added(builder).await?;
        if !(self.plan.guess.requirements && self.settings.keep_going) {
            return Err(steps.failed(step, &printed));
        }
        notes.extend(self.install_most(builder, &printed).await?);
        Ok(notes)
    }

    /// Installs Debian packages, or only checks for them if the sandbox shares the host's system.
    async fn system_packages(
        &self,
        builder: &BuildSandbox,
        steps: &Steps<'_>,
    ) -> Result<Vec<String>> {
        let packages = &self.recipe.system_packages;
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        let names = packages
            .iter()
            .map(|p| quote(p))
            .collect::<Vec<_>>()
            .join(" ");
        if builder.sandbox.info().backend != "local" {
            // The image lists Debian's own servers. No code of the repository or of packages has run in it yet.
            let sources = "cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null; true";
            let sources = output(
                builder.sandbox.as_ref(),
                &Command::shell(sources),
                COMMAND_TIMEOUT,
            )
            .await?;
            let sources = String::from_utf8_lossy(&sources.stdout).into_owned();
            let _open = self
                .egress
                .allow_temporarily(Host::in_apt_sources(&sources));
            let script = format!(
                "export DEBIAN_FRONTEND=noninteractive; apt='apt-get -qq -o APT::Sandbox::User=root'; $apt update && \
                 $apt install -y --no-install-recommends -- {names} && rm -rf /var/lib/apt/lists/*"
            );
            steps.shell("install system packages", &script).await?;
            return Ok(Vec::new());
        }
        let script = format!(
            "for p in {names}; do dpkg-query -W -f='${{Status}}' \"$p\" 2>/dev/null | grep -q 'install ok' || echo \"missing $p\"; done"
        );
        let output = steps.shell("check for system packages", &script).await?;
        Ok(output
            .lines()
            .filter_map(|l| l.strip_prefix("missing "))
            .map(|p| format!("the Debian package {p} is not installed on this machine: tests that need it will be skipped or fail"))
            .collect())
    }

    /// Builds the layer of the code itself.
    async fn environment(&self) -> Result<Environment> {
        let builder = self
            .build_sandbox(SandboxSource::Saved(self.plan.dependencies.clone()))
            .await?;
        let done = self.install_code(&builder).await;
        self.finish(builder, done, &self.plan.environment).await
    }

    async fn install_code(&self, builder: &BuildSandbox) -> Result<Environment> {
        let steps = self.steps(builder);
        let unpack = || {
            let unpacking =
                (builder.sandbox).unpack(&builder.paths.workspace, &self.source.archive);
            self.log.timed("unpack the code", unpacking)
        };
        if self.recipe.image.is_some() {
            // An image may contain another version of the code and its later history. Ignored build products stay.
            steps
                .shell(
                    "clear the workspace",
                    "if [ -d .git ]; then git -c safe.directory='*' ls-files -z | xargs -0 rm -f; rm -rf .git; fi",
                )
                .await?;
        }
        unpack().await?;
        let base_archive = builder.paths.store.join("base.tar");
        let upload = (builder.sandbox).upload_file(&base_archive, &self.source.archive, 0o644);
        self.log
            .timed("store the archive of the code", upload)
            .await?;
        if self.recipe.git {
            let tag = self.source.describe.as_deref().map(tag_of);
            self.make_git(&steps, tag).await?;
        }
        for script in &self.recipe.before_install {
            let step = format!("before the installation: {}", label(script));
            steps.shell(&step, script).await?;
        }
        let default = ["-e".to_owned(), ".".to_owned()];
        let install = match &self.recipe.install {
            Some(install) => install.as_slice(),
            None if self.recipe.image.is_some() => &[],
            None => &default,
        };
        let mut notes = Vec::new();
        if !install.is_empty() {
            notes = self.install_package(builder, install).await?;
        }
        let targets = install_targets(install);
        self.check_extras(builder, &targets).await?;
        self.place_projects(builder, &targets).await?;
        for script in &self.recipe.after_install {
            let mut command = Command::shell(script.clone());
            command.env.extend(self.plan.version.variables(true));
            let step = format!("after the installation: {}", label(script));
            steps.run(&step, &command).await?;
        }
        let touched = !(self.recipe.before_install.is_empty()
            && install.is_empty()
            && self.recipe.after_install.is_empty());
        if touched {
            // Changes that the steps made to tracked files were only for those steps.
            unpack().await?;
        }
        self.refresh_builds(&steps, &targets).await?;
        self.compile(builder).await?;
        Ok(Environment {
            saved: self.plan.environment.clone(),
            recipe: self.recipe.clone(),
            origin: self.origin.to_owned(),
            repository: self.source.name.clone(),
            commit: self.source.commit.clone(),
            python: PathBuf::from(&builder.python),
            // Set during verification.
            python_version: String::new(),
            base_archive,
            env: self.runtime_variables(builder),
            log: self.log.path.clone(),
            cached: false,
            fetched: false,
            seconds: 0.0,
            packages: self
                .log
                .timed("list the packages", builder.packages())
                .await?,
            notes,
            paths: builder.paths.clone(),
            // Set when the environment is saved.
            bytes: 0,
            dependencies: self.plan.dependencies.clone(),
            backend: self.backend.name().to_owned(),
            lease: None,
        })
    }

    /// Creates a repository with one commit, and a tag if there is one.
    pub(super) async fn make_git(&self, steps: &Steps<'_>, tag: Option<String>) -> Result<()> {
        let mut script = "git init -q . && git add -A -f . && git -c user.name=testwright -c user.email=testwright@localhost \
                          -c commit.gpgsign=false commit -q --no-verify -m base"
            .to_owned();
        if let Some(tag) = tag {
            script.push_str(&format!(" && git tag {}", quote(&tag)));
        }
        let mut command = Command::shell(script);
        if let Some(date) = &self.source.date {
            for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
                command.env.insert(name.to_owned(), date.clone());
            }
        }
        steps
            .run("create a repository with one commit", &command)
            .await?;
        Ok(())
    }

    /// Compiles bytecode that is validated by content.
    ///
    /// A changed file of the same size and second would otherwise be taken for the old one.
    async fn compile(&self, builder: &BuildSandbox) -> Result<()> {
        let python = quote(&builder.python);
        let workspace = quote(&text(&builder.paths.workspace));
        let mode = if self.uv_compiles() {
            "--invalidation-mode checked-hash"
        } else {
            ""
        };
        let packages = if self.uv_compiles() || self.recipe.image.is_some() {
            String::new()
        } else {
            format!(
                "{python} -m compileall -q {} >/dev/null 2>&1; ",
                quote(&text(&builder.paths.environment.join("lib")))
            )
        };
        // Errors are ignored, because files for other Pythons and broken test data do not compile. The files that root
        // created are handed to the user that tools run as.
        let script = format!(
            "{packages}{python} -m compileall -q -j 2 {mode} -x '/(\\.git|node_modules|build)/' {workspace} >/dev/null 2>&1; \
             chown -R -h --reference={workspace} {workspace} 2>/dev/null; true"
        );
        self.steps(builder)
            .shell("compile bytecode", &script)
            .await?;
        Ok(())
    }

    /// Returns the variables for every later process: those of the recipe, and PATH if the interpreter is not on it.
    fn runtime_variables(&self, builder: &BuildSandbox) -> BTreeMap<String, String> {
        let mut env = self.recipe.env.clone();
        for service in &self.recipe.services {
            for (name, value) in &service.env {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        if self.recipe.image.is_some()
            && let Some(path) = builder.env.get("PATH")
        {
            env.entry("PATH".to_owned()).or_insert_with(|| path.clone());
        }
        env
    }
}

/// Time limit of short commands.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
