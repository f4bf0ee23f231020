//! Builds the IREE runtime from source with CMake, and the C shim over it with cc.
//!
//! The source comes with the crate `eerie-sys`, which is empty without its features and only carries it here. Nothing
//! is done without the feature `iree`.

// How a build script talks to cargo.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "iree")]
    if let Err(message) = native::build() {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

#[cfg(feature = "iree")]
mod native {
    use std::{
        env,
        ffi::OsStr,
        fs,
        path::{Path, PathBuf},
        process::Command,
    };

    /// The version of `eerie-sys` in Cargo.toml.
    const CARRIER: &str = "0.5.0";
    /// The oldest CMake that IREE takes.
    const CMAKE_VERSION: (u32, u32) = (3, 26);
    const SETUP: &str = "hint: run cargo xtask setup";

    // Only what changes the outcome: another CMake or another copy of the same headers does not, and xtask sets
    // variables that a plain `cargo build` does not have.
    const WATCHED_VARIABLES: [&str; 2] = ["MLXCEL_IREE_SOURCE", "MLXCEL_NO_CUDA"];
    const SHIM: [&str; 6] = ["call.c", "device.c", "error.c", "module.c", "profile.c", "tensor.c"];

    /// `None` is a build without the CUDA driver.
    type CudaHeaders = Option<PathBuf>;

    pub(crate) fn build() -> Result<(), String> {
        for name in WATCHED_VARIABLES {
            println!("cargo::rerun-if-env-changed={name}");
        }
        println!("cargo::rerun-if-changed=native");
        let (host, target) = (variable("HOST")?, variable("TARGET")?);
        if host != target {
            return Err(format!(
                "the iree runtime can only be built for the machine it is built on: found target {target}, expected {host}\nhint: build on the target, or with --no-default-features"
            ));
        }
        let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
        let out = PathBuf::from(variable("OUT_DIR")?);
        let toolchain =
            env::var_os("MLXCEL_TOOLCHAIN").map_or_else(|| folder.join("../.toolchain"), PathBuf::from);

        let cmake = cmake(&toolchain)?;
        ninja()?;
        let cuda = cuda_headers(&toolchain)?;
        let source = iree_source(&folder, &out)?;
        println!("cargo::rustc-env=MLXCEL_IREE_VERSION={}", iree_version(&source)?);

        let archives = out.join("iree");
        run_cmake(&cmake, &folder.join("native"), &source, cuda.as_deref(), &archives)?;
        compile_shim(&folder.join("native"), &source, &archives);
        link(&archives);
        Ok(())
    }

    fn variable(name: &str) -> Result<String, String> {
        env::var(name).map_err(|_| format!("{name} is not set, expected cargo to set it"))
    }

    /// `$CMAKE`, the one that setup installs, or the one on the PATH.
    fn cmake(toolchain: &Path) -> Result<PathBuf, String> {
        let installed = toolchain.join("cmake/cmake/data/bin/cmake");
        let cmake = match env::var_os("CMAKE") {
            Some(path) => PathBuf::from(path),
            None if installed.is_file() => installed,
            None => PathBuf::from("cmake"),
        };
        let (major, minor) = CMAKE_VERSION;
        let found = output(Command::new(&cmake).arg("--version"))
            .map_err(|_| format!("cmake not found, expected {major}.{minor} or newer\n{SETUP}"))?;
        let version = found.split_whitespace().nth(2).unwrap_or_default();
        let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
        match (parts.next(), parts.next()) {
            (Some(a), Some(b)) if (a, b) >= CMAKE_VERSION => Ok(cmake),
            _ => Err(format!(
                "found cmake {version} at {}, expected {major}.{minor} or newer\n{SETUP}",
                cmake.display()
            )),
        }
    }

    fn ninja() -> Result<(), String> {
        output(Command::new("ninja").arg("--version"))
            .map(drop)
            .map_err(|_| format!("ninja not found\n{SETUP}"))
    }

    /// A folder with `include/cuda.h` and `nvvm/libdevice/`. The driver's library itself is opened at run time.
    fn cuda_headers(toolchain: &Path) -> Result<CudaHeaders, String> {
        if env::var_os("MLXCEL_NO_CUDA").is_some_and(|value| !value.is_empty() && value != "0") {
            return Ok(None);
        }
        let folder = env::var_os("IREE_CUDA_DEPS_DIR").map_or_else(|| toolchain.join("cuda"), PathBuf::from);
        if folder.join("include/cuda.h").is_file() {
            return fs::canonicalize(&folder)
                .map(Some)
                .map_err(|error| format!("{}: {error}", folder.display()));
        }
        Err(format!(
            "cuda headers not found: no include/cuda.h in {}\n{SETUP}, or set MLXCEL_NO_CUDA=1 to build without the cuda driver",
            folder.display()
        ))
    }

    /// `$MLXCEL_IREE_SOURCE`, or the one in `eerie-sys`.
    fn iree_source(folder: &Path, out: &Path) -> Result<PathBuf, String> {
        let source = match env::var_os("MLXCEL_IREE_SOURCE") {
            Some(path) => PathBuf::from(path),
            None => carrier(folder, out)?.join("iree"),
        };
        if !source.join("runtime/src/iree/runtime/CMakeLists.txt").is_file() {
            return Err(format!("no iree source found in {}\n{SETUP}", source.display()));
        }
        fs::canonicalize(&source).map_err(|error| format!("{}: {error}", source.display()))
    }

    /// The folder of `eerie-sys`. Asked of cargo for a package that depends on nothing else, because the whole
    /// workspace's dependencies need not have been downloaded to build this crate.
    fn carrier(folder: &Path, out: &Path) -> Result<PathBuf, String> {
        let probe = out.join("probe");
        let manifest = probe.join("Cargo.toml");
        let text = format!(
            "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
             [dependencies]\neerie-sys = {{ version = \"={CARRIER}\", default-features = false }}\n"
        );
        write(&manifest, &text)?;
        write(&probe.join("lib.rs"), "")?;
        let json = output(
            Command::new(variable("CARGO")?)
                .args(["metadata", "--offline", "--format-version", "1", "--manifest-path"])
                .arg(&manifest)
                .current_dir(folder),
        )
        .map_err(|error| {
            format!("the iree source was not found in the crate eerie-sys {CARRIER}: {error}\n{SETUP}")
        })?;
        let metadata: serde_json::Value =
            serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}"))?;
        metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["name"] == "eerie-sys")
            .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
            .map(Path::to_path_buf)
            .ok_or_else(|| format!("cargo metadata does not name eerie-sys {CARRIER}\n{SETUP}"))
    }

    /// `3.13.0` of `"package-version": "3.13.0.dev"`. The crate compares it with the version that bundles are made by.
    fn iree_version(source: &Path) -> Result<String, String> {
        let path = source.join("runtime/version.json");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let version = json["package-version"].as_str().unwrap_or_default();
        let numbers: Vec<&str> = version.split('.').take(3).collect();
        if numbers.len() != 3 || numbers[2].is_empty() {
            return Err(format!("{}: found version '{version}', expected three numbers", path.display()));
        }
        // A release candidate is of the version it leads to.
        let patch = numbers[2].split("rc").next().unwrap_or_default();
        Ok(format!("{}.{}.{patch}", numbers[0], numbers[1]))
    }

    fn run_cmake(
        cmake: &Path,
        project: &Path,
        source: &Path,
        cuda: Option<&Path>,
        archives: &Path,
    ) -> Result<(), String> {
        let mut configure = Command::new(cmake);
        configure
            .args(["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"])
            .arg("-S")
            .arg(project)
            .arg("-B")
            .arg(archives);
        configure.arg(definition("IREE_SOURCE", source));
        configure.arg(definition("IREE_HAL_DRIVER_CUDA", if cuda.is_some() { "ON" } else { "OFF" }));
        if let Some(folder) = cuda {
            configure.env("IREE_CUDA_DEPS_DIR", folder);
        }
        let mut build = Command::new(cmake);
        build.arg("--build").arg(archives).args(["--target", "mlxcel_iree", "--parallel"]);
        build.arg(env::var("NUM_JOBS").unwrap_or_else(|_| "1".into()));
        for command in [&mut configure, &mut build] {
            let log = output(command).map_err(|error| format!("the iree runtime did not build: {error}"))?;
            println!("{log}");
        }
        Ok(())
    }

    fn definition(name: &str, value: impl AsRef<OsStr>) -> std::ffi::OsString {
        let mut text = std::ffi::OsString::from(format!("-D{name}="));
        text.push(value);
        text
    }

    fn compile_shim(project: &Path, source: &Path, archives: &Path) {
        let includes = [
            source.join("runtime/src"),
            source.join("third_party/flatcc/include"),
            archives.join("iree/runtime/src"),
        ];
        let mut shim = cc::Build::new();
        shim.files(SHIM.map(|file| project.join(file)))
            .std("gnu11")
            .opt_level(2)
            .warnings(true)
            .cargo_warnings(true);
        // Its errors name where they come from; not by a path of this machine.
        shim.flag_if_supported(format!("-fmacro-prefix-map={}=native", project.display()));
        for include in includes {
            shim.flag("-isystem").flag(include);
        }
        // What IREE's own targets are compiled with: its headers lay out structures by these.
        shim.define("NDEBUG", None).define("IREE_THREADING_ENABLE", "1");
        shim.define("IREE_ALLOCATOR_SYSTEM_CTL", "iree_allocator_libc_ctl");
        shim.compile("mlxcel_shim");
    }

    fn link(archives: &Path) {
        println!("cargo::rustc-link-search=native={}", archives.display());
        let flatcc = archives.join("iree/build_tools/third_party/flatcc");
        println!("cargo::rustc-link-search=native={}", flatcc.display());
        // In the order in which they need each other.
        println!("cargo::rustc-link-lib=static=mlxcel_iree");
        println!("cargo::rustc-link-lib=static=flatcc_parsing");
        for library in ["dl", "m", "pthread"] {
            println!("cargo::rustc-link-lib={library}");
        }
    }

    /// Writes a file if that changes it.
    fn write(path: &Path, text: &str) -> Result<(), String> {
        if fs::read_to_string(path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// What a command writes to stdout; when it fails, the end of what it wrote.
    fn output(command: &mut Command) -> Result<String, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let result = command.output().map_err(|error| format!("{program}: {error}"))?;
        let stdout = String::from_utf8_lossy(&result.stdout).into_owned();
        if result.status.success() {
            return Ok(stdout);
        }
        let text = stdout + &String::from_utf8_lossy(&result.stderr);
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(30)..].join("\n");
        Err(format!("{program} ended with {}\n{end}", result.status))
    }
}
