//! The metrics of a process. Names follow the conventions of Prometheus; labels have few values.

use std::collections::BTreeSet;
use std::sync::Mutex;

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use testwright_config::lock::lock;
use testwright_sandboxes::Shortage;

use super::process::ProcessCollector;
use crate::store::QueueState;

/// Media type of the metrics.
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

type Labels<const N: usize> = [(&'static str, String); N];
type Counts<const N: usize> = Family<Labels<N>, Counter>;
type Durations<const N: usize> = Family<Labels<N>, Histogram>;

/// Maximum number of model names that metrics distinguish; any further model counts as `other`.
const MAX_MODELS: usize = 50;

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    runs: Counts<1>,
    returned: Counts<2>,
    pub paused: Gauge,
    queue_wait: Histogram,
    run_duration: Durations<1>,
    running: Gauge,
    models: Mutex<BTreeSet<String>>,
    model_calls: Counts<1>,
    model_tokens: Counts<2>,
    model_dollars: Family<Labels<1>, Counter<f64, std::sync::atomic::AtomicU64>>,
    model_call_duration: Durations<1>,
    tool_calls: Counts<2>,
    tool_call_duration: Durations<1>,
    http_requests: Counts<3>,
    http_duration: Durations<2>,
    pub listeners: Gauge,
    stored_runs: Family<Labels<1>, Gauge>,
    oldest_waiting: Gauge,
    pub retention_runs: Counter,
    cache_bytes: Family<Labels<1>, Gauge>,
}

/// Creates a histogram for responses, which should take at most 50 milliseconds.
fn short() -> Histogram {
    Histogram::new([
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    ])
}

/// Creates a histogram from a second to hours.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 14))
}

fn calls() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.5, 13))
}

/// A registry that is being filled.
struct Registration(Registry);

impl Registration {
    fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    fn add_with_unit<M: Metric + Clone>(
        &mut self,
        name: &str,
        help: &str,
        unit: Unit,
        metric: M,
    ) -> M {
        self.0.register_with_unit(name, help, unit, metric.clone());
        metric
    }

    /// Adds durations by labels, in histograms that `buckets` creates.
    fn add_durations<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        buckets: fn() -> Histogram,
    ) -> Durations<N> {
        let durations = Family::new_with_constructor(buckets);
        self.add_with_unit(name, help, Unit::Seconds, durations)
    }

    fn finish(mut self) -> Registry {
        let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
        self.0
            .register("build", "Version of testwright", Info::new(version));
        self.0
    }
}

impl Default for Metrics {
    /// Registers all metrics, in the order in which they are encoded.
    fn default() -> Self {
        let mut to = Registration(Registry::with_prefix("testwright"));
        Metrics {
            runs: to.add("runs", "Runs that ended in this process, by status"),
            returned: to.add(
                "returned_work",
                "Attempts that returned to the queue because of a shortage, by kind of shortage",
            ),
            paused: to.add(
                "taking_no_work",
                "1 while this process claims no jobs because of a shortage",
            ),
            running: to.add("running_runs", "Runs in progress in this process"),
            queue_wait: to.add_with_unit(
                "run_queue_wait",
                "Time from the creation of a run to its first attempt",
                Unit::Seconds,
                long(),
            ),
            run_duration: to.add_durations(
                "run_attempt_duration",
                "Duration of an attempt in this process, by resulting status",
                long,
            ),
            stored_runs: to.add("stored_runs", "Runs in the database, by status"),
            oldest_waiting: to.add_with_unit(
                "queue_oldest_run_age",
                "Age of the oldest queued run; 0 if no run is queued",
                Unit::Seconds,
                Gauge::default(),
            ),
            retention_runs: to.add(
                "retention_removed_runs",
                "Runs that this process removed from the database because of their age",
            ),
            cache_bytes: to.add_with_unit(
                "cache",
                "Disk usage of the cache, by folder; measured every hour",
                Unit::Bytes,
                Family::default(),
            ),
            model_calls: to.add("model_calls", "Model calls that returned a reply"),
            model_tokens: to.add(
                "model_tokens",
                "Model tokens: input (which includes cached_input) and output",
            ),
            model_dollars: to.add(
                "model_cost_dollars",
                "Cost of model calls, by the price table",
            ),
            model_call_duration: to.add_durations(
                "model_call_duration",
                "Duration of a model call, including failed tries",
                calls,
            ),
            tool_calls: to.add("tool_calls", "Tool calls: ok or refused"),
            tool_call_duration: to.add_durations(
                "tool_call_duration",
                "Duration of a tool call",
                calls,
            ),
            http_requests: to.add("http_requests", "HTTP requests, by route"),
            http_duration: to.add_durations(
                "http_request_duration",
                "Time until the response headers were ready",
                short,
            ),
            listeners: to.add("event_listeners", "Clients that follow a run"),
            models: Mutex::default(),
            registry: to.finish(),
        }
    }
}

