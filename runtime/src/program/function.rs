//! Calls of a function, with arguments and state on the device.

use mlxcel_artifacts::{
    Tensor as HostTensor,
    entry::{ArgumentKind, ArgumentSpec, Entry, MODULE_NAME},
    tensor_bytes, type_text,
};
use safetensors::Dtype;

use super::names::nearest;
use crate::{
    error::{Error, ProgramError},
    ffi::{ArgumentType, Call, Input, Module, Tensor},
};

/// A tensor on the device of a program. Functions of the program take it without a copy, and those of no other device.
#[derive(Debug)]
pub struct DeviceTensor {
    tensor: Tensor,
    dtype: Dtype,
    shape: Vec<usize>,
}

/// A function of a program, with its arguments bound.
///
/// Arguments stay on the device from call to call, and so does state: each state has two buffers, of which a call reads one and
/// writes the other. A call copies nothing, and allocates nothing besides what the compiled code does.
#[derive(Debug)]
pub struct Function {
    entry: Entry,
    call: Call,
    module: Module,
    /// The value of each argument. That of a storage is the buffer that the next call writes.
    arguments: Vec<Option<Tensor>>,
    /// For each state, its index among the arguments, that of its storage, and its result.
    states: Vec<State>,
    /// The results of the last call, without those of states.
    results: Vec<Option<Tensor>>,
    /// The results as the call gives them. Kept for its memory.
    given: Vec<Tensor>,
}

/// Where a state is read from and written to.
#[derive(Debug, Clone, Copy)]
struct State {
    argument: usize,
    storage: usize,
    result: usize,
}

impl Function {
    /// Prepares calls of the function of `entry`.
    pub(super) fn new(module: &Module, entry: &Entry) -> Result<Self, Error> {
        let name = &entry.name;
        let types = vec![ArgumentType::Tensor; entry.arguments.len()];
        let call = Call::new(module, &format!("{MODULE_NAME}.{name}"), &types);
        let call = call.map_err(Error::iree(|| format!("prepare {name}")))?;
        let is_storage_of = |result| move |spec: &ArgumentSpec| matches!(spec.kind, ArgumentKind::Storage { result: other } if other == result);
        // A valid manifest has a storage for every state.
        let states = entry.arguments.iter().enumerate().filter_map(|(argument, spec)| {
            let result = spec.next_state()?;
            Some(State { argument, storage: entry.arguments.iter().position(is_storage_of(result))?, result })
        });
        let states: Vec<_> = states.collect();
        let mut arguments: Vec<_> = entry.arguments.iter().map(|_| None).collect();
        for State { storage, .. } in &states {
            let ArgumentSpec { dtype, shape, .. } = &entry.arguments[*storage];
            let buffer = Tensor::allocate(module, *dtype, shape, false);
            arguments[*storage] =
                Some(buffer.map_err(Error::iree(|| format!("reserve the state of {name}")))?);
        }
        let (results, given) = (Vec::new(), Vec::with_capacity(entry.results.len()));
        Ok(Self { entry: entry.clone(), call, module: module.share(), arguments, states, results, given })
    }

    /// Returns names and types of arguments and results.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Copies a tensor to the device, as an argument of all calls from now on.
    ///
    /// # Errors
    /// The function takes no such argument, it has another type, or it is a state.
    pub fn bind(mut self, name: &str, value: &HostTensor) -> Result<Self, Error> {
        self.check_kind(name, false)?;
        self.set(name, value)?;
        Ok(self)
    }

    /// Makes a tensor that is on the device an argument of all calls from now on, without a copy.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), or the tensor is on another device. A device that is loaded twice counts as two.
    pub fn bind_device(mut self, name: &str, value: &DeviceTensor) -> Result<Self, Error> {
        self.check_kind(name, false)?;
        let index = self.argument(name)?;
        self.check_type(index, value.dtype, &value.shape)?;
        if !value.tensor.is_on_device_of(&self.module) {
            let (number, name) = self.numbered(index);
            return Err(ProgramError::OtherDevice { number, name }.into());
        }
        self.arguments[index] = Some(value.tensor.share());
        Ok(self)
    }

    /// Copies the first value of a state to the device. Each call takes the one that the call before has returned.
    ///
    /// # Errors
    /// The function takes no such argument, it has another type, or it is no state.
    pub fn state(mut self, name: &str, value: &HostTensor) -> Result<Self, Error> {
        self.check_kind(name, true)?;
        self.set(name, value)?;
        Ok(self)
    }

    /// Copies a tensor to the device, as an argument or as the present value of a state.
    ///
    /// # Errors
    /// The function takes no such argument, or it has another type.
    pub fn set(&mut self, name: &str, value: &HostTensor) -> Result<(), Error> {
        self.set_bytes(name, value.dtype(), value.shape(), value.bytes())
    }

