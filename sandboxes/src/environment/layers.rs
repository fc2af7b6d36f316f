//! The two layers of an environment, step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keys::Plan;
use super::steps::{Log, Steps, secret, text};
use super::{BuildSettings, Environment, Progress, lock, verify};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe::Recipe;
use crate::repository::Source;
use crate::sandbox::{Backend, Command, Mount, Paths, Result, Sandbox, Spec, Start, output};
use crate::uv;

/// Where uv's cache of packages is mounted in sandboxes that build.
const PACKAGES: &str = "/opt/testwright-packages";

/// What all steps of a build need.
struct Build<'a> {
    backend: &'a dyn Backend,
    source: &'a Source,
    recipe: &'a Recipe,
    settings: &'a BuildSettings,
    plan: &'a Plan,
    progress: Progress<'a>,
    log: &'a Log,
    uv: Vec<u8>,
}

/// A sandbox that was made ready for building.
struct Bench {
    sandbox: Box<dyn Sandbox>,
    paths: Paths,
    env: BTreeMap<String, String>,
    /// Files for the build alone.
    tools: PathBuf,
    python: String,
}

pub(super) async fn build(
    backend: &dyn Backend,
    source: &Source,
    recipe: &Recipe,
    origin: &str,
    settings: &BuildSettings,
    plan: &Plan,
    progress: Progress<'_>,
) -> Result<Environment> {
    let path = settings
        .cache
        .join("logs")
        .join(format!("{}.log", plan.environment));
    let urls = settings.index_url.iter().chain(&settings.extra_index_urls);
    let urls = urls.chain(settings.proxies.values());
    let log = Log::create(path, urls.filter_map(|u| secret(u)).collect())?;
    log.line(&format!(
        "{} {}\n{origin}\npackages as of {}\n",
        source.name,
        source.commit.as_deref().unwrap_or(&source.digest),
        plan.date.as_deref().unwrap_or("now"),
    ));
    let (given, cache, may_install) = (
        settings.uv.clone(),
        settings.cache.clone(),
        !settings.offline,
    );
    let uv = tokio::task::spawn_blocking(move || uv::find(given.as_deref(), &cache, may_install))
        .await
        .map_err(|e| SandboxError::new(ErrorKind::System, e.to_string()))??;
    let build = Build {
        backend,
        source,
        recipe,
        settings,
        plan,
        progress,
        log: &log,
        uv: tokio::fs::read(uv).await?,
    };
    let mut notes = build.dependencies().await?;
    let mut environment = build.environment(origin).await?;
    notes.append(&mut environment.notes);
    notes.extend(source.notes.iter().cloned());
    environment.notes = notes;
    if let Err(error) = verify::verify(
        backend,
        settings,
        &build.log_steps(),
        &mut environment,
        source,
    )
    .await
    {
        // What does not work must not be found by its name.
        let _ = backend.remove_saved(&plan.environment).await;
        return Err(error);
    }
    Ok(environment)
}

