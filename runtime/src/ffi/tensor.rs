//! Tensors on a device.

use std::{
    ptr::{self, NonNull},
    rc::Rc,
};

use mlxcel_artifacts::signless;
use safetensors::Dtype;

use super::{
    error::{Error, check},
    raw,
    shim::{Module, ModuleHandle, created},
};

/// A tensor on the device.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(super) raw: NonNull<raw::Tensor>,
    // The tensor may lie in the module's memory, such as a parameter.
    pub(super) module: Rc<ModuleHandle>,
}

impl Tensor {
    /// Allocates a tensor on a module's device; with `zeros`, its elements are zero.
    pub(crate) fn allocate(
        module: &Module,
        dtype: Dtype,
        shape: &[usize],
        zeros: bool,
    ) -> Result<Self, Error> {
        Self::allocate_in(raw::MEMORY_DEVICE, module, dtype, shape, zeros)
    }

    /// Allocates a tensor in memory of the host, which a module's device writes to over the bus.
    pub(crate) fn allocate_on_host(module: &Module, dtype: Dtype, shape: &[usize]) -> Result<Self, Error> {
        Self::allocate_in(raw::MEMORY_HOST, module, dtype, shape, false)
    }

    fn allocate_in(
        memory: u32,
        module: &Module,
        dtype: Dtype,
        shape: &[usize],
        zeros: bool,
    ) -> Result<Self, Error> {
        let ty = raw::Type { dtype: raw::dtype(dtype), rank: shape.len(), dims: shape.as_ptr() };
        let mut tensor = ptr::null_mut();
        // SAFETY: the device is alive; type and shape outlive the call.
        check(unsafe {
            raw::shim_tensor_create(
                module.0.device.raw(),
                &raw const ty,
                memory,
                i32::from(zeros),
                &raw mut tensor,
            )
        })?;
        Ok(Self { raw: created(tensor), module: Rc::clone(&module.0) })
    }

    /// Allocates a tensor on a module's device with these bytes, as many as its type has.
    pub(crate) fn upload(
        module: &Module,
        dtype: Dtype,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let mut tensor = Self::allocate(module, dtype, shape, false)?;
        tensor.write(bytes)?;
        Ok(tensor)
    }

    /// Replaces all bytes, which nothing on the device reads or writes meanwhile.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let size = self.size();
        if size != bytes.len() {
            return Err(Error::invalid(format!("{} bytes for a tensor of {size}", bytes.len())));
        }
        if size == 0 {
            return Ok(());
        }
        // SAFETY: device and tensor are alive; `bytes` has the bytes that the tensor takes.
        check(unsafe {
            raw::shim_tensor_write(self.module.device.raw(), self.raw.as_ptr(), bytes.as_ptr().cast(), size)
        })
    }

    /// Returns a tensor of the first element of the first dimension, `[1, …]`, in the same memory.
    pub(crate) fn first(&self) -> Result<Self, Error> {
        let mut first = ptr::null_mut();
        // SAFETY: the handle is alive; the new one retains the memory.
        check(unsafe { raw::shim_tensor_first(self.raw.as_ptr(), &raw mut first) })?;
        Ok(Self { raw: created(first), module: Rc::clone(&self.module) })
    }

    /// Returns another handle of the same tensor.
    pub(crate) fn share(&self) -> Self {
        // SAFETY: the handle is alive, and the new one frees what is retained here.
        unsafe { raw::shim_tensor_retain(self.raw.as_ptr()) };
        Self { raw: self.raw, module: Rc::clone(&self.module) }
    }

    /// Returns whether it lies on the device of a module, whose functions can take it then.
    pub(crate) fn is_on_device_of(&self, module: &Module) -> bool {
        self.module.device.is_same(&module.0.device)
    }

    /// Returns whether a tensor has this element type, as far as the device knows types.
    pub(crate) fn is_of(&self, dtype: Dtype) -> bool {
        // SAFETY: the handle is alive as long as `self`.
        let found = unsafe { raw::shim_tensor_dtype(self.raw.as_ptr()) };
        // Compiled code does not say whether integers have a sign.
        found == raw::dtype(dtype) || found == raw::dtype(signless(dtype))
    }

    /// Returns the shape.
    pub(crate) fn shape(&self) -> Vec<usize> {
        // SAFETY: the handle is alive as long as `self`.
        let rank = unsafe { raw::shim_tensor_rank(self.raw.as_ptr()) };
        // SAFETY: as above, and every axis is below the rank.
        (0..rank).map(|axis| unsafe { raw::shim_tensor_dim(self.raw.as_ptr(), axis) }).collect()
    }

    /// Copies the elements to the host.
    pub(crate) fn read<T: Element>(&self) -> Result<Vec<T>, Error> {
        // SAFETY: the handle is alive as long as `self`.
        let (dtype, size) =
            unsafe { (raw::shim_tensor_dtype(self.raw.as_ptr()), raw::shim_tensor_size(self.raw.as_ptr())) };
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
        let dtype = unsafe { raw::shim_tensor_dtype(self.raw.as_ptr()) };
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
        unsafe { raw::shim_tensor_size(self.raw.as_ptr()) }
    }

    /// Copies bytes from `offset` on to the host, into all of `target`.
    pub(crate) fn copy_from(&self, offset: usize, target: &mut [u8]) -> Result<(), Error> {
        let (length, size) = (target.len(), self.size());
        if offset.checked_add(length).is_none_or(|end| end > size) {
            let problem = format!("{length} bytes from {offset} on in a result of {size} bytes");
            return Err(Error::invalid(problem));
        }
        if target.is_empty() {
            return Ok(());
        }
        // SAFETY: device and tensor are alive; the tensor has the bytes that `target` takes.
        check(unsafe {
            raw::shim_tensor_read(
                self.module.device.raw(),
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
        unsafe { raw::shim_tensor_free(self.raw.as_ptr()) }
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
