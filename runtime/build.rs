//! Builds the IREE runtime from source with CMake, and the C shim over it with cc.
//!
//! The source comes with the crate `eerie-sys`, which is empty without its features. Without the feature `iree` nothing
//! is built.

#![allow(clippy::print_stdout, reason = "a build script prints its instructions for cargo")]

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
        ffi::{OsStr, OsString},
        fs,
        path::{Path, PathBuf},
        process::Command,
    };

    /// The oldest CMake that can build IREE.
    const CMAKE_VERSION: (u32, u32) = (3, 26);
    const SETUP: &str = "hint: run cargo xtask setup";

    // Variables that change the result. Others, such as CMAKE, do not, and xtask sets variables that a plain
    // `cargo build` does not have.
    const WATCHED_VARIABLES: [&str; 2] = ["MLXCEL_IREE_SOURCE", "MLXCEL_NO_CUDA"];
    const SHIM: [&str; 15] = [
        "call.c",
        "copies.c",
        "cuda_driver.c",
        "device.c",
        "error.c",
        "kernel_times.c",
        "memory.c",
        "module.c",
        "profile.c",
        "recording.c",
        "records.c",
        "replay.c",
        "tensor.c",
        "waits.c",
        "workers.c",
    ];

    /// The folder of the CUDA headers; `None` builds without the CUDA driver.
    type CudaHeaders = Option<PathBuf>;

    /// Returns whether clippy runs this script, as it does beside each build. It links nothing, and this takes minutes.
    fn is_clippy() -> bool {
        let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
        wrapper.is_some_and(|path| path.file_stem().is_some_and(|name| name == "clippy-driver"))
    }

    /// Builds IREE and the shim, and tells cargo to link them.
    pub(crate) fn build() -> Result<(), String> {
        if is_clippy() {
            return Ok(());
        }
        for name in WATCHED_VARIABLES {
            println!("cargo::rerun-if-env-changed={name}");
        }
        for path in ["native", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={path}");
        }
        let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
        let out = PathBuf::from(variable("OUT_DIR")?);
        let toolchain =
            env::var_os("MLXCEL_TOOLCHAIN").map_or_else(|| folder.join("../.toolchain"), PathBuf::from);

        let cmake = cmake(&toolchain)?;
        ninja()?;
        let cuda = cuda_headers(&toolchain)?;
        let source = iree_source(&folder, &out)?;
        // The crate compares it with the version that bundles are compiled with.
        println!("cargo::rustc-env=MLXCEL_IREE_SOURCE_VERSION={}", iree_version(&source)?);

        let archives = out.join("iree");
        let project = Project { cmake: &cmake, folder: &folder.join("native"), source: &source };
        let mut definitions =
            vec![definition("IREE_HAL_DRIVER_CUDA", if cuda.is_some() { "ON" } else { "OFF" })];
        if variable("HOST")? != variable("TARGET")? {
            let tools = out.join("tools");
            project.build("iree-flatcc-cli", &[], None, &tools)?;
            definitions.push(definition("IREE_HOST_BIN_DIR", tools.join("iree/tools")));
            definitions.extend(of_target()?);
        }
        // Optimizing all of IREE takes twice as long, and unoptimized crates run no faster with it.
        if variable("OPT_LEVEL")? == "0" {
            for language in ["C", "CXX"] {
                definitions.push(definition(&format!("CMAKE_{language}_FLAGS_RELEASE"), "-O1 -DNDEBUG"));
            }
        }
        project.build("mlxcel_iree", &definitions, cuda.as_deref(), &archives)?;
        compile_shim(&folder.join("native"), &source, &archives, cuda.as_deref());
        link(&archives);
        Ok(())
    }

    /// Reads a variable that cargo sets.
    fn variable(name: &str) -> Result<String, String> {
        env::var(name).map_err(|_| format!("{name} is not set, expected cargo to set it"))
    }

    /// Finds CMake: `$CMAKE`, or what setup installs, or what is on the PATH.
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

    /// Checks that Ninja is installed.
    fn ninja() -> Result<(), String> {
        output(Command::new("ninja").arg("--version"))
            .map(drop)
            .map_err(|_| format!("ninja not found\n{SETUP}"))
    }

    /// Finds the folder with `include/cuda.h` and `nvvm/libdevice/`. The driver's library is opened at run time.
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
            "CUDA headers not found: no include/cuda.h in {}\n{SETUP}, or set MLXCEL_NO_CUDA=1 to build without the CUDA driver",
            folder.display()
        ))
    }

    /// Finds IREE's source: `$MLXCEL_IREE_SOURCE`, or the one in `eerie-sys`.
    fn iree_source(folder: &Path, out: &Path) -> Result<PathBuf, String> {
        let source = match env::var_os("MLXCEL_IREE_SOURCE") {
            Some(path) => PathBuf::from(path),
            None => carrier(folder, out)?.join("iree"),
        };
        if !source.join("runtime/src/iree/runtime/CMakeLists.txt").is_file() {
            return Err(format!("no IREE source found in {}\n{SETUP}", source.display()));
        }
        fs::canonicalize(&source).map_err(|error| format!("{}: {error}", source.display()))
    }

    /// Finds the folder of `eerie-sys`, through the metadata of a package that depends on it alone.
    ///
    /// Metadata of the workspace would need all of its dependencies, which may not have been downloaded.
    fn carrier(folder: &Path, out: &Path) -> Result<PathBuf, String> {
        let carrier_version = carrier_version(folder)?;
        let probe = out.join("probe");
        let manifest = probe.join("Cargo.toml");
        let text = format!(
            "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
             [dependencies]\neerie-sys = {{ version = \"={carrier_version}\", default-features = false }}\n"
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
            format!(
                "the IREE source was not found in the crate eerie-sys {carrier_version}: {error}\n{SETUP}"
            )
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
            .ok_or_else(|| format!("cargo metadata does not name eerie-sys {carrier_version}\n{SETUP}"))
    }

    /// Reads the version of `eerie-sys` in Cargo.toml.
    fn carrier_version(folder: &Path) -> Result<String, String> {
        let path = folder.join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("eerie-sys = { version = \"="));
        let version = line.and_then(|rest| rest.split('"').next());
        version.map(str::to_owned).ok_or_else(|| {
            format!("{}: found no exact version of eerie-sys, expected version = \"=…\"", path.display())
        })
    }

    /// Reads the version of the source: `3.13.0` of `"package-version": "3.13.0.dev"`.
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
        // 3.13.0rc1 counts as 3.13.0.
        let patch = numbers[2].split("rc").next().unwrap_or_default();
        Ok(format!("{}.{}.{patch}", numbers[0], numbers[1]))
    }

    /// The CMake project in `native/`, over IREE's source.
    struct Project<'a> {
        cmake: &'a Path,
        folder: &'a Path,
        source: &'a Path,
    }

    impl Project<'_> {
        /// Configures the project in the folder `into` and builds one target of it.
        fn build(
            &self,
            target: &str,
            definitions: &[OsString],
            cuda: Option<&Path>,
            into: &Path,
        ) -> Result<(), String> {
            let Self { cmake, folder, source } = self;
            let mut configure = Command::new(cmake);
            configure
                .args(["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-S"])
                .arg(folder)
                .arg("-B")
                .arg(into);
            configure.arg(definition("IREE_SOURCE", source)).args(definitions);
            if let Some(folder) = cuda {
                configure.env("IREE_CUDA_DEPS_DIR", folder);
            }
            let mut build = Command::new(cmake);
            build.arg("--build").arg(into).args(["--target", target, "--parallel"]);
            build.arg(env::var("NUM_JOBS").unwrap_or_else(|_| "1".into()));
            for command in [&mut configure, &mut build] {
                let log =
                    output(command).map_err(|error| format!("the IREE runtime did not build: {error}"))?;
                println!("{log}");
            }
            Ok(())
        }
    }

    /// Returns CMake's definitions for a target that is not the host: the system, and the compilers that the crate cc finds.
    fn of_target() -> Result<Vec<OsString>, String> {
        let (os, arch) = (variable("CARGO_CFG_TARGET_OS")?, variable("CARGO_CFG_TARGET_ARCH")?);
        if os != "linux" {
            return Err(format!(
                "the IREE runtime can only be built for another CPU of Linux: found {os}, expected linux\n\
                 hint: build on the target, or with --no-default-features"
            ));
        }
        let mut definitions =
            vec![definition("CMAKE_SYSTEM_NAME", "Linux"), definition("CMAKE_SYSTEM_PROCESSOR", arch)];
        for (language, is_cpp) in [("C", false), ("CXX", true)] {
            let compiler = cc::Build::new()
                .cpp(is_cpp)
                .try_get_compiler()
                .map_err(|error| format!("found no compiler of {language} for the target: {error}"))?;
            definitions.push(definition(&format!("CMAKE_{language}_COMPILER"), compiler.path()));
            if compiler.is_like_clang() {
                definitions
                    .push(definition(&format!("CMAKE_{language}_COMPILER_TARGET"), variable("TARGET")?));
            }
        }
        Ok(definitions)
    }

    /// Returns CMake's argument that defines a variable.
    fn definition(name: &str, value: impl AsRef<OsStr>) -> OsString {
        let mut text = OsString::from(format!("-D{name}="));
        text.push(value);
        text
    }

    /// Compiles the C shim.
    fn compile_shim(project: &Path, source: &Path, archives: &Path, cuda: Option<&Path>) {
        let includes = [
            source.join("runtime/src"),
            source.join("third_party/flatcc/include"),
            archives.join("iree/runtime/src"),
        ];
        let mut shim = cc::Build::new();
        shim.files(SHIM.map(|file| project.join(file)))
            .std("gnu11")
            .opt_level(2)
            .pic(true)
            .warnings(true)
            .cargo_warnings(true);
        // Errors name their source file, which must not be a path of this machine.
        shim.flag_if_supported(format!("-fmacro-prefix-map={}=native", project.display()));
        for include in includes {
            shim.flag("-isystem").flag(include);
        }
        // The definitions of IREE's own targets, on which the layout of structures in its headers depends.
        shim.define("NDEBUG", None).define("IREE_THREADING_ENABLE", "1");
        shim.define("IREE_ALLOCATOR_SYSTEM_CTL", "iree_allocator_libc_ctl");
        if let Some(cuda) = cuda {
            shim.define("MLXCEL_CUDA", None).flag("-isystem").flag(cuda.join("include"));
        }
        shim.compile("mlxcel_shim");
    }

    /// Tells cargo which libraries to link.
    fn link(archives: &Path) {
        println!("cargo::rustc-link-search=native={}", archives.display());
        let flatcc = archives.join("iree/build_tools/third_party/flatcc");
        println!("cargo::rustc-link-search=native={}", flatcc.display());
        // In the order of their dependencies.
        println!("cargo::rustc-link-lib=static=mlxcel_iree");
        println!("cargo::rustc-link-lib=static=flatcc_parsing");
        for library in ["dl", "m", "pthread"] {
            println!("cargo::rustc-link-lib={library}");
        }
    }

    /// Writes a file if its content differs.
    fn write(path: &Path, text: &str) -> Result<(), String> {
        if fs::read_to_string(path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Runs a command and returns its stdout; if the command fails, the last lines of its output.
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
