//! `mlxcel_program_*` and `mlxcel_function_*`.

use std::ffi::{CString, c_char, c_void};

use mlxcel_artifacts::{entry::Entry, tensor_bytes};
use mlxcel_runtime::Program as OpenedProgram;
use safetensors::Dtype as Known;

use super::{
    bundle::{self, Bundle},
    engine::program_device,
    pointers::{Error, array, buffer, guard, need_text, number, options, put, text, to_handle},
    types::{DeviceOptions, Dtype, TensorType},
};
use crate::{
    errors::Problem,
    handles::{Object as _, object},
    threads::{FunctionPlace, ProgramPlace},
};

/// A program on a device. It belongs to the thread that loaded it: other threads get MLXCEL_CODE_THREAD.
#[derive(Debug)]
pub struct Program {
    _private: [u8; 0],
}

/// A function of a program, with its arguments and states on the device. It belongs to the program's thread.
#[derive(Debug)]
pub struct Function {
    _private: [u8; 0],
}

/// A function, with its texts for C.
#[derive(Debug)]
pub(crate) struct HeldFunction {
    place: FunctionPlace,
    arguments: Vec<HeldType>,
    results: Vec<HeldType>,
}

/// The type of an argument or result.
#[derive(Debug)]
struct HeldType {
    name: CString,
    dtype: Known,
    shape: Vec<usize>,
    is_state: bool,
}

object!(HeldFunction, 8, "a function");

/// Returns what C calls the type.
fn dtype_of(dtype: Known) -> u32 {
    let known = match dtype {
        Known::BOOL => Dtype::Bool,
        Known::I8 => Dtype::I8,
        Known::I16 => Dtype::I16,
        Known::I32 => Dtype::I32,
        Known::I64 => Dtype::I64,
        Known::U8 => Dtype::U8,
        Known::U16 => Dtype::U16,
        Known::U32 => Dtype::U32,
        Known::U64 => Dtype::U64,
        Known::F16 => Dtype::F16,
        Known::BF16 => Dtype::Bf16,
        Known::F32 => Dtype::F32,
        Known::F64 => Dtype::F64,
        Known::C64 => Dtype::C64,
        Known::F8_E5M2 => Dtype::F8E5m2,
        Known::F8_E4M3 => Dtype::F8E4m3,
        _ => return 0,
    };
    known as u32
}

/// Returns the type of a number that C gives.
fn dtype_from(number: u32) -> Result<Known, Problem> {
    const ALL: [Known; 16] = [
        Known::BOOL,
        Known::I8,
        Known::I16,
        Known::I32,
        Known::I64,
        Known::U8,
        Known::U16,
        Known::U32,
        Known::U64,
        Known::F16,
        Known::BF16,
        Known::F32,
        Known::F64,
        Known::C64,
        Known::F8_E5M2,
        Known::F8_E4M3,
    ];
    let known = ALL.into_iter().find(|&known| dtype_of(known) == number);
    known.ok_or_else(|| Problem::Argument(format!("dtype: found {number}, expected an mlxcel_dtype")))
}

/// Loads a program on a device. It belongs to this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_program_load(
    bundle: *const Bundle,
    device_options: *const DeviceOptions,
    program: *mut *mut Program,
) -> *mut Error {
    guard(|| {
        let opened = OpenedProgram::new(bundle::opened(bundle)?)?;
        let loaded = opened.load(program_device(&options("options", device_options)?)?)?;
        let handle = ProgramPlace::table().add(ProgramPlace::keep(loaded));
        put("program", program, to_handle(handle)).inspect_err(|_| close_program(handle))
    })
}

fn close_program(handle: usize) {
    if let Some(place) = ProgramPlace::table().remove(handle) {
        _ = place.close();
    }
}

/// Closes a program and its functions. The program's thread; on others it stays open.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_program_close(program: *mut Program) -> *mut Error {
    guard(|| {
        let handle = number(program);
        if let Ok(place) = ProgramPlace::table().get(handle) {
            place.close()?;
            ProgramPlace::table().remove(handle);
        }
        Ok(())
    })
}

/// Prepares calls of a function; NULL is `main`, or the only one. The program's thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_program_function(
    program: *const Program,
    name: *const c_char,
    function: *mut *mut Function,
) -> *mut Error {
    guard(|| {
        let place = ProgramPlace::table().get(number(program))?.function(text("name", name)?)?;
        let (arguments, results) = place.with(|function| Ok(types(function.entry())))?;
        let handle = HeldFunction::table().add(HeldFunction { place, arguments, results });
        put("function", function, to_handle(handle))
            .inspect_err(|_| drop(HeldFunction::table().remove(handle)))
    })
}

