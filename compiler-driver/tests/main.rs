//! Everything that compiles bundles, and the program that it is in: one program links once, and its tests share the cores to
//! the end.
//!
//! Only `soak` is a program of its own, because it measures its process.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]
#![allow(clippy::duplicate_mod, reason = "two of the emitter's examples share a file")]

mod answers;
mod attacks;
mod bare;
mod best;
mod c_interface;
mod calibration;
mod checkpoints;
mod cli;
mod demo;
mod documents;
mod emulated;
mod emulated_calls;
mod emulated_checkpoints;
mod emulated_faults;
mod encoders;
mod exact;
mod gguf_tokenizers;
mod graphs;
mod hub;
mod kills;
mod linked_kernels;
mod offline;
mod oracle;
mod other_gpus;
mod packing;
mod pipeline;
mod programs;
mod programs_run;
mod python;
mod qemu;
mod quantized;
mod real;
mod recorded_commands;
mod registry;
mod reproducible;
mod sandbox;
mod serving;
mod timeline;
mod verdicts;
