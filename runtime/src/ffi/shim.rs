//! Safe types over the C shim in `native/`: devices, modules, calls and tensors of IREE.
//!
//! Each type owns the object it stands for and keeps alive what that object depends on: a [`Tensor`] its module, a
//! [`Module`] its program, its parameters and its device. None is `Send`: an IREE context must not be used from two
//! threads, and two of these values may share one.

use std::{
    cell::RefCell,
    ffi::c_void,
    fmt,
    ptr::{self, NonNull},
    rc::Rc,
};

use memmap2::Mmap;
use safetensors::Dtype;

use super::{
    error::{Error, check},
    raw,
    recording::Recording,
};
use crate::trace::Trace;

/// Requests the use of AMX from the system; returns whether it is granted.
pub(crate) fn request_amx() -> bool {
    // SAFETY: the call takes nothing, and only permits instructions that were not permitted before.
    unsafe { raw::mlxcel_request_amx() != 0 }
}

/// Lists the names of a driver's devices.
pub(crate) fn devices(driver: &str) -> Result<Vec<String>, Error> {
    unsafe extern "C" fn found(user: *mut c_void, name: raw::String) {
        // SAFETY: `user` is the vector passed below, which nothing else uses during the call.
        let names = unsafe { &mut *user.cast::<Vec<String>>() };
        // SAFETY: the shim passes a name that lives until this function returns.
        names.push(unsafe { name.to_string() });
    }
    let mut names = Vec::<String>::new();
    // SAFETY: the string outlives the call; `found` is given the vector it expects.
    check(unsafe {
        raw::mlxcel_driver_list(raw::String::new(driver), found, ptr::from_mut(&mut names).cast())
    })?;
    Ok(names)
}

/// A device that modules run on.
#[derive(Debug, Clone)]
pub(crate) struct Device(Rc<DeviceHandle>);

/// The handle, and where what the device does is recorded.
#[derive(Debug)]
struct DeviceHandle(NonNull<raw::Device>, RefCell<Option<Recording>>);

impl Device {
    /// Opens the device of `driver` with this index, or else the driver's default.
    ///
    /// `threads` is the number of local-task's workers, by default one for each physical core. What the device does is
    /// recorded on `trace` from then on, if it is on.
    pub(crate) fn create(
        driver: &str,
        index: Option<u32>,
        threads: Option<usize>,
        trace: &Trace,
    ) -> Result<Self, Error> {
        let mut device = ptr::null_mut();
        // SAFETY: the string outlives the call and `device` is a place for the result.
        check(unsafe {
            raw::mlxcel_device_create(
                raw::String::new(driver),
                index.map_or(-1, i64::from),
                threads.unwrap_or(0),
                i32::from(trace.is_on()),
                &raw mut device,
            )
        })?;
        let device = Self(Rc::new(DeviceHandle(created(device), RefCell::new(None))));
        if trace.is_on() && !device.record(trace)? {
            trace.note(format!("{driver} does not tell of its dispatches: these are the times of the host"));
        }
        Ok(device)
    }

    /// Returns the workers of a local-task device; 1 for others.
    pub(crate) fn threads(&self) -> usize {
        // SAFETY: the handle is alive as long as `self`.
        unsafe { raw::mlxcel_device_threads(self.0.0.as_ptr()) }
    }

    /// Starts recording what the device does. Returns whether it tells of its dispatches.
    pub(crate) fn record(&self, trace: &Trace) -> Result<bool, Error> {
        // SAFETY: the device is alive.
        let (recording, is_profiling) = unsafe { Recording::begin(self.0.0.as_ptr(), trace) }?;
        *self.0.1.borrow_mut() = Some(recording);
        Ok(is_profiling)
    }

    /// Returns the timeline of the device; it is off if the device is not recorded.
    pub(crate) fn trace(&self) -> Trace {
        self.0.1.borrow().as_ref().map_or_else(Trace::off, |recording| recording.trace().clone())
    }

    /// Takes what was recorded since the last time, if the device is recorded. Calls among it were of `call`.
    ///
    /// The buffers of IREE are limited, so that this follows each call.
    fn collect(&self, call: &str) {
        if let Some(recording) = &*self.0.1.borrow() {
            // SAFETY: the device is alive, and its own recording is with it.
            unsafe { recording.collect(self.0.0.as_ptr(), call) };
        }
    }