/// Returns the types of arguments and results.
fn types(entry: &Entry) -> (Vec<HeldType>, Vec<HeldType>) {
    let held = |(name, dtype, shape, is_state): (String, Known, &[usize], bool)| HeldType {
        name: CString::new(name).unwrap_or_default(),
        dtype,
        shape: shape.to_vec(),
        is_state,
    };
    let states: Vec<usize> = entry.inputs().filter_map(|(_, spec)| spec.next_state()).collect();
    let inputs =
        entry.inputs().map(|(name, spec)| held((name, spec.dtype, &spec.shape, spec.next_state().is_some())));
    let outputs = entry.outputs().enumerate();
    let outputs =
        outputs.map(|(index, (name, spec))| held((name, spec.dtype, &spec.shape, states.contains(&index))));
    (inputs.collect(), outputs.collect())
}

/// Closes a function. The program's thread; on others it stays open.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_function_close(function: *mut Function) -> *mut Error {
    guard(|| {
        let handle = number(function);
        if let Ok(held) = HeldFunction::table().get(handle) {
            // A function of a closed program is closed already.
            match held.place.close() {
                Err(problem @ Problem::Thread(_)) => return Err(problem),
                _ => drop(HeldFunction::table().remove(handle)),
            }
        }
        Ok(())
    })
}

/// Sets the numbers of arguments and results. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_function_counts(
    function: *const Function,
    arguments: *mut usize,
    results: *mut usize,
) -> *mut Error {
    guard(|| {
        let held = HeldFunction::table().get(number(function))?;
        put("arguments", arguments, held.arguments.len())?;
        put("results", results, held.results.len())
    })
}

/// Describes the argument `index`, from 0. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_function_argument(
    function: *const Function,
    index: usize,
    tensor_type: *mut TensorType,
) -> *mut Error {
    guard(|| describe(&HeldFunction::table().get(number(function))?.arguments, index, tensor_type))
}

/// Describes the result `index`, from 0. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_function_result(
    function: *const Function,
    index: usize,
    tensor_type: *mut TensorType,
) -> *mut Error {
    guard(|| describe(&HeldFunction::table().get(number(function))?.results, index, tensor_type))
}

fn describe(types: &[HeldType], index: usize, to: *mut TensorType) -> Result<(), Problem> {
    let HeldType { name, dtype, shape, is_state } = types.get(index).ok_or_else(|| {
        Problem::Argument(format!("index: found {index}, expected less than {}", types.len()))
    })?;
    let described = TensorType {
        name: name.as_ptr(),
        dtype: dtype_of(*dtype),
        rank: shape.len(),
        dims: shape.as_ptr(),
        bytes: tensor_bytes(*dtype, shape).unwrap_or(0),
        is_state: *is_state,
    };
    put("tensor_type", to, described)
}

/// Copies a tensor of the caller to the device, as an argument of all calls from now on or as the present value of a state. The
/// buffer is not used after this call. The program's thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_function_set(
    function: *const Function,
    name: *const c_char,
    dtype: u32,
    dims: *const usize,
    rank: usize,
    data: *const c_void,
    bytes: usize,
) -> *mut Error {
    guard(|| {
        let held = HeldFunction::table().get(number(function))?;
        let (name, dtype) = (need_text("name", name)?, dtype_from(dtype)?);
        let (shape, data) = (array("dims", dims, rank)?, array("data", data.cast::<u8>(), bytes)?);
        held.place.with(|function| Ok(function.set_bytes(name, dtype, shape, data)?))
    })
}

/// Calls the function and waits for it. States become what it returns. The program's thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_function_call(function: *const Function) -> *mut Error {
    guard(|| HeldFunction::table().get(number(function))?.place.with(|function| Ok(function.call()?)))
}

/// Copies a result of the last call, or the present value of a state, into the caller's buffer, whose bytes are those of the
/// tensor. The program's thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_function_read(
    function: *const Function,
    name: *const c_char,
    data: *mut c_void,
    bytes: usize,
) -> *mut Error {
    guard(|| {
        let held = HeldFunction::table().get(number(function))?;
        let name = need_text("name", name)?;
        let to = buffer("data", data.cast::<u8>(), bytes)?;
        held.place.with(|function| Ok(function.read_into(name, to)?))
    })
}
