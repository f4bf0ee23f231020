//! `mlxcel-compile`: makes a bundle out of a model. Results go to stdout, everything else to stderr.

use std::{
    env,
    io::{self, IsTerminal as _, Write},
    path::PathBuf,
    process::{self, ExitCode},
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_artifacts::{Bundle, Driver, INTERRUPTED, Machine, choose, report};
use mlxcel_compiler_driver::{
    Cancel, Error, Event, Kv, Precision, Quant, Request, Source, Target, WeightsFrom, build, emit,
    write_random_weights,
};
use mlxcel_models::PRESETS;

/// Compile a language model into a bundle. The last line on stdout is the bundle's path.
#[derive(Parser)]
#[command(name = "mlxcel-compile", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    compile: Compile,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Args)]
struct Compile {
    /// A preset's name (--list-models lists them), or a folder with a config.json
    #[arg(long, required_unless_present_any = ["list_targets", "list_models"])]
    model: Option<String>,
    /// What to compile for (--list-targets); several with commas between them go into one bundle
    #[arg(long, value_delimiter = ',', default_value = "cpu")]
    target: Vec<String>,
    /// FOLDER, `random[:SEED]` or `none` [default: the model folder's own; none for a preset]
    #[arg(long, value_name = "FOLDER|random[:SEED]|none")]
    weights: Option<WeightsFrom>,
    /// What matrix products are computed in: auto (the checkpoint's type), f32, bf16 or f16
    #[arg(long, default_value = "auto")]
    precision: Precision,
    /// How the weights of matrix products are quantised: none, q8 (8 bits, a scale for each output) or q4 (GGUF's Q4_0)
    #[arg(long, default_value = "none")]
    quant: Quant,
    /// What the key/value cache holds: f32, bf16, f16 or q8 (GGUF's Q8_0) [default: the precision]
    #[arg(long, value_name = "TYPE")]
    kv: Option<Kv>,
    /// Positions of the cache [default: 4096 or what the model was made for, whichever is less]
    #[arg(long, value_name = "N")]
    ctx: Option<usize>,
    /// The bundle's folder; a bundle that is there is replaced [default: MODEL.bundle]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print this instead of making a bundle
    #[arg(long, conflicts_with_all = ["out", "keep"])]
    emit: Option<Emit>,
    /// Leave the MLIR, the flags and the vmfbs in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Leave the weights as they are: every start packs them then, until mlxcel-pack has done it
    #[arg(long)]
    no_pack: bool,
    /// The folder that remembers what was compiled before [default: ~/.cache/mlxcel]
    #[arg(long, value_name = "FOLDER", env = "MLXCEL_STORE")]
    store: Option<PathBuf>,
    /// List the targets and end
    #[arg(long, conflicts_with = "list_models")]
    list_targets: bool,
    /// List the presets and end
    #[arg(long)]
    list_models: bool,
}

/// The program that packs weights, of the runtime.
const PACK: &str = "mlxcel-pack";

/// What can be printed instead of making a bundle.
#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    /// The program as StableHLO text
    Mlir,
}

