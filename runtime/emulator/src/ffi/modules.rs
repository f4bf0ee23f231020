//! Modules, their kernels, and launches.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    slice,
    sync::{Mutex, PoisonError},
};

use super::{
    allocations::MEMORY,
    codes::{
        INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, LAUNCH_FAILED, NOT_FOUND, SUCCESS, UNSUPPORTED_PTX, give,
    },
    contexts::{self, Context},
    counts, primary,
    ranges::{Allocation, Kind},
    schedule,
    settings::SETTINGS,
    streams::{Stream, context_of},
};
use crate::{
    machine::{Dimensions, Launch, Overlap, SHARED_OPT_IN},
    ptx::Module,
};

/// Returns the address of a function.
pub(super) fn function(name: &str) -> Option<*const c_void> {
    Some(match name {
        "cuModuleLoadDataEx" => load as *const c_void,
        "cuModuleUnload" => unload as *const c_void,
        "cuModuleGetFunction" => kernel as *const c_void,
        "cuModuleGetGlobal" => global as *const c_void,
        "cuFuncGetModule" => module_of as *const c_void,
        "cuFuncGetName" => name_of as *const c_void,
        "cuFuncSetAttribute" => set_attribute as *const c_void,
        "cuLaunchKernel" => launch as *const c_void,
        _ => return None,
    })
}

/// A kernel's handle. It lives as long as its module.
#[derive(Debug)]
pub(super) struct Function {
    module: *const Loaded,
    name: String,
    c_name: CString,
    /// The most bytes of dynamic shared memory that it was allowed.
    shared_allowed: Mutex<Option<usize>>,
}

/// A module of a context, with the handles of its kernels.
#[derive(Debug)]
struct Loaded {
    context: &'static Context,
    module: Module,
    functions: Vec<Function>,
}

/// Reads a module for the current context.
fn parsed(text: &str) -> Result<(&'static Context, Module), c_int> {
    let context = contexts::current()?;
    let module = Module::parse(text).map_err(|error| {
        eprintln!("cuda emulator: {error}");
        INVALID_PTX
    })?;
    if module.ptx() > SETTINGS.newest_ptx() {
        return Err(UNSUPPORTED_PTX);
    }
    let (major, minor) = SETTINGS.capability(context.device);
    if module.capability() > major * 10 + minor { Err(INVALID_PTX) } else { Ok((context, module)) }
}

unsafe extern "C" fn load(
    handle: *mut *const Loaded,
    text: *const c_char,
    _count: c_uint,
    _options: *const c_void,
    _values: *const c_void,
) -> c_int {
    if text.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: PTX is a C string.
    let text = unsafe { CStr::from_ptr(text) };
    let (context, module) = match parsed(&text.to_string_lossy()) {
        Ok(found) => found,
        Err(error) => return error,
    };
    for (place, bytes) in module.ranges() {
        // SAFETY: the module's variables live until it is unloaded.
        unsafe {
            MEMORY
                .add(place, Allocation { bytes, padded: bytes, kind: Kind::Variable, context: Some(context) })
        };
    }
    let names: Vec<_> = module.kernels().map(ToOwned::to_owned).collect();
    let loaded = Box::into_raw(Box::new(Loaded { context, module, functions: Vec::new() }));
    let functions = names
        .into_iter()
        // A name in PTX has no zeros.
        .map(|name| Function {
            module: loaded,
            c_name: CString::new(&*name).unwrap_or_default(),
            name,
            shared_allowed: Mutex::new(None),
        })
        .collect();
    // SAFETY: it was just made, and nobody else knows of it.
    unsafe { (*loaded).functions = functions };
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, loaded.cast_const()) }
}

unsafe extern "C" fn unload(handle: *mut Loaded) -> c_int {
    if handle.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a handle of `load`.
    if let Err(error) = unsafe { (*handle).context.check() } {
        return error;
    }
    // SAFETY: the caller uses it no more.
    let loaded = unsafe { Box::from_raw(handle) };
    for (place, _) in loaded.module.ranges() {
        MEMORY.remove(place, Kind::Variable);
    }
    SUCCESS
}

