//! Calls of the driver as a program makes them, for tests.

use std::{
    ffi::{CString, c_int, c_void},
    marker::PhantomData,
    mem, ptr,
};

use super::{
    codes::{INVALID_VALUE, SUCCESS},
    contexts::Context,
    driver::cuGetProcAddress,
    graphs::{Edge, Parameters},
    modules::{Call, Function, sizes},
    primary::ensure_current,
};

/// What the driver calls a thing of a program.
type Handle = *mut c_void;
/// The stream that each program has.
const STREAM: Handle = ptr::null_mut();
/// CUDA 12.3, where all functions are that are called.
const VERSION: c_int = 12030;

/// The number of an error.
pub type Code = c_int;

/// Finds a function of the driver and calls it. What follows an argument is its type in C.
macro_rules! call {
    ($name:literal $(, $argument:expr => $type:ty)* $(,)?) => {{
        let function = find($name);
        // SAFETY: the driver's function of this name takes these types.
        let function: unsafe extern "C" fn($($type),*) -> c_int = unsafe { mem::transmute(function) };
        // SAFETY: handles are alive, and pointers are those of values that outlive the call.
        let code = unsafe { function($($argument),*) };
        if code == SUCCESS { Ok(()) } else { Err(code) }
    }};
}

fn find(name: &str) -> Handle {
    ensure_current();
    let mut function = ptr::null();
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: the name is a C string, and there is a place for a pointer.
    unsafe { cuGetProcAddress(name.as_ptr(), &raw mut function, VERSION, 0) };
    function.cast_mut()
}

/// Makes the context of a device the current one of this thread. At first it is that of the first device.
///
/// # Errors
/// There is no such device, or it is lost.
pub fn use_device(device: c_int) -> Result<(), Code> {
    let mut context = ptr::null();
    call!("cuDevicePrimaryCtxRetain", &raw mut context => *mut *const Context, device => c_int)?;
    call!("cuCtxSetCurrent", context => *const Context)
}

/// Takes away what all programs have on a device.
///
/// # Errors
/// There is no such device.
pub fn reset_device(device: c_int) -> Result<(), Code> {
    call!("cuDevicePrimaryCtxReset", device => c_int)
}

/// Ends a use of a device, the last of which takes away what programs have there.
///
/// # Errors
/// It is not used.
pub fn release_device(device: c_int) -> Result<(), Code> {
    call!("cuDevicePrimaryCtxRelease", device => c_int)
}

/// Returns the free and the whole memory of the current device.
///
/// # Errors
/// Its context has ended.
pub fn memory() -> Result<[usize; 2], Code> {
    let mut found = [0; 2];
    let [free, total] = &mut found;
    call!("cuMemGetInfo", &raw mut *free => *mut usize, &raw mut *total => *mut usize)?;
    Ok(found)
}

/// Waits for all work.
///
/// # Errors
/// The driver refuses.
pub fn synchronize() -> Result<(), Code> {
    call!("cuStreamSynchronize", STREAM => Handle)
}

/// What memory is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Memory of the device.
    Device,
    /// Memory of the host, which the device reaches.
    Host,
}

/// Returns where new memory is.
///
/// # Errors
/// There is not enough memory.
pub fn allocate(kind: Kind, bytes: usize) -> Result<u64, Code> {
    let mut place = 0;
    match kind {
        Kind::Device => call!("cuMemAlloc", &raw mut place => *mut u64, bytes => usize)?,
        Kind::Host => call!("cuMemHostAlloc", &raw mut place => *mut u64, bytes => usize, 0 => u32)?,
    }
    Ok(place)
}

/// Takes memory away that was allocated as a kind.
///
/// # Errors
/// It was not.
pub fn free(kind: Kind, place: u64) -> Result<(), Code> {
    match kind {
        Kind::Device => call!("cuMemFree", place => u64),
        Kind::Host => call!("cuMemFreeHost", place => u64),
    }
}

/// Lets the device reach numbers.
///
/// # Errors
/// It does so already.
pub fn register(numbers: &mut [u32]) -> Result<(), Code> {
    let bytes = size_of_val(numbers);
    call!("cuMemHostRegister", numbers.as_mut_ptr() as u64 => u64, bytes => usize, 0 => u32)
}

