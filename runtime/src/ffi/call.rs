//! Calls of a module's functions.

use std::{
    ptr::{self, NonNull},
    rc::Rc,
};

use safetensors::Dtype;

use super::{
    error::{Error, check},
    raw,
    shim::{Module, ModuleHandle, created},
    tensor::Tensor,
};

/// How a function gets an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ArgumentType<'a> {
    /// Every invocation copies it to the device, as a tensor of this type.
    Copied(Dtype, &'a [usize]),
    /// An `i32` of the host.
    Number,
    /// A tensor on the device, which every invocation passes.
    Tensor,
}

/// An input of an invocation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// Elements on the host, or the bytes of a number.
    Bytes(&'a [u8]),
    /// A tensor on the device.
    Tensor(&'a Tensor),
}

/// A function of a module, with its inputs on the device.
#[derive(Debug)]
pub(crate) struct Call {
    raw: NonNull<raw::Call>,
    /// The bytes of each input on the host. A tensor on the device has none.
    sizes: Vec<Option<usize>>,
    /// The inputs of the last invocation. Kept, so that an invocation allocates nothing here.
    inputs: Vec<raw::Input>,
    /// The name of the function, without that of its module.
    name: String,
    module: Rc<ModuleHandle>,
}

impl Call {
    /// Finds the function `name` (`module.function`) and allocates the inputs that are copied.
    pub(crate) fn new(module: &Module, name: &str, types: &[ArgumentType<'_>]) -> Result<Self, Error> {
        Self::create(module, name, types, false)
    }

    /// Finds a function that is in place: it returns tensors that it is given, and the host does the same at every invocation.
    pub(crate) fn in_place(module: &Module, name: &str, types: &[ArgumentType<'_>]) -> Result<Self, Error> {
        Self::create(module, name, types, true)
    }

    fn create(
        module: &Module,
        name: &str,
        types: &[ArgumentType<'_>],
        in_place: bool,
    ) -> Result<Self, Error> {
        let arguments: Vec<raw::Argument> = types
            .iter()
            .map(|ty| {
                let (kind, dtype, dims) = match *ty {
                    ArgumentType::Copied(dtype, dims) => (raw::COPIED, raw::dtype(dtype), dims),
                    ArgumentType::Number => (raw::NUMBER, 0, &[][..]),
                    ArgumentType::Tensor => (raw::TENSOR, 0, &[][..]),
                };
                raw::Argument { kind, ty: raw::Type { dtype, rank: dims.len(), dims: dims.as_ptr() } }
            })
            .collect();
        let mut call = ptr::null_mut();
        // SAFETY: the module is alive; name, types and shapes outlive the call.
        check(unsafe {
            raw::shim_call_create(
                module.0.raw.as_ptr(),
                raw::String::new(name),
                arguments.as_ptr(),
                arguments.len(),
                i32::from(in_place),
                &raw mut call,
            )
        })?;
        let raw = created(call);
        let size = |(index, ty): (usize, &ArgumentType<'_>)| match ty {
            // SAFETY: the call was created with this many inputs.
            ArgumentType::Copied(..) => Some(unsafe { raw::shim_call_input_size(raw.as_ptr(), index) }),
            ArgumentType::Number => Some(size_of::<i32>()),
            ArgumentType::Tensor => None,
        };
        let sizes: Vec<_> = types.iter().enumerate().map(size).collect();
        let name = name.rsplit('.').next().unwrap_or(name).to_owned();
        Ok(Self { raw, inputs: Vec::with_capacity(sizes.len()), sizes, name, module: Rc::clone(&module.0) })
    }

    /// Copies the inputs to the device, runs the function and waits for it. The results stay on the device.
    pub(crate) fn invoke(&mut self, inputs: &[&[u8]]) -> Result<Vec<Tensor>, Error> {
        self.invoke_with(inputs.iter().map(|bytes| Input::Bytes(bytes)))
    }

    /// Runs the function as [`invoke`](Self::invoke) does. It may overwrite the tensors that are passed.
    pub(crate) fn invoke_with<'i>(
        &mut self,
        inputs: impl IntoIterator<Item = Input<'i>>,
    ) -> Result<Vec<Tensor>, Error> {
        let mut results = Vec::new();
        self.invoke_into(inputs, &mut results)?;
        Ok(results)
    }

    /// Runs the function and replaces `results` by its results.
    pub(crate) fn invoke_into<'i>(
        &mut self,
        inputs: impl IntoIterator<Item = Input<'i>>,
        results: &mut Vec<Tensor>,
    ) -> Result<(), Error> {
        self.begin(inputs)?;
        self.end(results)
    }

    /// Begins to run the function, which [`end`](Self::end) waits for. It may overwrite the tensors that are passed.
    pub(crate) fn begin<'i>(&mut self, inputs: impl IntoIterator<Item = Input<'i>>) -> Result<(), Error> {
        self.inputs.clear();
        for input in inputs {
            let expected = self.sizes.get(self.inputs.len());
            let (found, raw) = match input {
                Input::Bytes(bytes) => {
                    (Some(bytes.len()), raw::Input { data: bytes.as_ptr().cast(), tensor: ptr::null_mut() })
                }
                Input::Tensor(tensor) => {
                    (None, raw::Input { data: ptr::null(), tensor: tensor.raw.as_ptr() })
                }
            };
            if expected != Some(&found) {
                let index = self.inputs.len();
                let (found, expected) = (size_text(Some(&found)), size_text(expected));
                return Err(Error::invalid(format!("input {index} has {found}, expected {expected}")));
            }
            self.inputs.push(raw);
        }
        if self.inputs.len() != self.sizes.len() {
            let (found, expected) = (self.inputs.len(), self.sizes.len());
            return Err(Error::invalid(format!("found {found} inputs, expected {expected}")));
        }
        // SAFETY: there are as many inputs as the call was created with, each of the size checked above. The borrows of
        // `inputs` live until the shim has copied what is on the host. Tensors are alive, and the shim retains them.
        let begun = check(unsafe { raw::shim_call_begin(self.raw.as_ptr(), self.inputs.as_ptr()) });
        if begun.is_err() {
            self.module.device.collect(&self.name);
        }
        begun
    }

    /// Waits for what was begun, and replaces `results` by its results.
    pub(crate) fn end(&mut self, results: &mut Vec<Tensor>) -> Result<(), Error> {
        results.clear();
        // SAFETY: the handle is alive as long as `self`; the shim checks that something was begun.
        let ended = check(unsafe { raw::shim_call_end(self.raw.as_ptr()) });
        self.module.device.collect(&self.name);
        ended?;
        // SAFETY: the handle is alive as long as `self`.
        let count = unsafe { raw::shim_call_output_count(self.raw.as_ptr()) };
        for _ in 0..count {
            results.push(self.take_output()?);
        }
        Ok(())
    }

    /// Returns whether it may be begun before another call that was begun has ended: it launches kernels alone, after those of
    /// the other.
    pub(crate) fn is_replayed(&self) -> bool {
        // SAFETY: the handle is alive as long as `self`.
        unsafe { raw::shim_call_is_replayed(self.raw.as_ptr()) != 0 }
    }

    /// Takes the next result of the last invocation.
    fn take_output(&mut self) -> Result<Tensor, Error> {
        let mut tensor = ptr::null_mut();
        // SAFETY: the handle is alive as long as `self`; the shim checks that there is a result.
        check(unsafe { raw::shim_call_take_output(self.raw.as_ptr(), &raw mut tensor) })?;
        Ok(Tensor { raw: created(tensor), module: Rc::clone(&self.module) })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // SAFETY: the only owner frees the handle once, before the module, which is a field of `self`. What was begun is waited for.
        unsafe { raw::shim_call_free(self.raw.as_ptr()) }
    }
}

/// Says how many bytes an input has.
fn size_text(size: Option<&Option<usize>>) -> String {
    match size {
        None => "no place".into(),
        Some(None) => "a tensor of the device".into(),
        Some(Some(bytes)) => format!("{bytes} bytes"),
    }
}
