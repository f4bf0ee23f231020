//! `libcuda.so` of the emulator: a library with the function of the driver that gives all others, and with those of NVML, as which
//! `libnvidia-ml.so.1` can link to it.

pub use mlxcel_cuda_emulator::{cuGetProcAddress, nvml::*};