/// Ends what [`register`] began.
///
/// # Errors
/// It did not.
pub fn unregister(place: u64) -> Result<(), Code> {
    call!("cuMemHostUnregister", place => u64)
}

/// Copies numbers from a place of the device.
///
/// # Errors
/// They are not all there.
pub fn copy_back(into: &mut [u32], place: u64) -> Result<(), Code> {
    let bytes = size_of_val(into);
    call!(
        "cuMemcpyAsync", into.as_mut_ptr() as u64 => u64, place => u64, bytes => usize, STREAM => Handle
    )
}

/// A module that was loaded.
#[derive(Debug)]
pub struct Program(Handle);

impl Program {
    /// Loads a module.
    ///
    /// # Errors
    /// It has an instruction that is not known.
    pub fn load(text: &str) -> Result<Self, Code> {
        let text = CString::new(text).map_err(|_| INVALID_VALUE)?;
        let (mut module, none) = (ptr::null_mut(), ptr::null_mut());
        call!(
            "cuModuleLoadDataEx", &raw mut module => *mut Handle, text.as_ptr().cast() => *const c_void,
            0 => u32, none => Handle, none => Handle
        )?;
        Ok(Self(module))
    }

    /// Returns a kernel.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>, Code> {
        let name = CString::new(name).map_err(|_| INVALID_VALUE)?;
        let mut function = ptr::null();
        call!(
            "cuModuleGetFunction", &raw mut function => *mut *const Function, self.0 => Handle,
            name.as_ptr().cast() => *const c_void
        )?;
        Ok(Kernel { function, program: PhantomData })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = call!("cuModuleUnload", self.0 => Handle);
    }
}

/// A kernel of a program.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<'p> {
    function: *const Function,
    program: PhantomData<&'p Program>,
}

impl Kernel<'_> {
    /// Returns the pointers to parameters, unless the kernel has others.
    fn pointers(&self, parameters: &[u64]) -> Result<Vec<*const u8>, Code> {
        // SAFETY: the program is loaded as long as its kernels are used.
        let sizes = unsafe { sizes(self.function) }.ok_or(INVALID_VALUE)?;
        if !sizes.map(|size| size <= size_of::<u64>()).eq(parameters.iter().map(|_| true)) {
            return Err(INVALID_VALUE);
        }
        Ok(parameters.iter().map(|parameter| (&raw const *parameter).cast()).collect())
    }

    /// Sets a `CUfunction_attribute`.
    ///
    /// # Errors
    /// It cannot have this value.
    pub fn set_attribute(self, attribute: c_int, value: c_int) -> Result<(), Code> {
        call!(
            "cuFuncSetAttribute", self.function => *const Function, attribute => c_int, value => c_int
        )
    }

    /// Runs one block of one thread, with null in place of each parameter's value.
    ///
    /// # Errors
    /// The kernel has parameters.
    pub fn launch_without_values(self) -> Result<(), Code> {
        // SAFETY: the program is loaded as long as its kernels are used.
        let count = unsafe { sizes(self.function) }.ok_or(INVALID_VALUE)?.count();
        self.launch_with(&vec![ptr::null(); count])
    }

    /// Runs one block of one thread. Parameters are addresses and numbers of at most eight bytes.
    ///
    /// # Errors
    /// The kernel has other parameters, or does something that is an error on a GPU.
    pub fn launch(self, parameters: &[u64]) -> Result<(), Code> {
        self.launch_with(&self.pointers(parameters)?)
    }

    fn launch_with(self, pointers: &[*const u8]) -> Result<(), Code> {
        let none = ptr::null();
        call!(
            "cuLaunchKernel", self.function => *const Function, 1 => u32, 1 => u32, 1 => u32, 1 => u32,
            1 => u32, 1 => u32, 0 => u32, STREAM => Handle, pointers.as_ptr() => *const *const u8,
            none => *const Handle
        )
    }
}

/// A graph of kernels.
#[derive(Debug)]
pub struct Graph<'p> {
    handle: Handle,
    program: PhantomData<&'p Program>,
}

/// A kernel of a graph.
#[derive(Debug, Clone, Copy)]
pub struct Node(Handle);

