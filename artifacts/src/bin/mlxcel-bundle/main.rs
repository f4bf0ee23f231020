//! `mlxcel-bundle`: shows, verifies, signs, moves and keeps bundles.

mod check;
mod diff;
mod show;
mod size;
mod stored;
#[cfg(feature = "registry")]
mod transfer;

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand};
#[cfg(feature = "registry")]
use mlxcel_artifacts::Registry;
use mlxcel_artifacts::{
    Bundle, BundleWriter, Destination, Driver, Error, Machine, Name, PublicKey, SecretKey, Store,
    StoreWriter, report,
};

use crate::{check::Checked, diff::Differences};

/// Shows, verifies, signs, moves and keeps bundles of compiled models. A BUNDLE is a folder, or a name in the store.
#[derive(Parser)]
#[command(name = "mlxcel-bundle", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

/// How `diff` ends where it found something.
const DIFFERENT: u8 = 1;

#[derive(Subcommand)]
enum Command {
    /// Verifies a bundle and shows what is in it.
    Inspect {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        /// One JSON object: the manifest, and the bundle's path.
        #[arg(long)]
        json: bool,
        /// One of its files or documents as it is: config.json, sbom.cdx.json, provenance.intoto.json.
        #[arg(long, value_name = "NAME", conflicts_with = "json")]
        file: Option<String>,
    },
    /// Verifies the size and the digest of everything in a bundle, and whose it is.
    Verify {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        /// The public key, or its file, of who must have signed it.
        #[arg(long)]
        key: Option<String>,
    },
    /// Says of every target whether it runs here, and why not; ends with 1 if none does for certain.
    Check {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        /// Only on devices of this kind: local, cuda or vulkan.
        #[arg(long, value_name = "DRIVER")]
        device: Option<Driver>,
        /// Not here but on the machine that this file describes, which `mlxcel-bundle machine` wrote there.
        #[arg(long, value_name = "FILE")]
        machine: Option<PathBuf>,
        /// One JSON object: the judgements, and the target to run.
        #[arg(long)]
        json: bool,
    },
    /// Describes this machine, for `check` and for people who compile for it, as JSON.
    Machine,
    /// Writes a bundle to one file, a tar archive that is the same for the same bundle.
    Export {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        /// The file; `-` is standard output [default: BUNDLE.tar].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Makes a bundle of a file that `export` wrote.
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        to: To,
    },
    /// Copies a bundle to a folder, or into the store under a name.
    Copy {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        #[command(flatten)]
        to: To,
    },
    /// Uploads a bundle to an OCI registry, with docker's credentials; what is there already is not sent.
    #[cfg(feature = "registry")]
    Push {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        #[command(flatten)]
        place: InRegistry,
    },
    /// Downloads a bundle from an OCI registry into the store; goes on where a download before this one stopped.
    #[cfg(feature = "registry")]
    Pull {
        #[command(flatten)]
        place: InRegistry,
        /// Its name in the store [default: REFERENCE].
        #[arg(long, value_name = "NAME")]
        name: Option<Name>,
    },
    /// Shows the bundles of the store: their sizes, and what would be free without each.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Takes bundles out of the store, and then what only they had.
    Remove {
        /// Their names.
        #[arg(required = true)]
        names: Vec<Name>,
    },
    /// Removes from the store what no bundle needs; of what the compiler gave, what was not used for longest goes first.
    Gc {
        /// Until no more than this is there, such as 20GB; bundles that have a name always stay [default:
        /// $MLXCEL_STORE_LIMIT, or everything that was built stays].
        #[arg(long, value_name = "SIZE")]
        max_size: Option<ByteSize>,
        /// Only says what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Says what differs between two bundles; ends with 1 if anything does.
    Diff {
        /// The first bundle's folder.
        first: PathBuf,
        /// The second one's.
        second: PathBuf,
    },
    /// Shows where a bundle's bytes are.
    Size {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
    },
    /// Makes a pair of keys to sign bundles with, in minisign's form.
    Keygen {
        /// The secret key's file; the public one's has the extension `.pub`.
        #[arg(long, default_value = "mlxcel.key")]
        out: PathBuf,
        #[command(flatten)]
        password: Password,
    },
    /// Signs a bundle, in `manifest.toml.minisig`.
    Sign {
        /// The bundle: its folder, or its name in the store.
        bundle: PathBuf,
        /// The secret key's file.
        #[arg(long, default_value = "mlxcel.key")]
        key: PathBuf,
        /// What is signed with it, for those who verify it: one line.
        #[arg(long, value_name = "TEXT", default_value = "", value_parser = comment)]
        comment: String,
        #[command(flatten)]
        password: Password,
    },
}

/// A place in a registry.
#[cfg(feature = "registry")]
#[derive(Args)]
struct InRegistry {
    /// The place: registry.example/models/demo:1.
    reference: String,
    /// The registry has no TLS; one on this machine is taken for that anyway.
    #[arg(long)]
    plain_http: bool,
}

/// Where a bundle goes.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct To {
    /// The bundle's folder; a bundle that is there is replaced.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Its name in the store.
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
}