    /// Stops recording, if the device is recorded.
    pub(crate) fn end_recording(&self) {
        if let Some(recording) = self.0.1.take() {
            // SAFETY: as above.
            unsafe { recording.end(self.0.0.as_ptr()) };
        }
    }
}

impl Drop for DeviceHandle {
    fn drop(&mut self) {
        if let Some(recording) = self.1.take() {
            // SAFETY: the device is alive, and its own recording is with it.
            unsafe { recording.end(self.0.as_ptr()) };
        }
        // SAFETY: the only owner frees the handle once. Modules hold a `Device` and are dropped before it.
        unsafe { raw::mlxcel_device_free(self.0.as_ptr()) }
    }
}

/// Bytes of a module's parameters, by name.
pub(crate) trait ParameterSource: fmt::Debug {
    /// Returns the parameter's bytes, little-endian; they need not be aligned.
    fn parameter(&self, name: &str) -> Option<&[u8]>;
}

/// A program loaded on a device.
#[derive(Debug)]
pub(crate) struct Module(Rc<ModuleHandle>);

#[derive(Debug)]
struct ModuleHandle {
    raw: NonNull<raw::Module>,
    device: Device,
    // `raw` points into these.
    _program: Mmap,
    _parameters: Rc<dyn ParameterSource>,
}