/// Returns a module and the name of a part of it, unless one of both is null.
///
/// # Safety
/// The module was loaded, and the name is a C string, where they are not null. Both stay as long as they are used.
unsafe fn named<'m>(module: *const Loaded, name: *const c_char) -> Option<(&'m Loaded, &'m CStr)> {
    // SAFETY: the caller says so.
    unsafe { Some((module.as_ref()?, name.as_ref().map(|name| CStr::from_ptr(name))?)) }
}

unsafe extern "C" fn kernel(
    handle: *mut *const Function,
    module: *const Loaded,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller gives a handle of `load` and a C string.
    let Some((loaded, name)) = (unsafe { named(module, name) }) else { return INVALID_VALUE };
    let found = loaded.functions.iter().find(|function| name.to_bytes() == function.name.as_bytes());
    let Some(found) = found else { return NOT_FOUND };
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, std::ptr::from_ref(found)) }
}

unsafe extern "C" fn name_of(name: *mut *const c_char, function: *const Function) -> c_int {
    // SAFETY: the caller gives a handle of `kernel`, or null.
    let Some(function) = (unsafe { function.as_ref() }) else { return INVALID_VALUE };
    // SAFETY: the caller gives a place for a C string, which lives as long as the module.
    unsafe { give(name, function.c_name.as_ptr()) }
}

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, and `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`, a hint.
const MAX_DYNAMIC: c_int = 8;
const CARVEOUT: c_int = 9;

unsafe extern "C" fn set_attribute(function: *const Function, attribute: c_int, value: c_int) -> c_int {
    // SAFETY: the caller gives a handle of `kernel`, or null.
    let Some(function) = (unsafe { function.as_ref() }) else { return INVALID_VALUE };
    // SAFETY: its module is loaded.
    let kernel = unsafe { (*function.module).module.kernel(&function.name) };
    let (Some(kernel), Ok(value)) = (kernel, usize::try_from(value)) else { return INVALID_VALUE };
    match attribute {
        MAX_DYNAMIC if value + kernel.shared_needed <= SHARED_OPT_IN => {
            *function.shared_allowed.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            SUCCESS
        }
        CARVEOUT => SUCCESS,
        _ => INVALID_VALUE,
    }
}

unsafe extern "C" fn module_of(handle: *mut *const Loaded, function: *const Function) -> c_int {
    // SAFETY: the caller gives a handle of `kernel`, or null.
    let Some(function) = (unsafe { function.as_ref() }) else { return INVALID_VALUE };
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, function.module) }
}

unsafe extern "C" fn global(
    place: *mut u64,
    bytes: *mut usize,
    module: *const Loaded,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller gives a handle of `load` and a C string.
    let Some((loaded, name)) = (unsafe { named(module, name) }) else { return INVALID_VALUE };
    let Some((found, size)) = loaded.module.global(&name.to_string_lossy()) else { return NOT_FOUND };
    // SAFETY: the caller gives places for both, or null for what is not wanted.
    unsafe {
        if !bytes.is_null() {
            bytes.write(size);
        }
        if !place.is_null() {
            place.write(found);
        }
    }
    SUCCESS
}

/// A kernel that is asked for. It has the leading fields of `CUDA_KERNEL_NODE_PARAMS`, which all versions of that share.
#[repr(C)]
pub(super) struct Call {
    pub(super) function: *const Function,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) parameters: *const *const u8,
    pub(super) extra: *const *const c_void,
}

/// A kernel with all that a launch of it needs.
#[derive(Clone)]
pub(super) struct Prepared {
    function: *const Function,
    grid: Dimensions,
    block: Dimensions,
    shared: usize,
    /// The bytes of each parameter.
    parameters: Vec<Vec<u8>>,
}