impl<'p> Graph<'p> {
    /// Returns a graph without kernels.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn new() -> Result<Self, Code> {
        let mut handle = ptr::null_mut();
        call!("cuGraphCreate", &raw mut handle => *mut Handle, 0 => u32)?;
        Ok(Self { handle, program: PhantomData })
    }

    /// Adds one block of one thread of a kernel that waits for the ends of others.
    ///
    /// # Errors
    /// The kernel has other parameters, or a node is not of this graph.
    pub fn add(&mut self, kernel: Kernel<'p>, parameters: &[u64], after: &[Node]) -> Result<Node, Code> {
        let (pointers, after) = (kernel.pointers(parameters)?, handles(after));
        let (call, mut node) = (one_thread(kernel, &pointers), ptr::null_mut());
        call!(
            "cuGraphAddKernelNode", &raw mut node => *mut Handle, self.handle => Handle,
            after.as_ptr() => *const Handle, after.len() => usize, &raw const call => *const Call
        )?;
        Ok(Node(node))
    }

    /// Adds a kernel as [`add`](Self::add) does, which may begin when those that it depends on allow it: when `port` of them, a
    /// `CU_GRAPH_KERNEL_NODE_PORT`, is reached.
    ///
    /// # Errors
    /// Those of `add`, or there is no such port.
    pub fn add_early(
        &mut self,
        kernel: Kernel<'p>,
        parameters: &[u64],
        after: &[Node],
        port: u8,
    ) -> Result<Node, Code> {
        let (pointers, after) = (kernel.pointers(parameters)?, handles(after));
        let parameters = Parameters { kind: 0, reserved: [0; 3], kernel: one_thread(kernel, &pointers) };
        let edge = |_: &Handle| Edge { from_port: port, to_port: 0, kind: 1, reserved: [0; 5] };
        let (edges, mut node) = (after.iter().map(edge).collect::<Vec<_>>(), ptr::null_mut());
        call!(
            "cuGraphAddNode", &raw mut node => *mut Handle, self.handle => Handle,
            after.as_ptr() => *const Handle, edges.as_ptr() => *const Edge, after.len() => usize,
            &raw const parameters => *const Parameters
        )?;
        Ok(Node(node))
    }

    /// Returns what launches the kernels.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn instantiate(&self) -> Result<Executable<'p>, Code> {
        let mut handle = ptr::null_mut();
        call!(
            "cuGraphInstantiateWithFlags", &raw mut handle => *mut Handle, self.handle => Handle, 0 => u64
        )?;
        Ok(Executable { handle, program: PhantomData })
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        let _ = call!("cuGraphDestroy", self.handle => Handle);
    }
}

fn handles(nodes: &[Node]) -> Vec<Handle> {
    nodes.iter().map(|node| node.0).collect()
}

fn one_thread(kernel: Kernel<'_>, pointers: &[*const u8]) -> Call {
    let (function, parameters) = (kernel.function, pointers.as_ptr());
    Call { function, grid: [1; 3], block: [1; 3], shared: 0, parameters, extra: ptr::null() }
}

/// A graph that can be launched.
#[derive(Debug)]
pub struct Executable<'p> {
    handle: Handle,
    program: PhantomData<&'p Program>,
}

impl Executable<'_> {
    /// Runs the kernels.
    ///
    /// # Errors
    /// One of them does something that is an error on a GPU.
    pub fn launch(&self) -> Result<(), Code> {
        call!("cuGraphLaunch", self.handle => Handle, STREAM => Handle)
    }
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        let _ = call!("cuGraphExecDestroy", self.handle => Handle);
    }
}

/// Numbers in the device's memory.
#[derive(Debug)]
pub struct Numbers {
    place: u64,
    count: usize,
}

impl Numbers {
    /// Copies numbers to the device.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(numbers: &[u32]) -> Result<Self, Code> {
        let mut copied = Self { place: 0, count: numbers.len() };
        let bytes = size_of_val(numbers);
        call!("cuMemAlloc", &raw mut copied.place => *mut u64, bytes => usize)?;
        call!(
            "cuMemcpyHtoDAsync", copied.place => u64, numbers.as_ptr().cast() => *const c_void,
            bytes => usize, STREAM => Handle
        )?;
        Ok(copied)
    }

    /// Returns where they are.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Copies them back.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn read(&self) -> Result<Vec<u32>, Code> {
        let mut numbers = vec![0_u32; self.count];
        copy_back(&mut numbers, self.place)?;
        Ok(numbers)
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        let _ = call!("cuMemFreeAsync", self.place => u64, STREAM => Handle);
    }
}