impl<'a> Build<'a> {
    fn log_steps(&self) -> verify::Logged<'a> {
        verify::Logged {
            log: self.log,
            progress: self.progress,
        }
    }

    /// The layer of requirements. Its notes lie beside the records, for builds that find it there.
    async fn dependencies(&self) -> Result<Vec<String>> {
        let name = &self.plan.dependencies;
        let folder = self.settings.cache.join("environments");
        let record = folder.join(format!("{name}.json"));
        let _lock = lock(&folder.join(format!("{name}.lock")), self.progress).await?;
        if !self.settings.rebuild
            && let Ok(notes) = tokio::fs::read(&record).await
            && let Ok(notes) = serde_json::from_slice(&notes)
            && self.backend.has_saved(name).await?
        {
            self.log.line(&format!("== {name} is there already\n"));
            return Ok(notes);
        }
        let start = match (&self.recipe.image, &self.recipe.python) {
            (Some(image), _) => Start::Image(image.clone()),
            (None, Some(python)) => Start::Python(python.clone()),
            (None, None) => {
                return Err(SandboxError::new(ErrorKind::Input, "the recipe names no Python")
                    .hint("set python = \"X.Y\" in [environment] of testwright.toml, or use --python X.Y"));
            }
        };
        let bench = self.bench(start).await?;
        let done = self.install_requirements(&bench).await;
        let notes = self.finish(bench, done, name).await?;
        let content = serde_json::to_vec(&notes).unwrap_or_default();
        tokio::fs::write(&record, content).await?;
        Ok(notes)
    }

    async fn install_requirements(&self, bench: &Bench) -> Result<Vec<String>> {
        let steps = self.steps(bench);
        let mut notes = self.system_packages(bench, &steps).await?;
        if self.recipe.image.is_none() {
            let version = self.recipe.python.as_deref().unwrap_or("3");
            let find =
                format!("command -v python{version} || command -v python3 || command -v python");
            let base = steps.shell("find the interpreter", &find).await?;
            let base = base.trim().lines().last().unwrap_or_default().to_owned();
            let environment = text(&bench.paths.environment);
            let venv = bench.uv([
                "venv",
                "--quiet",
                "--no-project",
                "--python",
                &base,
                &environment,
            ]);
            steps.run("make the virtual environment", &venv).await?;
        }
        let requirements = &self.plan.requirements;
        if requirements.lines.is_empty() {
            return Ok(notes);
        }
        let step = "install the requirements";
        let install = self.install(bench, &requirements.lines).await?;
        let printed = steps.attempt(step, &install).await?;
        if printed.code == 0 {
            return Ok(notes);
        }
        if !(self.plan.guessed && self.settings.keep_going) {
            return Err(steps.failed(step, &printed));
        }
        // What was guessed may be too much: then every requirement for itself. Without pytest nothing works.
        let mut any = false;
        for line in &requirements.lines {
            let install = self.install(bench, std::slice::from_ref(line)).await?;
            let one = steps.attempt(&format!("install {line}"), &install).await?;
            if one.code != 0 {
                if super::requirements::name(line) == "pytest" {
                    return Err(steps.failed(step, &printed));
                }
                notes.push(format!(
                    "requirement {line} cannot be installed and was left out"
                ));
            }
            any |= one.code == 0;
        }
        if any {
            Ok(notes)
        } else {
            Err(steps.failed(step, &printed))
        }
    }

    /// Debian packages: installed where the sandbox is a system of its own, looked for where it is the host's.
    async fn system_packages(&self, bench: &Bench, steps: &Steps<'_>) -> Result<Vec<String>> {
        let packages = &self.recipe.system_packages;
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        let names = packages
            .iter()
            .map(|p| quote(p))
            .collect::<Vec<_>>()
            .join(" ");
        if bench.sandbox.facts().backend != "local" {
            let script = format!(
                "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && \
                 apt-get install -y -qq --no-install-recommends {names} && rm -rf /var/lib/apt/lists/*"
            );
            steps.shell("install system packages", &script).await?;
            return Ok(Vec::new());
        }
        let script = format!(
            "for p in {names}; do dpkg-query -W -f='${{Status}}' \"$p\" 2>/dev/null | grep -q 'install ok' || echo \"missing $p\"; done"
        );
        let said = steps.shell("look for system packages", &script).await?;
        Ok(said
            .lines()
            .filter_map(|l| l.strip_prefix("missing "))
            .map(|p| format!("the Debian package {p} is not installed on this machine: tests that need it will be skipped or fail"))
            .collect())
    }

    /// The layer of the code itself.
    async fn environment(&self, origin: &str) -> Result<Environment> {
        let bench = self
            .bench(Start::Saved(self.plan.dependencies.clone()))
            .await?;
        let done = self.install_code(&bench, origin).await;
        self.finish(bench, done, &self.plan.environment).await
    }

    async fn install_code(&self, bench: &Bench, origin: &str) -> Result<Environment> {
        let steps = self.steps(bench);
        let workspace = &bench.paths.workspace;
        if self.recipe.image.is_some() {
            // A ready image may hold another state of the code, and its future. Ignored build products stay.
            steps
                .shell(
                    "clear the workspace",
                    "if [ -d .git ]; then git -c safe.directory='*' ls-files -z | xargs -0 rm -f; rm -rf .git; fi",
                )
                .await?;
        }
        bench
            .sandbox
            .unpack(workspace, &self.source.archive)
            .await?;
        let base_archive = bench.paths.store.join("base.tar");
        let content = tokio::fs::read(&self.source.archive).await?;
        bench.sandbox.upload(&base_archive, &content, 0o644).await?;
        drop(content);
        if self.recipe.git {
            self.make_git(&steps).await?;
        }
        for script in &self.recipe.before_install {
            steps
                .shell(&format!("before the installation: {script}"), script)
                .await?;
        }
        let none: &[String] = &[];
        let default = ["-e".to_owned(), ".".to_owned()];
        let install = match &self.recipe.install {
            Some(install) => install.as_slice(),
            None if self.recipe.image.is_some() => none,
            None => &default,
        };
        if !install.is_empty() {
            self.install_package(bench, &steps, install).await?;
        }
        for script in &self.recipe.after_install {
            let mut command = Command::shell(script.clone());
            command.env.extend(self.plan.version.variables(true));
            steps
                .run(&format!("after the installation: {script}"), &command)
                .await?;
        }
        let touched = !(self.recipe.before_install.is_empty()
            && install.is_empty()
            && self.recipe.after_install.is_empty());
        if touched {
            // What the steps changed in tracked files was for them alone.
            bench
                .sandbox
                .unpack(workspace, &self.source.archive)
                .await?;
        }
        self.compile(bench, &steps).await?;
        Ok(Environment {
            saved: self.plan.environment.clone(),
            recipe: self.recipe.clone(),
            origin: origin.to_owned(),
            python: PathBuf::from(&bench.python),
            base_archive,
            env: self.lasting(bench),
            log: self.log.path.clone(),
            cached: false,
            seconds: 0.0,
            packages: bench.packages().await?,
            notes: Vec::new(),
            paths: bench.paths.clone(),
            tests: None,
        })
    }

    async fn make_git(&self, steps: &Steps<'_>) -> Result<()> {
        let tag = match self.source.describe.as_deref() {
            Some(describe) => match describe.rsplitn(3, '-').collect::<Vec<_>>().as_slice() {
                [hash, _, tag] if hash.starts_with('g') => Some((*tag).to_owned()),
                _ => Some(describe.to_owned()),
            },
            None => None,
        };
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
            .run("make a repository of one commit", &command)
            .await?;
        Ok(())
    }

    /// `uv pip install` of the package, and two ways out: a version that was meant for another package, and build
    /// tools that know no editable installs.
    async fn install_package(
        &self,
        bench: &Bench,
        steps: &Steps<'_>,
        install: &[String],
    ) -> Result<()> {
        let step = "install the package";
        let mut command = self.install_command(bench, install);
        command.env.extend(self.plan.version.variables(true));
        let mut printed = steps.attempt(step, &command).await?;
        let mismatch = printed.text.contains("does not match given version");
        if printed.code != 0 && mismatch && self.plan.version.variable.is_some() {
            let mut command = self.install_command(bench, install);
            command.env.extend(self.plan.version.variables(false));
            printed = steps.attempt(step, &command).await?;
        }
        let editable = install.iter().position(|a| a == "-e" || a == "--editable");
        let refused =
            printed.text.contains("build_editable") && printed.text.contains("has no attribute");
        if printed.code != 0
            && refused
            && let Some(at) = editable
        {
            return self.develop(bench, steps, install, at).await;
        }
        if printed.code != 0 {
            return Err(steps.failed(step, &printed));
        }
        Ok(())
    }

    /// An editable install without the build tool's help: installed as it is for the sake of what it depends on, then
    /// replaced by a link as `setup.py develop` makes it.
    async fn develop(
        &self,
        bench: &Bench,
        steps: &Steps<'_>,
        install: &[String],
        editable: usize,
    ) -> Result<()> {
        let mut plain = install.to_vec();
        plain.remove(editable);
        let before = bench.packages().await?;
        let mut command = self.install_command(bench, &plain);
        command.env.extend(self.plan.version.variables(true));
        steps
            .run("install what the package depends on", &command)
            .await?;
        let name = steps
            .shell(
                "ask for the package's name",
                "python setup.py --quiet --name 2>/dev/null | tail -n 1",
            )
            .await?;
        let name = super::requirements::name(name.trim());
        if !before.iter().any(|p| p.starts_with(&format!("{name}=="))) {
            steps
                .run(
                    "remove the copy",
                    &bench.uv(["pip", "uninstall", "--python", &bench.python, &name]),
                )
                .await?;
        }
        let mut command = Command::new(["python", "setup.py", "--quiet", "develop", "--no-deps"]);
        command.env.extend(self.plan.version.variables(true));
        steps.run("link the package", &command).await?;
        Ok(())
    }

    fn install_command(&self, bench: &Bench, what: &[String]) -> Command {
        let mut arguments: Vec<String> = [
            "pip",
            "install",
            "--compile-bytecode",
            "--python",
            &bench.python,
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(date) = &self.plan.date {
            arguments.push(format!("--exclude-newer={date}"));
            arguments.extend(self.plan.requirements.exempt.iter().cloned());
        }
        if self.recipe.prereleases {
            arguments.push("--prerelease=allow".to_owned());
        }
        if !self.plan.requirements.build_constraints.is_empty() {
            arguments.push(format!(
                "--build-constraints={}",
                text(&bench.tools.join("build.txt"))
            ));
        }
        if !self.plan.requirements.constraints.is_empty() {
            arguments.push(format!(
                "--constraints={}",
                text(&bench.tools.join("constraints.txt"))
            ));
        }
        if self.settings.offline {
            arguments.push("--offline".to_owned());
        }
        arguments.extend(what.iter().cloned());
        bench.uv(arguments)
    }

    /// Installs requirement lines, by way of a file.
    async fn install(&self, bench: &Bench, lines: &[String]) -> Result<Command> {
        let file = bench.tools.join("requirements.txt");
        let content = lines.join("\n") + "\n";
        self.log
            .line(&format!("-- requirements.txt\n{}", content.trim_end()));
        bench
            .sandbox
            .upload(&file, content.as_bytes(), 0o644)
            .await?;
        Ok(self.install_command(bench, &["-r".to_owned(), text(&file)]))
    }

    /// Bytecode that is checked by content: a file that is changed within a second and keeps its size is never taken
    /// for the old one.
    async fn compile(&self, bench: &Bench, steps: &Steps<'_>) -> Result<()> {
        let modern = self.recipe.python.as_deref() != Some("3.6");
        let mode = if modern && self.recipe.image.is_none() {
            "--invalidation-mode checked-hash"
        } else {
            ""
        };
        let workspace = quote(&text(&bench.paths.workspace));
        // Files for other Pythons and broken test data do not compile: no matter. The files that root made are given
        // to the user that tools run as.
        let script = format!(
            "{} -m compileall -q -j 2 {mode} -x '/(\\.git|node_modules|build)/' {workspace} >/dev/null 2>&1; \
             chown -R -h --reference={workspace} {workspace} 2>/dev/null; true",
            quote(&bench.python)
        );
        steps.shell("compile bytecode", &script).await?;
        Ok(())
    }

    async fn bench(&self, start: Start) -> Result<Bench> {
        let packages = self.settings.cache.join("packages");
        tokio::fs::create_dir_all(&packages).await?;
        let spec = Spec {
            start,
            network: !self.settings.offline,
            root: true,
            limits: self.settings.limits.clone(),
            env: self.recipe.env.clone(),
            mounts: vec![Mount {
                host: packages,
                inside: PathBuf::from(PACKAGES),
                read_only: false,
            }],
            purpose: "build".to_owned(),
        };
        let sandbox = self.backend.start(&spec).await?;
        match self.equip(sandbox.as_ref()).await {
            Ok((paths, tools, env, python)) => Ok(Bench {
                sandbox,
                paths,
                env,
                tools,
                python,
            }),
            Err(error) => {
                let _ = sandbox.stop().await;
                Err(error)
            }
        }
    }

    /// Puts uv, certificates and constraints there, and finds out where things are.
    async fn equip(
        &self,
        sandbox: &dyn Sandbox,
    ) -> Result<(Paths, PathBuf, BTreeMap<String, String>, String)> {
        let paths = sandbox.facts().paths.clone();
        let tools = paths.store.join("build");
        sandbox.upload(&tools.join("uv"), &self.uv, 0o755).await?;
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
        let mut env = self.settings.proxies.clone();
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
            ] {
                env.insert(name.to_owned(), text(&inside));
            }
        }
        let probe = format!(
            "printf '%s\\n' \"$PATH\"; [ -w {PACKAGES} ] && echo {PACKAGES} || echo; command -v python || echo"
        );
        let said = output(sandbox, &Command::shell(probe), Duration::from_secs(60)).await?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut lines = said.lines();
        let path = lines.next().unwrap_or_default().to_owned();
        let packages = match lines.next() {
            Some(mounted) if !mounted.is_empty() => mounted.to_owned(),
            _ => text(&tools.join("packages")),
        };
        let python = match (&self.recipe.image, &self.recipe.interpreter) {
            (None, _) => text(&paths.environment.join("bin/python")),
            (Some(_), Some(interpreter)) => interpreter.clone(),
            (Some(image), None) => lines
                .next()
                .filter(|p| !p.is_empty())
                .map(str::to_owned)
                .ok_or_else(|| {
                    SandboxError::new(
                        ErrorKind::Input,
                        format!("the image {image} has no `python` on its PATH"),
                    )
                    .hint("name it with interpreter = \"/path/to/python\" in [environment]")
                })?,
        };
        let bin = Path::new(&python).parent().map(text).unwrap_or_default();
        let path = if path.split(':').any(|p| p == bin) {
            path
        } else {
            format!("{bin}:{path}")
        };
        let fixed = [
            ("PATH", path.as_str()),
            ("UV_CACHE_DIR", packages.as_str()),
            ("UV_LINK_MODE", "copy"),
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
        if let Some(url) = &self.settings.index_url {
            env.insert("UV_DEFAULT_INDEX".to_owned(), url.clone());
            env.insert("PIP_INDEX_URL".to_owned(), url.clone());
        }
        if !self.settings.extra_index_urls.is_empty() {
            env.insert(
                "UV_INDEX".to_owned(),
                self.settings.extra_index_urls.join(" "),
            );
        }
        env.extend(self.recipe.env.clone());
        Ok((paths, tools, env, python))
    }

    fn steps<'b>(&'b self, bench: &'b Bench) -> Steps<'b> {
        Steps {
            sandbox: bench.sandbox.as_ref(),
            log: self.log,
            progress: self.progress,
            env: bench.env.clone(),
            deadline: self.settings.step_deadline,
        }
    }

    /// What every later process gets: the recipe's variables, and the PATH if the interpreter is not on it anyway.
    fn lasting(&self, bench: &Bench) -> BTreeMap<String, String> {
        let mut env = self.recipe.env.clone();
        if self.recipe.image.is_some()
            && let Some(path) = bench.env.get("PATH")
        {
            env.entry("PATH".to_owned()).or_insert_with(|| path.clone());
        }
        env
    }

    /// Takes the tools away and saves the state, or stops if the work failed.
    async fn finish<T>(&self, bench: Bench, done: Result<T>, name: &str) -> Result<T> {
        let done = match done {
            Ok(value) => {
                let clean = Command::new(["rm", "-rf", &text(&bench.tools)]);
                match output(bench.sandbox.as_ref(), &clean, Duration::from_secs(120)).await {
                    Ok(_) => bench.sandbox.save(name).await.map(|()| value),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
        let stopped = bench.sandbox.stop().await;
        let value = done?;
        stopped?;
        Ok(value)
    }
}

impl Bench {
    fn uv<S: Into<String>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let program = text(&self.tools.join("uv"));
        Command::new(std::iter::once(program).chain(arguments.into_iter().map(Into::into)))
    }

    /// `name==version` of everything that is installed.
    async fn packages(&self) -> Result<Vec<String>> {
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

/// For `sh`.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
