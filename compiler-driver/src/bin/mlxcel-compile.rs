//! `mlxcel-compile`: makes a bundle out of a model. Results go to stdout, everything else to stderr.

use std::{
    env,
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
    process::{self, Child, ExitCode, ExitStatus},
    thread,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use mlxcel_artifacts::{
    Bundle, INTERRUPTED, Machine, Name, Place, Scratch, Store, best_target, check_targets_at, report,
};
use mlxcel_compiler_driver::{
    CacheType, Cancel, Error, Event, ModelSource, Precision, Quant, Request, Target, WeightSource, build,
    emit, explain, write_random_weights,
};
use mlxcel_models::PRESETS;
use rustix::process::{Pid, Signal, kill_process};

/// Compile a language model into a bundle. The last line on stdout is the bundle's path, or its name in the store.
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
    #[arg(long, required_unless_present_any = ["explain", "list_targets", "list_models"])]
    model: Option<String>,
    /// What to compile for (--list-targets); several with commas between them go into one bundle
    #[arg(long, value_delimiter = ',', default_value = "cpu")]
    target: Vec<String>,
    /// FOLDER, `random[:SEED]` or `none` [default: the model folder's own; none for a preset]
    #[arg(long, value_name = "FOLDER|random[:SEED]|none")]
    weights: Option<WeightSource>,
    /// What matrix products are computed in: auto (the checkpoint's type), f32, bf16 or f16
    #[arg(long, default_value = "auto")]
    precision: Precision,
    /// How the weights of matrix products are quantised: none, q8 (8 bits, a scale for each output) or q4 (GGUF's Q4_0)
    #[arg(long, default_value = "none")]
    quant: Quant,
    /// What the key/value cache holds: f32, bf16, f16 or q8 (GGUF's Q8_0) [default: the precision]
    #[arg(long, value_name = "TYPE")]
    kv: Option<CacheType>,
    /// Positions of the cache [default: 4096 or what the model was made for, whichever is less]
    #[arg(long, value_name = "N")]
    ctx: Option<usize>,
    /// Tokens that a prompt goes through at a time, in the only size [default: sizes that suit the target]
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// The bundle's folder; a bundle that is there is replaced [default: MODEL.bundle]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Its name in the store, in place of a folder
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    name: Option<Name>,
    /// Print this instead of making a bundle
    #[arg(long, conflicts_with_all = ["out", "name", "keep"])]
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
    /// Say what a model is, a preset or a folder with a config.json, and end
    #[arg(long, value_name = "MODEL", conflicts_with_all = NOT_EXPLAINED)]
    explain: Option<String>,
    /// List the targets and end
    #[arg(long, conflicts_with = "list_models")]
    list_targets: bool,
    /// List the presets and end
    #[arg(long)]
    list_models: bool,
}

