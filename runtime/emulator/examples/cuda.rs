//! `libcuda.so` of the emulator: a library with the function of the driver that gives all others.

pub use mlxcel_cuda_emulator::cuGetProcAddress;