#[derive(Subcommand)]
enum Command {
    /// Write the random checkpoint that `--weights random:SEED` puts into a bundle, in Hugging Face's form
    RandomWeights {
        /// A preset's name, or a folder with a config.json
        #[arg(long)]
        model: String,
        /// The seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// The folder to write; it must not exist
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let mut watcher = Watcher::default();
    let cancel = Cancel::on_signals();
    let done = run(Cli::parse(), &cancel, &mut watcher);
    watcher.clear();
    if done.is_err() && cancel.is_cancelled() {
        _ = writeln!(io::stderr(), "interrupted; nothing was written");
        return ExitCode::from(INTERRUPTED);
    }
    let printed = match done {
        Ok(text) => io::stdout().lock().write_all(text.as_bytes()),
        Err(error) => {
            // Nothing is left to tell it to when stderr is gone.
            _ = writeln!(io::stderr(), "{}", report(&error));
            return ExitCode::FAILURE;
        }
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            _ = writeln!(io::stderr(), "error: cannot write to stdout: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Does what is asked and gives what goes to stdout.
fn run(cli: Cli, cancel: &Cancel, watcher: &mut Watcher) -> Result<String, Error> {
    match cli.command {
        Some(Command::RandomWeights { model, seed, out }) => {
            write_random_weights(&Source::find(&model)?, seed, &out, cancel)?;
            Ok(format!("{}\n", out.display()))
        }
        None if cli.compile.list_targets => {
            Ok(table(Target::all()?.into_iter().map(|target| (target.name, target.description)).collect()))
        }
        None if cli.compile.list_models => {
            Ok(PRESETS.iter().map(|preset| format!("{}\n", preset.name)).collect())
        }
        None => compile(cli.compile, cancel, watcher),
    }
}

fn compile(args: Compile, cancel: &Cancel, watcher: &mut Watcher) -> Result<String, Error> {
    let request = Request {
        // Required by the parser wherever this is reached.
        model: Source::find(args.model.as_deref().unwrap_or_default())?,
        targets: args.target,
        weights: args.weights.unwrap_or_default(),
        precision: args.precision,
        quant: args.quant,
        kv: args.kv,
        context: args.ctx,
        out: args.out,
        keep: args.keep,
        store: args.store,
        compiler: None,
        cancel: cancel.clone(),
    };
    let mut progress = |event| watcher.see(event);
    match args.emit {
        Some(Emit::Mlir) => Ok(emit(&request, &mut progress)?.mlir),
        None => {
            let bundle = build(&request, &mut progress)?;
            if !args.no_pack {
                pack(&bundle, &mut progress);
            }
            Ok(format!("{}\n", bundle.path().display()))
        }
    }
}

/// Has the weights of a bundle packed that can be run here. It takes the runtime, which is a program of its own.
fn pack(bundle: &Bundle, progress: &mut dyn FnMut(Event)) {
    let manifest = bundle.manifest();
    let runs_here = choose(manifest, &Machine::this(), &[Driver::Local]);
    let has_work = runs_here.is_ok_and(|(_, target)| target.packing.is_some());
    if manifest.weights.is_empty() || !has_work {
        return;
    }
    let beside = env::current_exe().ok().map(|program| program.with_file_name(PACK));
    let program = beside.filter(|program| program.is_file()).unwrap_or_else(|| PACK.into());
    progress(Event::Weights { file: "packed weights".into() });
    let run = process::Command::new(&program)
        .args(["--device", "local-task"])
        .arg(bundle.path())
        .stdin(process::Stdio::null())
        .stdout(process::Stdio::null())
        .status();
    let problem = match run {
        Ok(status) if status.success() => return,
        Ok(status) => format!("{} ended with {status}", program.display()),
        Err(error) => format!("cannot run {}: {error}", program.display()),
    };
    let path = bundle.path().display();
    progress(Event::Warning(format!(
        "the weights are not packed: {problem}\nhint: mlxcel-pack {path} packs them, else every start does"
    )));
}

/// Two columns.
fn table(rows: Vec<(String, String)>) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    rows.iter().map(|(name, text)| format!("{name:width$}  {text}\n")).collect()
}

/// Shows a build on stderr: a line per step that is done and, on a terminal, what is going on.
#[derive(Default)]
struct Watcher {
    spinner: Option<ProgressBar>,
    /// The targets that are being compiled.
    compiling: Vec<String>,
}

impl Watcher {
    fn see(&mut self, event: Event) {
        match event {
            Event::Warning(text) => self.say(&format!("warning: {text}")),
            Event::Emitted { bytes, took } => {
                self.say(&format!("emitted {} of MLIR in {}", size(bytes as u64), seconds(took)));
            }
            Event::Compiling { target } => {
                self.compiling.push(target);
                self.spin_compiling();
            }
            Event::Compiled { target, took, bytes } => {
                self.say(&format!("{target}: compiled in {}, {}", seconds(took), size(bytes)));
                self.compiling.retain(|other| *other != target);
                self.spin_compiling();
            }
            Event::Stored { target, bytes } => {
                self.say(&format!("{target}: from the store, {}", size(bytes)))
            }
            Event::Weights { file } => self.spin(format!("adding {file}")),
        }
    }

    fn say(&mut self, line: &str) {
        self.clear();
        _ = writeln!(io::stderr(), "{line}");
    }

    fn spin_compiling(&mut self) {
        if !self.compiling.is_empty() {
            self.spin(format!("compiling for {}", self.compiling.join(", ")));
        }
    }

    fn spin(&mut self, what: String) {
        self.clear();
        if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let spinner = ProgressBar::new_spinner().with_message(what);
            let spinner = style.map_or(spinner.clone(), |style| spinner.with_style(style));
            spinner.enable_steady_tick(Duration::from_millis(100));
            self.spinner = Some(spinner);
        }
    }

    fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn size(bytes: u64) -> String {
    let (kib, mib) = (bytes as f64 / 1024.0, bytes as f64 / f64::from(1 << 20));
    if mib >= 1.0 { format!("{mib:.1} MiB") } else { format!("{kib:.1} KiB") }
}