    /// Copies a tensor of these bytes, little-endian, to the device; see [`set`](Self::set).
    ///
    /// # Errors
    /// As [`set`](Self::set), or the bytes are not as many as the type says.
    pub fn set_bytes(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<(), Error> {
        let index = self.argument(name)?;
        self.check_type(index, dtype, shape)?;
        self.check_size(index, bytes.len())?;
        if dtype == Dtype::BOOL && bytes.iter().any(|byte| *byte > 1) {
            let bits: Vec<u8> = bytes.iter().map(|byte| u8::from(*byte != 0)).collect();
            return self.set_bytes(name, dtype, shape, &bits);
        }
        let copy = Tensor::upload(&self.module, dtype, shape, bytes);
        self.arguments[index] = Some(copy.map_err(Error::iree(|| format!("copy `{name}` to the device")))?);
        Ok(())
    }

    /// Calls the function and waits for it. States become what it returns.
    ///
    /// # Errors
    /// An argument was not given, or the device fails. States are then what they were.
    pub fn call(&mut self) -> Result<(), Error> {
        self.results.clear();
        if let Some(missing) = self.arguments.iter().position(Option::is_none) {
            return Err(self.missing(missing).into());
        }
        let inputs = self.arguments.iter().flatten().map(Input::Tensor);
        let name = &self.entry.name;
        self.call.invoke_into(inputs, &mut self.given).map_err(Error::iree(|| format!("run {name}")))?;
        let (found, expected) = (self.given.len(), self.entry.results.len());
        if found != expected {
            return Err(Error::Unsupported(format!("{name} returns {found} results, expected {expected}")));
        }
        self.results.extend(self.given.drain(..).map(Some));
        for State { argument, storage, result } in &self.states {
            // The result is the buffer of the storage, under another handle.
            self.results[*result] = None;
            self.arguments.swap(*argument, *storage);
        }
        Ok(())
    }

    /// Copies a result of the last call, or the present value of a state, to the host.
    ///
    /// # Errors
    /// There is nothing of this name, or the device fails.
    pub fn read(&self, name: &str) -> Result<HostTensor, Error> {
        let (tensor, dtype, shape) = self.find(name)?;
        let mut bytes = vec![0; tensor.size()];
        tensor.copy_to(&mut bytes).map_err(Error::iree(|| format!("read `{name}`")))?;
        HostTensor::new(dtype, shape, bytes).map_err(|error| Error::Unsupported(error.to_string()))
    }

    /// Copies a result of the last call, or the present value of a state, into all of `to`.
    ///
    /// # Errors
    /// As [`read`](Self::read), or it has another number of bytes.
    pub fn read_into(&self, name: &str, to: &mut [u8]) -> Result<(), Error> {
        let (tensor, dtype, shape) = self.find(name)?;
        if tensor.size() != to.len() {
            let (name, found, expected) = (name.to_owned(), to.len(), type_text(dtype, shape));
            return Err(ProgramError::BufferSize { name, found, size: tensor.size(), expected }.into());
        }
        tensor.copy_to(to).map_err(Error::iree(|| format!("read `{name}`")))
    }

    /// Finds a result of the last call, or the present value of a state.
    fn find(&self, name: &str) -> Result<(&Tensor, Dtype, &[usize]), Error> {
        let result = self.entry.outputs().position(|(known, _)| known == name);
        let of_result = |state: &&State| Some(state.result) == result;
        let (tensor, dtype, shape) = if let Some(state) = self.states.iter().find(of_result) {
            self.present(state.argument)?
        } else if let Some(result) = result {
            let spec = &self.entry.results[result];
            let tensor = self.results.get(result).and_then(Option::as_ref);
            (tensor.ok_or_else(|| self.not_called(name))?, spec.dtype, &spec.shape)
        } else {
            let input = self.entry.inputs().position(|(known, _)| known == name);
            let state = self.states.iter().find(|state| Some(state.argument) == input);
            self.present(state.ok_or_else(|| self.no_result(name))?.argument)?
        };
        self.check_result(name, tensor, dtype, shape)?;
        Ok((tensor, dtype, shape))
    }

    /// Takes a result of the last call as a tensor of the device, for other functions of the program.
    ///
    /// # Errors
    /// There is no such result, it was taken, or it is the next state.
    pub fn take(&mut self, name: &str) -> Result<DeviceTensor, Error> {
        let result = self.entry.outputs().position(|(known, _)| known == name);
        let result = result.ok_or_else(|| self.no_result(name))?;
        if self.states.iter().any(|state| state.result == result) {
            let (function, name) = (self.entry.name.clone(), name.to_owned());
            return Err(ProgramError::Kept { function, name }.into());
        }
        let taken = self.results.get_mut(result).and_then(Option::take);
        let tensor = taken.ok_or_else(|| self.not_called(name))?;
        let spec = &self.entry.results[result];
        self.check_result(name, &tensor, spec.dtype, &spec.shape)?;
        Ok(DeviceTensor { tensor, dtype: spec.dtype, shape: spec.shape.clone() })
    }

    /// Returns the present value of an argument.
    fn present(&self, index: usize) -> Result<(&Tensor, Dtype, &Vec<usize>), Error> {
        let spec = &self.entry.arguments[index];
        let tensor = self.arguments[index].as_ref().ok_or_else(|| self.missing(index))?;
        Ok((tensor, spec.dtype, &spec.shape))
    }

    /// Returns the index of an argument.
    fn argument(&self, name: &str) -> Result<usize, Error> {
        // Storages come last, so that indices of inputs are those of arguments.
        let index = self.entry.inputs().position(|(known, _)| known == name);
        index.ok_or_else(|| {
            let names: Vec<_> = self.entry.inputs().map(|(name, _)| name).collect();
            let expected = nearest(name, names.iter().map(String::as_str));
            let (function, found) = (self.entry.name.clone(), name.to_owned());
            ProgramError::NoArgument { function, found, expected }.into()
        })
    }

    fn check_type(&self, index: usize, dtype: Dtype, shape: &[usize]) -> Result<(), Error> {
        let spec = &self.entry.arguments[index];
        if (dtype, shape) == (spec.dtype, &spec.shape) {
            return Ok(());
        }
        let (number, name) = self.numbered(index);
        let found = type_text(dtype, shape);
        let expected = type_text(spec.dtype, &spec.shape);
        Err(ProgramError::ArgumentType { number, name, found, expected }.into())
    }

    /// Checks the bytes of an argument whose type fits.
    fn check_size(&self, index: usize, found: usize) -> Result<(), Error> {
        let spec = &self.entry.arguments[index];
        let size = tensor_bytes(spec.dtype, &spec.shape).unwrap_or(usize::MAX);
        if found == size {
            return Ok(());
        }
        let expected = type_text(spec.dtype, &spec.shape);
        Err(ProgramError::BufferSize { name: self.numbered(index).1, found, size, expected }.into())
    }

    /// Checks that an argument is a state, or that it is none.
    fn check_kind(&self, name: &str, is_state: bool) -> Result<(), Error> {
        let index = self.argument(name)?;
        let found = self.entry.arguments[index].next_state().is_some();
        if found == is_state {
            return Ok(());
        }
        let (number, name) = self.numbered(index);
        let [(found, method), (expected, _)] = match found {
            true => [("a state", "state"), ("an input", "bind")],
            false => [("an input", "bind"), ("a state", "state")],
        };
        Err(ProgramError::OtherKind { number, name, found, expected, method }.into())
    }

    /// Returns number and name of an argument, for messages.
    fn numbered(&self, index: usize) -> (usize, String) {
        (index + 1, self.entry.inputs().nth(index).map(|(name, _)| name).unwrap_or_default())
    }

    fn missing(&self, index: usize) -> ProgramError {
        let (number, name) = self.numbered(index);
        let ArgumentSpec { dtype, shape, .. } = &self.entry.arguments[index];
        ProgramError::MissingArgument { number, name, expected: type_text(*dtype, shape) }
    }

    fn no_result(&self, name: &str) -> ProgramError {
        let names: Vec<_> = self.entry.outputs().map(|(name, _)| name).collect();
        let expected = nearest(name, names.iter().map(String::as_str));
        ProgramError::NoResult { function: self.entry.name.clone(), found: name.to_owned(), expected }
    }

    fn not_called(&self, name: &str) -> ProgramError {
        ProgramError::NotCalled { function: self.entry.name.clone(), name: name.to_owned() }
    }

    /// Checks that the module returns what the manifest says. A module that differs from its manifest may return anything.
    fn check_result(&self, name: &str, tensor: &Tensor, dtype: Dtype, shape: &[usize]) -> Result<(), Error> {
        if tensor.is_of(dtype) && tensor.shape() == shape {
            return Ok(());
        }
        let (function, found) = (&self.entry.name, tensor.shape());
        let expected = type_text(dtype, shape);
        Err(Error::Unsupported(format!(
            "{function} returns `{name}` of shape {found:?} or another type, expected {expected}"
        )))
    }
}

impl DeviceTensor {
    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Copies the tensor to the host.
    ///
    /// # Errors
    /// The device fails.
    pub fn read(&self) -> Result<HostTensor, Error> {
        let mut bytes = vec![0; self.tensor.size()];
        self.tensor.copy_to(&mut bytes).map_err(Error::iree(|| "read a tensor".into()))?;
        HostTensor::new(self.dtype, &self.shape, bytes).map_err(|error| Error::Unsupported(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