impl To {
    /// Has `work` write a bundle there; gives what programs are given for it.
    fn put(&self, work: impl FnOnce(Box<dyn Destination>) -> Result<Bundle, Error>) -> Result<String, Error> {
        match (&self.name, &self.out) {
            (Some(name), _) => put(name, |to| work(Box::new(to))),
            // Clap wants one of the two.
            (None, out) => {
                let to = BundleWriter::create(out.as_deref().unwrap_or(Path::new("")))?;
                Ok(format!("{}\n", work(Box::new(to))?.path().display()))
            }
        }
    }
}

/// The same for a name in the store. That it has meant another bundle is said.
fn put(name: &Name, work: impl FnOnce(StoreWriter) -> Result<Bundle, Error>) -> Result<String, Error> {
    if let Some(replaced) = Store::open(None)?.write(name, work)? {
        eprintln!("note: {replaced}");
    }
    Ok(format!("{name}\n"))
}

/// Where a secret key's password comes from; without these it is asked for.
#[derive(Args)]
struct Password {
    /// The first line of this file is the key's password
    #[arg(long, value_name = "FILE", conflicts_with = "no_password")]
    password_file: Option<PathBuf>,
    /// The key has none: whoever can read it can sign
    #[arg(long)]
    no_password: bool,
}

impl Password {
    /// `None` where there is to be none.
    fn read(&self, what: &str) -> io::Result<Option<String>> {
        match &self.password_file {
            _ if self.no_password => Ok(None),
            Some(path) => Ok(fs::read_to_string(path)?.lines().next().map(str::to_owned)),
            None => rpassword::prompt_password(format!("{what}: ")).map(Some),
        }
    }
}

/// A comment that fits the signature's line.
fn comment(text: &str) -> Result<String, String> {
    if text.len() > 1024 || text.contains(char::is_control) || text.trim() != text {
        return Err("expected at most 1024 bytes without control characters and spaces around them".into());
    }
    Ok(text.to_owned())
}

