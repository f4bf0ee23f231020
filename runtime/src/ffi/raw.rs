//! Declarations of `native/shim.h`.

use std::ffi::{c_int, c_void};

use safetensors::Dtype;

/// `shim_device_t`.
#[repr(C)]
pub(super) struct Device(c_void);
/// `shim_module_t`.
#[repr(C)]
pub(super) struct Module(c_void);
/// `shim_call_t`.
#[repr(C)]
pub(super) struct Call(c_void);
/// `shim_tensor_t`.
#[repr(C)]
pub(super) struct Tensor(c_void);

// `shim_event_kind_t`. A kind that is not here is that of lost records.
pub(super) const EVENT_DISPATCH: u32 = 1;
pub(super) const EVENT_WORKGROUPS: u32 = 2;
pub(super) const EVENT_EXECUTE: u32 = 3;
pub(super) const EVENT_COPY: u32 = 4;
pub(super) const EVENT_FILL: u32 = 5;
pub(super) const EVENT_UPDATE: u32 = 6;
pub(super) const EVENT_READ_FILE: u32 = 7;
pub(super) const EVENT_ALLOCA: u32 = 8;
pub(super) const EVENT_DEALLOCA: u32 = 9;
pub(super) const EVENT_BARRIER: u32 = 10;
pub(super) const EVENT_CALL: u32 = 11;
pub(super) const EVENT_INPUTS: u32 = 12;
pub(super) const EVENT_WAIT: u32 = 13;
pub(super) const EVENT_READ: u32 = 14;
pub(super) const EVENT_ALLOCATE: u32 = 15;
pub(super) const EVENT_BUFFER_BYTES: u32 = 16;
pub(super) const EVENT_POOL_BYTES: u32 = 17;
pub(super) const EVENT_WRITE: u32 = 18;

/// `shim_event_t`.
#[repr(C)]
pub(super) struct Event {
    pub(super) kind: u32,
    pub(super) lane: u32,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) busy_ns: i64,
    pub(super) workgroups: [u32; 3],
    pub(super) name: String,
}

/// `shim_found_t`.
#[repr(C)]
pub(super) struct FoundDevice {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) compute_capability: [c_int; 2],
    pub(super) cuda: c_int,
    pub(super) memory_bytes: u64,
}

/// A function that takes the events of a recording.
pub(super) type Found = unsafe extern "C" fn(*mut c_void, *const Event);

/// `shim_string_t`.
#[repr(C)]
pub(super) struct String {
    data: *const u8,
    length: usize,
}

/// `shim_error_t`.
#[repr(C)]
pub(super) struct Error {
    pub(super) status: String,
    pub(super) message: String,
}

/// `shim_parameter_t`.
#[repr(C)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) data: *const u8,
    pub(super) length: usize,
}

/// `shim_type_t`.
#[repr(C)]
pub(super) struct Type {
    pub(super) dtype: u32,
    pub(super) rank: usize,
    pub(super) dims: *const usize,
}

/// `shim_argument_t`.
#[repr(C)]
pub(super) struct Argument {
    pub(super) kind: u32,
    pub(super) ty: Type,
}

/// `MLXCEL_ARGUMENT_COPIED`.
pub(super) const COPIED: u32 = 0;
/// `MLXCEL_ARGUMENT_NUMBER`.
pub(super) const NUMBER: u32 = 1;
/// `MLXCEL_ARGUMENT_TENSOR`.
pub(super) const TENSOR: u32 = 2;

/// `MLXCEL_MEMORY_DEVICE`.
pub(super) const MEMORY_DEVICE: u32 = 0;

/// `MLXCEL_MEMORY_HOST`.
pub(super) const MEMORY_HOST: u32 = 1;

/// `shim_input_t`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Input {
    pub(super) data: *const c_void,
    pub(super) tensor: *mut Tensor,
}

impl String {
    pub(super) fn new(text: &str) -> Self {
        Self { data: text.as_ptr(), length: text.len() }
    }

    /// # Safety
    /// The bytes must be alive.
    pub(super) unsafe fn to_string(&self) -> std::string::String {
        if self.length == 0 {
            return std::string::String::new();
        }
        // SAFETY: the caller's promise; the pointer is not null, because there are bytes.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.length) };
        std::string::String::from_utf8_lossy(bytes).into_owned()
    }
}

