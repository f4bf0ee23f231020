//! Programs: functions of tensors.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use mlxcel_artifacts::{Bundle, Tensor, dtype_of_numpy, numpy_name};
use mlxcel_runtime::{DeviceOptions, Error, Function, LoadedProgram, Program};
use pyo3::{buffer::PyBuffer, prelude::*, types::PyByteArray};
use safetensors::Dtype;

use crate::{
    error,
    fork::ProcessBound,
    load::{self, Device, Where},
    wait::receive,
    worker::Worker,
};

/// An element type, and a shape.
type Type = (String, Vec<usize>);

/// The name of an argument or result, its type, and whether it is a state or the next one.
type Named = (String, String, Vec<usize>, bool);

/// A tensor as Python gives it: its name, element type, shape and bytes.
type Given<'py> = (String, String, Vec<usize>, Bound<'py, PyAny>);

/// A program on its thread, with the functions that were prepared.
struct Loaded {
    // Before the program, which they need.
    functions: HashMap<u64, Function>,
    program: LoadedProgram,
}

/// A loaded program.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct NativeProgram {
    /// `None` after it was closed.
    worker: ProcessBound<Mutex<Option<Arc<Worker<Loaded>>>>>,
    bundle: Bundle,
    device: (String, String),
    next: AtomicU64,
}

impl NativeProgram {
    fn worker(&self) -> PyResult<Arc<Worker<Loaded>>> {
        let worker = self.worker.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        worker.ok_or_else(|| {
            error::new("ClosedError", "the program was closed, expected an open one\nhint: load it again")
        })
    }

    /// Lets the program's thread do some work.
    fn run<R: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Loaded) -> Result<R, Error> + Send + 'static,
    ) -> PyResult<R> {
        receive(py, self.worker()?.run(work))?.map_err(error::of)
    }
}

#[pymethods]
impl NativeProgram {
    #[new]
    fn new(py: Python<'_>, place: Where, device: Device) -> PyResult<Self> {
        let options = DeviceOptions { device: device.spec()?, threads: device.threads, ..Default::default() };
        let bundle = load::open(py, &place)?;
        let program = Program::new(bundle.clone()).map_err(error::of)?;
        let load = move || Ok(Loaded { functions: HashMap::new(), program: program.load(options)? });
        let worker = py.detach(|| Worker::start(load)).map_err(error::of)?;
        let device = worker.run(|loaded| {
            let info = loaded.program.device();
            (info.target.clone(), info.name.clone())
        });
        let device = receive(py, device)?;
        let worker = ProcessBound::new(Mutex::new(Some(Arc::new(worker))));
        Ok(Self { worker, bundle, device, next: AtomicU64::new(0) })
    }

    /// Returns the model's name, the bundle's digest, the target and the device.
    fn facts(&self) -> (String, String, String, String) {
        let (target, device) = self.device.clone();
        (self.bundle.manifest().model.clone(), self.bundle.digest().to_string(), target, device)
    }

    /// Returns each entry point's name, that of its function, its arguments and its results.
    fn entries(&self) -> Vec<(String, String, Vec<Named>, Vec<Named>)> {
        let entries = self.bundle.manifest().functions().unwrap_or_default().iter();
        let described = entries.map(|entry| {
            let inputs = entry.inputs().map(|(name, spec)| {
                (name, dtype_name(spec.dtype), spec.shape.clone(), spec.next_state().is_some())
            });
            let states: Vec<usize> = entry.inputs().filter_map(|(_, spec)| spec.next_state()).collect();
            let outputs = entry.outputs().enumerate().map(|(index, (name, spec))| {
                (name, dtype_name(spec.dtype), spec.shape.clone(), states.contains(&index))
            });
            (entry.name.clone(), entry.function_name().to_owned(), inputs.collect(), outputs.collect())
        });
        described.collect()
    }

    /// Prepares calls of an entry point. Returns the number by which the other methods know them.
    fn prepare(&self, py: Python<'_>, entry: String) -> PyResult<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.run(py, move |loaded| {
            let function = loaded.program.function(&entry)?;
            loaded.functions.insert(number, function);
            Ok(())
        })?;
        Ok(number)
    }

    /// Forgets calls that were prepared.
    fn forget(&self, number: u64) {
        // In a child, or after the end, they are forgotten already.
        if let Ok(worker) = self.worker() {
            drop(worker.run(move |loaded| _ = loaded.functions.remove(&number)));
        }
    }

    /// Sets arguments, calls the function if that is asked for, and reads results or states.
    fn call<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        arguments: Vec<Given<'py>>,
        is_called: bool,
        results: Vec<String>,
    ) -> PyResult<Vec<(Type, Bound<'py, PyByteArray>)>> {
        let arguments = arguments.into_iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
        let found = self.run(py, move |loaded| {
            let Some(function) = loaded.functions.get_mut(&number) else { return Ok(Vec::new()) };
            for (name, value) in &arguments {
                function.set(name, value)?;
            }
            if is_called {
                function.call()?;
            }
            results.iter().map(|name| function.read(name)).collect::<Result<Vec<_>, _>>()
        })?;
        let shown = |tensor: &Tensor| {
            let kind = (dtype_name(tensor.dtype()), tensor.shape().to_vec());
            (kind, PyByteArray::new(py, tensor.bytes()))
        };
        Ok(found.iter().map(shown).collect())
    }

    /// Ends the program's thread.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let taken = self.worker.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(taken));
        Ok(())
    }
}

/// Returns a tensor that Python gives.
fn tensor((name, dtype, shape, bytes): Given<'_>) -> PyResult<(String, Tensor)> {
    let bytes = PyBuffer::<u8>::get(&bytes)?.to_vec(bytes.py())?;
    let known = dtype_of_numpy(&dtype).ok_or_else(|| {
        error::new("RequestError", &format!("argument \"{name}\": found {dtype}, expected a type of numbers"))
    })?;
    let value =
        Tensor::new(known, &shape, bytes).map_err(|problem| error::of_any("RequestError", &problem))?;
    Ok((name, value))
}

fn dtype_name(dtype: Dtype) -> String {
    numpy_name(dtype).unwrap_or_else(|| dtype.to_string())
}
