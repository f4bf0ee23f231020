//! Counters and histograms, in Prometheus' form. Names follow vLLM's, where it has them.

use std::sync::atomic::AtomicU64;

use mlxcel_runtime::engine::Usage;
use prometheus_client::{
    encoding::{EncodeLabelSet, prometheus_text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Registry, Unit},
};

use crate::model::ServedModel;

/// The first word of every name.
const PREFIX: &str = "mlxcel";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    model_name: String,
    endpoint: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    model_name: String,
    endpoint: String,
    finished_reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    model_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PageLabels {
    model_name: String,
    /// The window of the pool's layers, or `all`.
    window: String,
    state: &'static str,
}

type Histograms = Family<ModelLabels, Histogram>;

/// What requests add to.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    answers: Family<AnswerLabels, Counter>,
    durations: Histograms,
    first_tokens: Histograms,
    between_tokens: Histograms,
    queue_times: Histograms,
}

/// The histograms that the tokens of one model add to.
#[derive(Debug)]
pub(super) struct TokenTimes {
    pub(super) first: Histogram,
    pub(super) between: Histogram,
    pub(super) queued: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let version = ("version", env!("CARGO_PKG_VERSION"));
        registry.register("build", "The program that serves", Info::new(vec![version]));
        let requests = Family::default();
        let help = "Requests by the status of their answer: that of the error if a stream fails, and 499 if the client \
            goes before the end";
        registry.register("requests", help, requests.clone());
        let answers = Family::default();
        registry.register("answers", "Answers by the reason why they ended", answers.clone());
        let mut seconds = |name: &str, help: &str, buckets: fn() -> Histogram| {
            let family = Histograms::new_with_constructor(buckets);
            registry.register_with_unit(name, help, Unit::Seconds, family.clone());
            family
        };
        Self {
            requests,
            answers,
            durations: seconds("request_duration", "From a request to the end of its answer", wide),
            first_tokens: seconds("time_to_first_token", "From a request to its first token", wide),
            between_tokens: seconds("inter_token_latency", "Between two tokens of an answer", narrow),
            queue_times: seconds("request_queue_time", "From a request to its first step", wide),
            registry,
        }
    }

    pub(super) fn count_request(&self, model: &str, endpoint: &str, status: u16) {
        let labels = RequestLabels { model_name: model.into(), endpoint: endpoint.into(), status };
        self.requests.get_or_create(&labels).inc();
    }

    pub(super) fn count_answer(&self, model: &str, endpoint: &str, finished_reason: &'static str) {
        let labels = AnswerLabels { model_name: model.into(), endpoint: endpoint.into(), finished_reason };
        self.answers.get_or_create(&labels).inc();
    }

    pub(super) fn observe_duration(&self, model: &str, seconds: f64) {
        self.durations.get_or_create(&ModelLabels { model_name: model.into() }).observe(seconds);
    }

    pub(super) fn token_times(&self, model: &str) -> TokenTimes {
        let labels = ModelLabels { model_name: model.into() };
        TokenTimes {
            first: self.first_tokens.get_or_create_owned(&labels),
            between: self.between_tokens.get_or_create_owned(&labels),
            queued: self.queue_times.get_or_create_owned(&labels),
        }
    }

    /// Writes all numbers, with those of the models' engines.
    pub(crate) fn encode<'a>(&self, models: impl Iterator<Item = &'a ServedModel>) -> String {
        let mut text = String::new();
        for registry in [&self.registry, &engines(models)] {
            // Nothing fails to be written to a string.
            _ = prometheus_text::encode(&mut text, registry);
        }
        text
    }
}

/// Returns buckets from 1 ms to 131 s.
fn wide() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 18))
}

/// Returns buckets from 1 ms to 4 s.
fn narrow() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 13))
}

/// Returns the numbers of engines as they are now.
fn engines<'a>(models: impl Iterator<Item = &'a ServedModel>) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    let mut gauges = |name: &str, help: &str| {
        let family = Family::<ModelLabels, Gauge>::default();
        registry.register(name, help, family.clone());
        family
    };
    let running = gauges("num_requests_running", "Requests that run");
    let waiting = gauges("num_requests_waiting", "Requests that wait for pages or for their turn");
    let limit = gauges("queue_limit", "Requests that may wait");
    let mut counters = |name: &str, help: &str| {
        let family = Family::<ModelLabels, Counter>::default();
        registry.register(name, help, family.clone());
        family
    };
    let prompt = counters("prompt_tokens", "Tokens of prompts that were run");
    let cached = counters("prompt_tokens_cached", "Tokens of prompts that pages of earlier requests had");
    let generated = counters("generation_tokens", "Tokens of answers");
    let drafted = counters("spec_decode_num_draft_tokens", "Tokens that were guessed and verified");
    let accepted = counters("spec_decode_num_accepted_tokens", "Guessed tokens that are part of an answer");
    let steps = counters("engine_steps", "Calls of the device");
    let rows = counters("engine_step_rows", "Rows of these calls, without padding");
    let seconds = Family::<ModelLabels, Counter<f64, AtomicU64>>::default();
    registry.register_with_unit("engine_step", "Time of these calls", Unit::Seconds, seconds.clone());
    let pages = Family::<PageLabels, Gauge>::default();
    registry.register("kv_cache_pages", "Pages of 64 positions by what keeps them", pages.clone());
    let usage = Family::<ModelLabels, Gauge<f64, AtomicU64>>::default();
    let help = "The part of the fullest pool of pages that requests hold, from 0 to 1";
    registry.register("kv_cache_usage_perc", help, usage.clone());
    for model in models {
        let Usage { waiting: waits, running: runs, is_stopped: _, pools, work } = model.usage();
        let labels = ModelLabels { model_name: model.name().to_owned() };
        for (family, value) in [(&running, runs), (&waiting, waits), (&limit, model.queue_limit())] {
            family.get_or_create(&labels).set(value as i64);
        }
        for (family, value) in [
            (&prompt, work.prompt_tokens),
            (&cached, work.cached_tokens),
            (&generated, work.generated_tokens),
            (&drafted, work.drafted_tokens),
            (&accepted, work.accepted_tokens),
            (&steps, work.steps),
            (&rows, work.rows),
        ] {
            family.get_or_create(&labels).inc_by(value);
        }
        seconds.get_or_create(&labels).inc_by(work.time.as_secs_f64());
        let mut fullest = 0.0f64;
        for (pool, limits) in pools.iter().zip(model.pools()) {
            let window = limits.window.map_or("all".to_owned(), |window| window.to_string());
            let in_use = pool.pages - pool.free - pool.cached;
            fullest = fullest.max(in_use as f64 / pool.pages.max(1) as f64);
            for (state, count) in [("in_use", in_use), ("cached", pool.cached), ("free", pool.free)] {
                let labels =
                    PageLabels { model_name: model.name().to_owned(), window: window.clone(), state };
                pages.get_or_create(&labels).set(count as i64);
            }
        }
        usage.get_or_create(&labels).set(fullest);
    }
    registry
}