impl Module {
    /// Loads a program with the parameters of `source` that it may read, and runs its initializers.
    ///
    /// A program for the CPU is native code, and loading it runs it with the rights of this process.
    pub(crate) fn load(
        device: &Device,
        program: Mmap,
        source: Rc<dyn ParameterSource>,
        scope: &str,
        names: &[&str],
    ) -> Result<Self, Error> {
        let parameters = names
            .iter()
            .map(|&name| {
                let data =
                    source.parameter(name).ok_or_else(|| Error::invalid(format!("no tensor '{name}'")))?;
                Ok(raw::Parameter { name: raw::String::new(name), data: data.as_ptr(), length: data.len() })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut module = ptr::null_mut();
        // SAFETY: the device is alive. The shim copies the strings during the call. The program lies in a read-only
        // mapping, which does not move when its owner moves into the handle below. The parameters are borrowed from
        // the source, which is behind an `Rc` that the handle keeps: nobody can move it or borrow it mutably. Every
        // value that reaches IREE's objects holds that handle.
        check(unsafe {
            raw::mlxcel_module_load(
                device.0.0.as_ptr(),
                program.as_ptr(),
                program.len(),
                raw::String::new(scope),
                parameters.as_ptr(),
                parameters.len(),
                &raw mut module,
            )
        })?;
        let raw = created(module);
        Ok(Self(Rc::new(ModuleHandle {
            raw,
            device: device.clone(),
            _program: program,
            _parameters: source,
        })))
    }
}

impl Drop for ModuleHandle {
    fn drop(&mut self) {
        // SAFETY: the only owner frees the handle once, before the device and the memory that it points into, which are
        // fields of `self`. Calls and tensors hold the handle, so that none is left.
        unsafe { raw::mlxcel_module_free(self.raw.as_ptr()) }
    }
}

/// A function of a module, with its inputs on the device.
#[derive(Debug)]
pub(crate) struct Call {
    raw: NonNull<raw::Call>,
    /// Sizes of the inputs in bytes.
    inputs: Vec<usize>,
    /// The name of the function, without that of its module.
    name: String,
    module: Rc<ModuleHandle>,
}

impl Call {
    /// Finds the function `name` (`module.function`) and allocates inputs of these types.
    pub(crate) fn new(module: &Module, name: &str, inputs: &[(Dtype, &[usize])]) -> Result<Self, Error> {
        let inputs: Vec<raw::Type> = inputs
            .iter()
            .map(|(dtype, dims)| raw::Type {
                dtype: raw::dtype(*dtype),
                rank: dims.len(),
                dims: dims.as_ptr(),
            })
            .collect();
        let mut call = ptr::null_mut();
        // SAFETY: the module is alive; name, types and shapes outlive the call.
        check(unsafe {
            raw::mlxcel_call_create(
                module.0.raw.as_ptr(),
                raw::String::new(name),
                inputs.as_ptr(),
                inputs.len(),
                &raw mut call,
            )
        })?;
        let raw = created(call);
        let inputs = (0..inputs.len())
            // SAFETY: the call was created with this many inputs.
            .map(|input| unsafe { raw::mlxcel_call_input_size(raw.as_ptr(), input) })
            .collect();
        let name = name.rsplit('.').next().unwrap_or(name).to_owned();
        Ok(Self { raw, inputs, name, module: Rc::clone(&module.0) })
    }

    /// Copies the inputs to the device, runs the function and waits for it. The results stay on the device.
    pub(crate) fn invoke(&mut self, inputs: &[&[u8]]) -> Result<Vec<Tensor>, Error> {
        let inputs: Vec<_> = inputs.iter().map(|bytes| Input::Bytes(bytes)).collect();
        self.invoke_with(&inputs)
    }

    /// Runs the function as [`invoke`](Self::invoke) does. It may overwrite the tensors that are passed.
    pub(crate) fn invoke_with(&mut self, inputs: &[Input<'_>]) -> Result<Vec<Tensor>, Error> {
        // A tensor that is passed has no size on the host.
        let size = |input: &Input<'_>| match input {
            Input::Bytes(bytes) => bytes.len().max(1),
            Input::Tensor(_) => 0,
        };
        let fits = inputs.iter().zip(&self.inputs).all(|(input, &expected)| size(input) == expected);
        if !fits || inputs.len() != self.inputs.len() {
            let found: Vec<usize> = inputs.iter().map(size).collect();
            return Err(Error::invalid(format!("inputs of {found:?} bytes, expected {:?}", self.inputs)));
        }
        let raw_input = |input: &Input<'_>| match input {
            Input::Bytes(bytes) => raw::Input { data: bytes.as_ptr().cast(), tensor: ptr::null_mut() },
            Input::Tensor(tensor) => raw::Input { data: ptr::null(), tensor: tensor.raw.as_ptr() },
        };
        let inputs: Vec<_> = inputs.iter().map(raw_input).collect();
        // SAFETY: there are as many inputs as the call was created with, each of the size checked above, and the
        // shim has copied those on the host when it returns. Tensors are alive, and the shim retains them.
        let result = check(unsafe { raw::mlxcel_call_invoke(self.raw.as_ptr(), inputs.as_ptr()) });
        self.module.device.collect(&self.name);
        result?;
        // SAFETY: the handle is alive as long as `self`.
        let count = unsafe { raw::mlxcel_call_output_count(self.raw.as_ptr()) };
        (0..count).map(|_| self.take_output()).collect()
    }

    /// Takes the next result of the last invocation.
    fn take_output(&mut self) -> Result<Tensor, Error> {
        let mut tensor = ptr::null_mut();
        // SAFETY: the handle is alive as long as `self`; the shim checks that there is a result.
        check(unsafe { raw::mlxcel_call_take_output(self.raw.as_ptr(), &raw mut tensor) })?;
        Ok(Tensor { raw: created(tensor), module: Rc::clone(&self.module) })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // SAFETY: the only owner frees the handle once, before the module, which is a field of `self`.
        unsafe { raw::mlxcel_call_free(self.raw.as_ptr()) }
    }
}

/// An input of an invocation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// Elements on the host.
    Bytes(&'a [u8]),
    /// A tensor on the device, for an argument whose first dimension is 0.
    Tensor(&'a Tensor),
}

/// A tensor on the device.
#[derive(Debug)]
pub(crate) struct Tensor {
    raw: NonNull<raw::Tensor>,
    // The tensor may lie in the module's memory, such as a parameter.
    module: Rc<ModuleHandle>,
}

impl Tensor {
    /// Allocates a tensor on a module's device; with `zeros`, its elements are zero.
    pub(crate) fn allocate(
        module: &Module,
        dtype: Dtype,
        shape: &[usize],
        zeros: bool,
    ) -> Result<Self, Error> {
        let ty = raw::Type { dtype: raw::dtype(dtype), rank: shape.len(), dims: shape.as_ptr() };
        let mut tensor = ptr::null_mut();
        // SAFETY: the device is alive; type and shape outlive the call.
        check(unsafe {
            raw::mlxcel_tensor_create(
                module.0.device.0.0.as_ptr(),
                &raw const ty,
                i32::from(zeros),
                &raw mut tensor,
            )
        })?;
        Ok(Self { raw: created(tensor), module: Rc::clone(&module.0) })
    }

    /// Returns the shape.
    pub(crate) fn shape(&self) -> Vec<usize> {
        // SAFETY: the handle is alive as long as `self`.
        let rank = unsafe { raw::mlxcel_tensor_rank(self.raw.as_ptr()) };
        // SAFETY: as above, and every axis is below the rank.
        (0..rank).map(|axis| unsafe { raw::mlxcel_tensor_dim(self.raw.as_ptr(), axis) }).collect()
    }

    /// Copies the elements to the host.
    pub(crate) fn read<T: Element>(&self) -> Result<Vec<T>, Error> {
        // SAFETY: the handle is alive as long as `self`.
        let (dtype, size) = unsafe {
            (raw::mlxcel_tensor_dtype(self.raw.as_ptr()), raw::mlxcel_tensor_size(self.raw.as_ptr()))
        };
        if dtype != raw::dtype(T::DTYPE) || !size.is_multiple_of(size_of::<T>()) {
            return Err(Error::invalid(format!(
                "a result of shape {:?} and {size} bytes is not of {:?}",
                self.shape(),
                T::DTYPE
            )));
        }
        self.read_elements(0, size / size_of::<T>())
    }

    /// Copies the row `row` of the first dimension to the host.
    pub(crate) fn read_row<T: Element>(&self, row: usize) -> Result<Vec<T>, Error> {
        let shape = self.shape();
        let [rows, rest @ ..] = shape.as_slice() else {
            return Err(Error::invalid("a scalar has no rows".to_owned()));
        };
        // SAFETY: the handle is alive as long as `self`.
        let dtype = unsafe { raw::mlxcel_tensor_dtype(self.raw.as_ptr()) };
        if row >= *rows || dtype != raw::dtype(T::DTYPE) {
            return Err(Error::invalid(format!(
                "row {row} of {:?} in a result of shape {shape:?}",
                T::DTYPE
            )));
        }
        let width = rest.iter().product::<usize>();
        self.read_elements(row * width, width)
    }

    /// Copies `count` elements from `first` on, which must be of this type, to the host.
    fn read_elements<T: Element>(&self, first: usize, count: usize) -> Result<Vec<T>, Error> {
        let mut values = vec![T::default(); count];
        let size = count * size_of::<T>();
        // SAFETY: `values` has exactly `size` bytes, and every pattern of bits is a value of the type (see `Element`).
        let bytes = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size) };
        self.copy_from(first * size_of::<T>(), bytes)?;
        Ok(values)
    }