/// What does not change what a model is.
const NOT_EXPLAINED: [&str; 15] = [
    "model",
    "target",
    "weights",
    "precision",
    "quant",
    "kv",
    "ctx",
    "chunk",
    "out",
    "name",
    "emit",
    "keep",
    "no_pack",
    "list_targets",
    "list_models",
];

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
    // Nothing is left to tell it to when stderr is gone.
    let say = |text: &str| _ = writeln!(io::stderr(), "{text}");
    let (text, problem) = match done {
        Ok(Done { text, packed }) => (text, packed.err()),
        Err(_) if cancel.is_cancelled() => {
            say("interrupted; nothing was written");
            return ExitCode::from(INTERRUPTED);
        }
        Err(error) => {
            say(&report(&error));
            return ExitCode::FAILURE;
        }
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    match problem {
        None => ExitCode::SUCCESS,
        Some(NotPacked { reason, interrupted, hint }) => {
            say(&format!("{reason}\nhint: {hint}"));
            if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}

/// What was done.
struct Done {
    /// What goes to stdout.
    text: String,
    packed: Result<(), NotPacked>,
}

impl From<String> for Done {
    fn from(text: String) -> Self {
        Self { text, packed: Ok(()) }
    }
}

/// Why a bundle's weights are not packed, though it is whole without.
struct NotPacked {
    reason: String,
    interrupted: bool,
    hint: String,
}

/// Does what is asked.
fn run(cli: Cli, cancel: &Cancel, watcher: &mut Watcher) -> Result<Done, Error> {
    match cli.command {
        Some(Command::RandomWeights { model, seed, out }) => {
            write_random_weights(&ModelSource::find(&model)?, seed, &out, cancel)?;
            Ok(format!("{}\n", out.display()).into())
        }
        None if cli.compile.list_targets => {
            let rows = Target::all()?.into_iter().map(|target| (target.name, target.description));
            Ok(table(rows.collect()).into())
        }
        None if cli.compile.list_models => {
            Ok(PRESETS.iter().map(|preset| format!("{}\n", preset.name)).collect::<String>().into())
        }
        None => match cli.compile.explain {
            Some(model) => Ok(explain(&ModelSource::find(&model)?, cancel)?.into()),
            None => compile(cli.compile, cancel, watcher),
        },
    }
}

fn compile(args: Compile, cancel: &Cancel, watcher: &mut Watcher) -> Result<Done, Error> {
    let named = args.name.map(|name| Named::new(name, args.store.as_deref())).transpose()?;
    let request = Request {
        // Required by the parser wherever this is reached.
        model: ModelSource::find(args.model.as_deref().unwrap_or_default())?,
        targets: args.target,
        weights: args.weights.unwrap_or_default(),
        precision: args.precision,
        quant: args.quant,
        kv: args.kv,
        context: args.ctx,
        chunk: args.chunk,
        out: named.as_ref().map(Named::folder).or(args.out),
        keep: args.keep,
        store: args.store,
        compiler: None,
        cancel: cancel.clone(),
    };
    let mut progress = |event| watcher.see(event);
    match args.emit {
        Some(Emit::Mlir) => Ok(emit(&request, &mut progress)?.mlir.into()),
        None => {
            let bundle = build(&request, &mut progress)?;
            let hint = match &named {
                None => format!("mlxcel-pack {} packs them", bundle.path().display()),
                Some(Named { name, .. }) => {
                    format!(
                        "mlxcel-bundle copy {name} --out FOLDER gives one whose weights mlxcel-pack packs"
                    )
                }
            };
            let store = request.store.as_deref();
            let packed =
                if args.no_pack { Ok(()) } else { pack(&bundle, store, &hint, cancel, &mut progress) };
            match named {
                Some(named) => Ok(Done { text: named.finish(&mut progress)?, packed }),
                None => Ok(Done { text: format!("{}\n", bundle.path().display()), packed }),
            }
        }
    }
}

/// A bundle that is made in a folder and then put into the store.
struct Named {
    name: Name,
    store: Store,
    scratch: Scratch,
}

impl Named {
    fn new(name: Name, store: Option<&Path>) -> Result<Self, Error> {
        let store = Store::open(store)?;
        let scratch = store.scratch()?;
        Ok(Self { name, store, scratch })
    }

    /// The bundle's folder until then.
    fn folder(&self) -> PathBuf {
        self.scratch.path().join("bundle")
    }

    /// Gives the name, for stdout.
    fn finish(self, progress: &mut dyn FnMut(Event)) -> Result<String, Error> {
        let bundle = Bundle::open_without_weights(&self.folder())?;
        let replaced = self.store.write(&self.name, |to| bundle.copy_to(Box::new(to)))?;
        if let Some(replaced) = replaced {
            progress(Event::Warning(replaced.to_string()));
        }
        Ok(format!("{}\n", self.name))
    }
}

/// Has the weights of a bundle packed that can be run here. It takes the runtime, which is a program of its own: where there
/// is none, the bundle is left as it is, and a person is told what packs it then: `hint`.
fn pack(
    bundle: &Bundle,
    store: Option<&Path>,
    hint: &str,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Event),
) -> Result<(), NotPacked> {
    let manifest = bundle.manifest();
    let checked = check_targets_at(manifest, &Machine::host(), Place::Cpu);
    let has_work = best_target(&checked).is_some_and(|best| best.artifact().packing.is_some());
    if manifest.weights.is_empty() || !has_work {
        return Ok(());
    }
    let beside = env::current_exe().ok().map(|program| program.with_file_name(PACK));
    let program = beside.filter(|program| program.is_file()).unwrap_or_else(|| PACK.into());
    progress(Event::Weights { file: "packed weights".into() });
    let run = process::Command::new(&program)
        .args(["--device", "local-task"])
        .arg(bundle.path())
        // The store remembers by its manifest what was compiled here. That is why the program runs its code even where
        // MLXCEL_REQUIRE_SIGNATURE is set, which stays so: what lay in the bundle's place meanwhile would be refused.
        .envs(store.map(|store| ("MLXCEL_STORE", store)))
        .stdin(process::Stdio::null())
        .stdout(process::Stdio::null())
        .spawn();
    let hint = format!("{hint}, else every start does");
    let mut child = match run {
        Ok(child) => child,
        Err(error) => {
            let problem = format!("cannot run {}: {error}", program.display());
            progress(Event::Warning(format!("the weights are not packed: {problem}\nhint: {hint}")));
            return Ok(());
        }
    };
    let ended = match wait(&mut child, cancel) {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let interrupted = cancel.is_cancelled();
    let reason = if interrupted {
        "interrupted; the bundle is whole, its weights are not packed".into()
    } else {
        format!("error: the weights are not packed: {} ended with {ended}", program.display())
    };
    Err(NotPacked { reason, interrupted, hint })
}

/// Waits for a program, which is asked to end when this one is. It removes its files then.
fn wait(child: &mut Child, cancel: &Cancel) -> io::Result<ExitStatus> {
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if cancel.is_cancelled() && !asked {
            asked = true;
            // It may have ended by itself meanwhile.
            _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        thread::sleep(Duration::from_millis(20));
    }
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