fn main() -> ExitCode {
    let command = Options::parse().command;
    let shown = run(&command).and_then(|(text, code)| {
        io::stdout().lock().write_all(text.as_bytes())?;
        Ok(code)
    });
    match shown {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", report(error.as_ref()));
            // As diff does, which says with 1 that there are differences.
            if matches!(command, Command::Diff { .. }) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// What goes to stdout, and how it ends.
fn run(command: &Command) -> Result<(String, ExitCode)> {
    let mut code = ExitCode::SUCCESS;
    let text = match command {
        Command::Inspect { bundle, file: Some(name), .. } => {
            show::file(&Bundle::open_without_weights(bundle)?, name)?
        }
        Command::Inspect { bundle, json: false, .. } => show::text(&Bundle::open(bundle)?),
        Command::Inspect { bundle, json: true, .. } => show::json(&Bundle::open(bundle)?)?,
        Command::Verify { bundle, key } => {
            let key = key.as_deref().map(PublicKey::find).transpose()?;
            let bundle = Bundle::open(bundle)?;
            let verified = key.map(|key| bundle.verify_signature(&key)).transpose()?;
            show::verdict(&bundle, verified.as_ref(), bundle.signed()?.as_ref())
        }
        Command::Keygen { out, password } => {
            let public = out.with_extension("pub");
            let password = password.read("password for the new key").context("cannot read a password")?;
            let key = SecretKey::generate(out, &public, password)?;
            show::keys(out, &public, &key)
        }
        Command::Sign { bundle, key, comment, password } => {
            let ask = || {
                let none = || io::Error::other("it is encrypted, and --no-password was given");
                password.read("password of the key")?.ok_or_else(none)
            };
            let key = SecretKey::open(key, ask)?;
            show::signed(bundle, &Bundle::open(bundle)?.sign(&key, comment)?)
        }
        Command::Check { bundle, device, machine, json } => {
            let machine = machine.as_deref().map_or_else(|| Ok(Machine::with_gpus()), check::read_machine)?;
            let bundle = Bundle::open_without_weights(bundle)?;
            let checked = Checked::new(bundle.manifest(), &machine, *device);
            if !checked.runs() {
                code = ExitCode::FAILURE;
            }
            if *json { checked.json()? } else { checked.to_string() }
        }
        Command::Machine => serde_json::to_string_pretty(&Machine::with_gpus())? + "\n",
        Command::Export { bundle: path, out } => {
            let bundle = Bundle::open_without_weights(path)?;
            if out.as_deref() == Some(Path::new("-")) {
                let mut to = BufWriter::with_capacity(1 << 20, io::stdout().lock());
                bundle.export_to(&mut to, Path::new("standard output"))?;
                return Ok((String::new(), code));
            }
            let out = out.clone().unwrap_or_else(|| beside(path));
            bundle.export(&out)?;
            format!("{}\n", out.display())
        }
        Command::Import { file, to } => {
            if file == Path::new("-") {
                to.put(|to| Bundle::import(&mut io::stdin().lock(), Path::new("standard input"), to))?
            } else if file.is_dir() {
                bail!(
                    "{} is a folder, expected a file that mlxcel-bundle export wrote\n\
                     hint: mlxcel-bundle copy takes the folder of a bundle",
                    file.display()
                );
            } else {
                let open = || format!("cannot read {}", file.display());
                let mut from = BufReader::with_capacity(1 << 20, File::open(file).with_context(open)?);
                to.put(|to| Bundle::import(&mut from, file, to))?
            }
        }
        Command::Copy { bundle, to } => {
            let bundle = Bundle::open_without_weights(bundle)?;
            to.put(|to| bundle.copy_to(to))?
        }
        #[cfg(feature = "registry")]
        Command::Push { bundle, place: InRegistry { reference, plain_http } } => {
            let bundle = Bundle::open_without_weights(bundle)?;
            let registry = Registry::new(reference, *plain_http)?;
            let digest = transfer::shown(|progress| registry.push(&bundle, progress))?;
            format!("{reference}@{digest}\n")
        }
        #[cfg(feature = "registry")]
        Command::Pull { place: InRegistry { reference, plain_http }, name } => {
            let registry = Registry::new(reference, *plain_http)?;
            let name = name.clone().map_or_else(|| reference.parse(), Ok)?;
            put(&name, |to| transfer::shown(|progress| registry.pull(to, progress)))?
        }
        Command::List { json: false } => {
            let store = Store::open(None)?;
            let all = store.list()?;
            if all.is_empty() {
                eprintln!("the store {} has no bundles", store.path().display());
            }
            stored::text(&all)
        }
        Command::List { json: true } => stored::json(&Store::open(None)?.list()?)?,
        Command::Remove { names } => {
            let store = Store::open(None)?;
            // All or none.
            names.iter().try_for_each(|name| store.find(name))?;
            names.iter().try_for_each(|name| store.remove(name))?;
            match store.collect(None, false) {
                Err(Error::StoreInUse { .. }) => {
                    "removed; what only they had stays until mlxcel-bundle gc: the store is in use\n".into()
                }
                collected => stored::collected(collected?, false),
            }
        }
        Command::Gc { max_size, dry_run } => {
            let limit = max_size.map(|size| size.as_u64());
            stored::collected(Store::open(None)?.collect(limit, *dry_run)?, *dry_run)
        }
        Command::Size { bundle } => size::text(&Bundle::open_without_weights(bundle)?),
        Command::Diff { first, second } => {
            let [first, second] = [first, second].map(|path| Bundle::open_without_weights(path));
            let found = Differences::of(&first?, &second?)?;
            if !found.is_empty() {
                code = ExitCode::from(DIFFERENT);
            }
            found.to_string()
        }
    };
    Ok((text, code))
}

/// The archive of a bundle when it is not named.
fn beside(bundle: &Path) -> PathBuf {
    let mut name = bundle.file_name().unwrap_or_else(|| OsStr::new("bundle")).to_os_string();
    name.push(".tar");
    name.into()
}

/// Whether the reader of our output has gone: `mlxcel-bundle inspect b | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