/// Returns the `shim_dtype_t` of a type; 0 for a type that the shim refuses. Programs take integers without a sign.
pub(super) fn dtype(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::BOOL => 1,
        Dtype::I8 | Dtype::U8 => 2,
        Dtype::I16 | Dtype::U16 => 3,
        Dtype::I32 | Dtype::U32 => 4,
        Dtype::I64 | Dtype::U64 => 5,
        Dtype::F16 => 6,
        Dtype::BF16 => 7,
        Dtype::F32 => 8,
        Dtype::F64 => 9,
        Dtype::C64 => 10,
        Dtype::F8_E5M2 => 11,
        Dtype::F8_E4M3 => 12,
        Dtype::F8_E5M2FNUZ => 13,
        Dtype::F8_E4M3FNUZ => 14,
        Dtype::F8_E8M0 => 15,
        _ => 0,
    }
}

unsafe extern "C" {
    pub(super) fn shim_error_free(error: *mut Error);
    pub(super) fn shim_request_amx() -> c_int;
    pub(super) fn shim_driver_list(
        driver: String,
        found: unsafe extern "C" fn(*mut c_void, *const FoundDevice),
        user: *mut c_void,
    ) -> *mut Error;
    pub(super) fn shim_device_create(
        driver: String,
        index: i64,
        threads: usize,
        reports: c_int,
        device: *mut *mut Device,
    ) -> *mut Error;
    pub(super) fn shim_device_threads(device: *const Device) -> usize;
    pub(super) fn shim_device_check(device: *const Device) -> *mut Error;
    pub(super) fn shim_device_free_memory(device: *const Device) -> u64;
    pub(super) fn shim_device_allocated(device: *const Device) -> u64;
    pub(super) fn shim_device_time_copies(
        device: *mut Device,
        length: usize,
        least_ns: i64,
        count: *mut u64,
        ns: *mut i64,
    ) -> *mut Error;
    pub(super) fn shim_device_free(device: *mut Device);
    pub(super) fn shim_module_load(
        device: *mut Device,
        vmfb: *const u8,
        vmfb_length: usize,
        scope: String,
        parameters: *const Parameter,
        parameter_count: usize,
        module: *mut *mut Module,
    ) -> *mut Error;
    pub(super) fn shim_module_free(module: *mut Module);
    pub(super) fn shim_call_create(
        module: *mut Module,
        name: String,
        arguments: *const Argument,
        argument_count: usize,
        in_place: c_int,
        call: *mut *mut Call,
    ) -> *mut Error;
    pub(super) fn shim_call_input_size(call: *const Call, input: usize) -> usize;
    pub(super) fn shim_call_begin(call: *mut Call, inputs: *const Input) -> *mut Error;
    pub(super) fn shim_call_end(call: *mut Call) -> *mut Error;
    pub(super) fn shim_call_output_count(call: *const Call) -> usize;
    pub(super) fn shim_call_take_output(call: *mut Call, tensor: *mut *mut Tensor) -> *mut Error;
    pub(super) fn shim_call_is_replayed(call: *const Call) -> c_int;
    pub(super) fn shim_call_free(call: *mut Call);
    pub(super) fn shim_tensor_create(
        device: *mut Device,
        ty: *const Type,
        memory: u32,
        zeros: i32,
        tensor: *mut *mut Tensor,
    ) -> *mut Error;
    pub(super) fn shim_tensor_first(tensor: *mut Tensor, first: *mut *mut Tensor) -> *mut Error;
    pub(super) fn shim_tensor_dtype(tensor: *const Tensor) -> u32;
    pub(super) fn shim_tensor_rank(tensor: *const Tensor) -> usize;
    pub(super) fn shim_tensor_dim(tensor: *const Tensor, axis: usize) -> usize;
    pub(super) fn shim_tensor_size(tensor: *const Tensor) -> usize;
    pub(super) fn shim_tensor_read(
        device: *mut Device,
        tensor: *mut Tensor,
        offset: usize,
        target: *mut c_void,
        length: usize,
    ) -> *mut Error;
    pub(super) fn shim_tensor_write(
        device: *mut Device,
        tensor: *mut Tensor,
        source: *const c_void,
        length: usize,
    ) -> *mut Error;
    pub(super) fn shim_tensor_retain(tensor: *mut Tensor);
    pub(super) fn shim_tensor_free(tensor: *mut Tensor);
    pub(super) fn shim_now() -> i64;
    pub(super) fn shim_recording_begin(device: *mut Device, is_profiling: *mut c_int) -> *mut Error;
    pub(super) fn shim_recording_collect(device: *mut Device, found: Found, user: *mut c_void) -> *mut Error;
    pub(super) fn shim_recording_end(device: *mut Device, found: Found, user: *mut c_void) -> *mut Error;
}