impl Metrics {
    pub fn run_begun(&self, waited: Option<f64>) {
        self.running.inc();
        if let Some(seconds) = waited {
            self.queue_wait.observe(seconds);
        }
    }

    /// Counts the end of an attempt; `has_ended` is `false` if the run returned to the queue.
    pub fn run_ended(&self, status: &str, has_ended: bool, seconds: f64) {
        self.running.dec();
        let labels = [("status", status.to_owned())];
        self.run_duration.get_or_create(&labels).observe(seconds);
        if has_ended {
            self.runs.get_or_create(&labels).inc();
        }
    }

    pub fn work_returned(&self, kind: &str, shortage: Shortage) {
        let kind = ("kind", kind.to_owned());
        let labels = [kind, ("shortage", shortage.as_str().to_owned())];
        self.returned.get_or_create(&labels).inc();
    }

    pub fn model_replied(&self, model: &str, usage: &testwright_models::Usage, seconds: f64) {
        let labels = [("model", self.known_model(model))];
        self.model_calls.get_or_create(&labels).inc();
        self.model_call_duration
            .get_or_create(&labels)
            .observe(seconds);
        if let Some(dollars) = usage.dollars {
            self.model_dollars.get_or_create(&labels).inc_by(dollars);
        }
        for (kind, tokens) in [
            ("input", usage.prompt_tokens),
            ("cached_input", usage.cached_tokens),
            ("output", usage.completion_tokens),
        ] {
            let labels = [labels[0].clone(), ("kind", kind.to_owned())];
            self.model_tokens.get_or_create(&labels).inc_by(tokens);
        }
    }

    fn known_model(&self, model: &str) -> String {
        let mut models = lock(&self.models);
        if models.len() < MAX_MODELS {
            models.insert(model.to_owned());
        }
        let is_known = models.contains(model);
        if is_known { model } else { "other" }.to_owned()
    }

    pub fn tool_answered(&self, tool: &str, refused: bool, seconds: f64) {
        let outcome = if refused { "refused" } else { "ok" };
        let tool = ("tool", tool.to_owned());
        let labels = [tool.clone(), ("outcome", outcome.to_owned())];
        self.tool_calls.get_or_create(&labels).inc();
        self.tool_call_duration
            .get_or_create(&[tool])
            .observe(seconds);
    }

    pub fn cache_measured(&self, folders: &[(String, u64)]) {
        self.cache_bytes.clear();
        for (folder, bytes) in folders {
            let labels = [("folder", folder.clone())];
            let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
            self.cache_bytes.get_or_create(&labels).set(bytes);
        }
    }

    pub fn request_answered(&self, method: &str, route: &str, status: u16, seconds: f64) {
        let labels = [("method", method.to_owned()), ("route", route.to_owned())];
        self.http_duration.get_or_create(&labels).observe(seconds);
        let [method, route] = labels;
        let labels = [method, route, ("status", status.to_string())];
        self.http_requests.get_or_create(&labels).inc();
    }

    /// Encodes all metrics as text. The caller passes the state of the queue; it is omitted if the database does not
    /// respond.
    ///
    /// # Errors
    ///
    /// Fails if a metric cannot be encoded.
    pub fn text(&self, queue: Option<&QueueState>) -> Result<String, std::fmt::Error> {
        self.stored_runs.clear();
        for (status, count) in queue.iter().flat_map(|queue| &queue.by_status) {
            let labels = [("status", status.as_str().to_owned())];
            self.stored_runs.get_or_create(&labels).set(*count);
        }
        let oldest = queue.and_then(QueueState::oldest_age);
        self.oldest_waiting.set(oldest.map_or(0, |age| age / 1000));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry)?;
        let mut process = Registry::default();
        process.register_collector(Box::new(ProcessCollector));
        prometheus_text::encode(&mut text, &process)?;
        Ok(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use testwright_models::Usage;

    #[test]
    fn number_of_model_series_is_limited() {
        let metrics = Metrics::default();
        for n in 0..200 {
            metrics.model_replied(&format!("m{n}"), &Usage::default(), 0.1);
        }
        let text = metrics.text(None).unwrap();
        let series = text.matches("testwright_model_calls_total{").count();
        assert_eq!(series, MAX_MODELS + 1);
        assert!(
            text.contains("testwright_model_calls_total{model=\"other\"} 150"),
            "{text}"
        );
    }

    #[test]
    fn names_and_texts_are_stable() {
        let metrics = Metrics::default();
        let text = metrics.text(None).unwrap();
        let described = text.lines().filter(|line| line.starts_with("# HELP "));
        insta::assert_snapshot!(described.collect::<Vec<_>>().join("\n"));
    }
}