impl Call {
    /// Copies the parameters; returns an error's number if something is missing.
    ///
    /// # Safety
    /// The function is of a module that is loaded, and there is a pointer to each of its parameters, where they are not null.
    pub(super) unsafe fn prepare(&self) -> Result<Prepared, c_int> {
        if self.function.is_null() || self.parameters.is_null() || !self.extra.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller says so.
        let sizes = unsafe { sizes(self.function) }.ok_or(NOT_FOUND)?;
        let values = sizes.enumerate().map(|(index, size)| {
            // SAFETY: the caller says so.
            let value = unsafe { *self.parameters.add(index) };
            // SAFETY: the caller says so of what is not null.
            (!value.is_null()).then(|| unsafe { slice::from_raw_parts(value, size) }.to_vec())
        });
        Ok(Prepared {
            function: self.function,
            grid: Dimensions(self.grid),
            block: Dimensions(self.block),
            shared: self.shared as usize,
            parameters: values.collect::<Option<_>>().ok_or(INVALID_VALUE)?,
        })
    }
}

/// Returns the sizes of a kernel's parameters.
///
/// # Safety
/// It is of a module that is loaded, and stays so as long as they are used.
pub(super) unsafe fn sizes<'m>(function: *const Function) -> Option<impl Iterator<Item = usize> + 'm> {
    // SAFETY: the caller says so.
    let (name, module) = unsafe { (&(*function).name, &(*(*function).module).module) };
    Some(module.kernel(name)?.parameters.iter().map(|&(_, size)| size))
}

impl Prepared {
    /// Returns whether the kernel's module was loaded for a context.
    pub(super) fn is_of(&self, context: &Context) -> bool {
        // SAFETY: whoever prepared it says that its module is loaded.
        std::ptr::eq(unsafe { (*(*self.function).module).context }, context)
    }

    /// Runs the kernel to its end. `call` is what it is noted as, and `overlap` says which others may run at the same time.
    ///
    /// # Safety
    /// Its module is loaded.
    pub(super) unsafe fn run(&self, call: &str, overlap: Option<Overlap<'_>>) -> c_int {
        // SAFETY: the caller says so.
        let (name, module) = unsafe { (&(*self.function).name, &(*(*self.function).module).module) };
        counts::note(format_args!("{call} {name}"));
        // SAFETY: the caller says so.
        let allowed = unsafe { &(*self.function).shared_allowed };
        let schedule = schedule::next();
        let launch = Launch {
            kernel: name,
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            shared_allowed: *allowed.lock().unwrap_or_else(PoisonError::into_inner),
            parameters: self.parameters.clone(),
            overlap,
            schedule,
        };
        // SAFETY: the caller says so.
        let context = unsafe { (*(*self.function).module).context };
        match launch.run_on(module, &MEMORY.ranges_of(|found| found.is_reached_by(context))) {
            Ok(()) => SUCCESS,
            Err(error) => {
                eprintln!("cuda emulator: {error}");
                schedule::tell(&schedule);
                LAUNCH_FAILED
            }
        }
    }
}

unsafe extern "C" fn launch(
    function: *const Function,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: *const Stream,
    parameters: *const *const u8,
    extra: *const *const c_void,
) -> c_int {
    // SAFETY: the caller gives a handle of a stream, or null.
    let context = match unsafe { context_of(stream) } {
        Ok(context) => context,
        Err(error) => return error,
    };
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    let call = Call { function, grid, block, shared, parameters, extra };
    // SAFETY: the caller gives a handle of `kernel`, whose module is loaded, and a pointer to each parameter.
    let kernel = match unsafe { call.prepare() } {
        Ok(kernel) => kernel,
        Err(error) => return error,
    };
    if !kernel.is_of(context) {
        return INVALID_HANDLE;
    }
    // SAFETY: its module is loaded.
    primary::launch(context, || unsafe { kernel.run("cuLaunchKernel", None) })
}
