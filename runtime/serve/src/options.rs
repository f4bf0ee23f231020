//! The command line.

mod limits;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use mlxcel_runtime::{CacheSize, DeviceSpec, LoadOptions};

use self::limits::LimitOptions;
use crate::{named::NamedBundle, note::LogFormat, origin::Origin};

/// Serve bundles over HTTP, in the wire format of OpenAI's API.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// The bundles: folders, or names in the store. Each is served under its name, or the one before it
    #[arg(required = true, value_name = "[NAME=]BUNDLE")]
    pub(crate) bundles: Vec<NamedBundle>,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// The checkpoint's folder, or a safetensors file, for bundles without weights
    #[arg(long, value_name = "PATH")]
    pub(crate) weights: Option<PathBuf>,
    /// A file of keys, one in each line, of which clients need one
    #[arg(long, value_name = "FILE")]
    pub(crate) api_keys: Option<PathBuf>,
    /// A file with the key that /admin/ takes
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_key: Option<PathBuf>,
    /// Requests of each bundle that may wait
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub(crate) queue: usize,
    /// The device: auto, local-task, local-sync, cuda or vulkan; `cuda:1` is the second GPU
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceSpec,
    /// Threads of local-task [default: one for each physical core]
    #[arg(short, long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Tokens of context [default: the bundle's]
    #[arg(short, long, value_name = "N")]
    pub(crate) ctx_size: Option<usize>,
    /// Memory for keys and values of each bundle, such as 4GiB [default: one context for each of 16 requests, if memory allows]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache_size: Option<CacheSize>,
    /// Seconds that answers have to end after SIGTERM
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    drain: u64,
    /// The form of the log on stderr, which has a line for each request
    #[arg(long, value_enum, default_value = "text", value_name = "FORM")]
    pub(crate) log: LogFormat,
    /// Write the bodies of requests to the log, prompts included
    #[arg(long)]
    pub(crate) log_prompts: bool,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) origin: Origin,
}

/// Requests whose contexts have room by default.
const SEQUENCES: usize = 16;

impl Options {
    /// Returns how a bundle is loaded whose cache has a share of the memory.
    pub(crate) fn load_options(&self, cache_memory: Option<u64>) -> LoadOptions {
        LoadOptions {
            device: self.device,
            threads: self.threads,
            context: self.ctx_size,
            cache: self.cache_size.unwrap_or(CacheSize::Sequences(SEQUENCES)),
            cache_memory,
        }
    }

    /// Returns the time that answers have to end.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}