    /// Copies the bytes to the host, into all of `target`.
    pub(crate) fn copy_to(&self, target: &mut [u8]) -> Result<(), Error> {
        if self.size() != target.len() {
            let (found, expected) = (self.size(), target.len());
            return Err(Error::invalid(format!("a result of {found} bytes, expected {expected}")));
        }
        self.copy_from(0, target)
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> usize {
        // SAFETY: the handle is alive as long as `self`.
        unsafe { raw::mlxcel_tensor_size(self.raw.as_ptr()) }
    }

    /// Copies bytes from `offset` on to the host, into all of `target`.
    pub(crate) fn copy_from(&self, offset: usize, target: &mut [u8]) -> Result<(), Error> {
        let (length, size) = (target.len(), self.size());
        if offset.checked_add(length).is_none_or(|end| end > size) {
            let problem = format!("{length} bytes from {offset} on in a result of {size} bytes");
            return Err(Error::invalid(problem));
        }
        // SAFETY: device and tensor are alive; the tensor has the bytes that `target` takes.
        check(unsafe {
            raw::mlxcel_tensor_read(
                self.module.device.0.0.as_ptr(),
                self.raw.as_ptr(),
                offset,
                target.as_mut_ptr().cast(),
                target.len(),
            )
        })
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: the only owner frees the handle once, before the module, which is a field of `self`.
        unsafe { raw::mlxcel_tensor_free(self.raw.as_ptr()) }
    }
}

/// A type of tensor elements that can be read without conversion.
///
/// # Safety
/// Every bit pattern must be a value of the type, and `DTYPE` must be its element type.
pub(crate) unsafe trait Element: Copy + Default {
    /// The element type on the device.
    const DTYPE: Dtype;
}

// SAFETY: every pattern of 32 bits is an i32.
unsafe impl Element for i32 {
    const DTYPE: Dtype = Dtype::I32;
}

// SAFETY: every pattern of 32 bits is an f32.
unsafe impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
}

/// Returns the bytes of numbers in the layout of the device.
pub(crate) fn bytes<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: initialized memory may be read as bytes, and elements are numbers, which have no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns the value of an out-parameter, which the shim sets if it reports no error.
fn created<T>(pointer: *mut T) -> NonNull<T> {
    NonNull::new(pointer).expect("the shim returned neither a value nor an error")
}
