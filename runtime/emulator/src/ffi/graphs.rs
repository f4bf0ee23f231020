//! Graphs of kernels, and their launches.

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr, slice,
};

use super::{
    codes::{INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, give, number},
    contexts, counts,
    modules::{Call, Prepared},
    primary,
    streams::{Stream, context_of},
};
use crate::machine::Written;

/// The version of CUDA since which `cuGraphAddNode` takes the kinds of dependencies.
const WITH_EDGES: c_int = 12030;
/// `CU_GRAPH_NODE_TYPE_KERNEL`.
const KERNEL: c_int = 0;
/// `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
const PROGRAMMATIC: u8 = 1;
/// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`.
const EARLY: u8 = 1;
/// `CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER`.
const LAUNCH_ORDER: u8 = 2;

/// Returns the address of a function, as a version of CUDA has it.
pub(super) fn function(name: &str, version: c_int) -> Option<*const c_void> {
    Some(match name {
        "cuGraphCreate" => create as *const c_void,
        "cuGraphDestroy" => destroy as *const c_void,
        "cuGraphAddKernelNode" => add_kernel as *const c_void,
        "cuGraphAddNode" if version >= WITH_EDGES => add as *const c_void,
        "cuGraphInstantiateWithFlags" => instantiate as *const c_void,
        "cuGraphExecDestroy" => destroy_executable as *const c_void,
        "cuGraphLaunch" => launch as *const c_void,
        _ => return None,
    })
}

/// A kernel of a graph, as it is launched.
#[derive(Clone)]
struct Step {
    kernel: Prepared,
    /// Whether it may begin before those that it depends on have ended.
    begins_early: bool,
}

/// A kernel of a graph.
struct Node {
    step: Step,
    /// The indexes of those that it depends on, which were added before it.
    dependencies: Vec<usize>,
}

/// A graph that kernels are added to.
#[derive(Default)]
struct Graph {
    #[expect(clippy::vec_box, reason = "a node's handle is its address, which has to stay")]
    nodes: Vec<Box<Node>>,
}

impl Graph {
    /// Adds a kernel after others; returns its handle, unless one of those is not of this graph.
    fn add(&mut self, step: Step, dependencies: &[*const Node]) -> Option<*const Node> {
        let index =
            |&handle: &*const Node| self.nodes.iter().rposition(|node| ptr::eq(&raw const **node, handle));
        let dependencies = dependencies.iter().map(index).collect::<Option<_>>()?;
        self.nodes.push(Box::new(Node { step, dependencies }));
        self.nodes.last().map(|node| &raw const **node)
    }

    /// Returns the kernels in an order that their dependencies allow.
    ///
    /// Of those that may be next it is the one that was added last, so that a dependency which is missing changes results.
    fn ordered(&self) -> Vec<Step> {
        let mut is_done = vec![false; self.nodes.len()];
        let mut steps = Vec::with_capacity(self.nodes.len());
        let is_next = |is_done: &[bool], index: usize| {
            !is_done[index] && self.nodes[index].dependencies.iter().all(|&before| is_done[before])
        };
        while let Some(next) = (0..self.nodes.len()).rev().find(|&index| is_next(&is_done, index)) {
            is_done[next] = true;
            steps.push(self.nodes[next].step.clone());
        }
        steps
    }
}

/// A graph that can be launched: it keeps nothing of the one that it was made of.
struct Executable(Vec<Step>);

/// How a kernel depends on another: `CUgraphEdgeData`.
#[repr(C)]
pub(super) struct Edge {
    pub(super) from_port: u8,
    pub(super) to_port: u8,
    pub(super) kind: u8,
    pub(super) reserved: [u8; 5],
}

impl Edge {
    /// Returns whether kernels can depend on each other so.
    fn is_known(&self) -> bool {
        let is_kind = matches!((self.from_port, self.kind), (0, 0) | (EARLY | LAUNCH_ORDER, PROGRAMMATIC));
        is_kind && self.to_port == 0 && self.reserved == [0; 5]
    }

    /// Returns whether it lets a kernel begin before the other has ended.
    fn begins_early(&self) -> bool {
        self.from_port != 0
    }
}

/// The part of `CUgraphNodeParams` that a kernel has.
#[repr(C)]
pub(super) struct Parameters {
    pub(super) kind: c_int,
    pub(super) reserved: [c_int; 3],
    pub(super) kernel: Call,
}

unsafe extern "C" fn create(handle: *mut *mut Graph, flags: c_uint) -> c_int {
    if flags != 0 {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, Box::into_raw(Box::default())) }
}

unsafe extern "C" fn destroy(graph: *mut Graph) -> c_int {
    if graph.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a handle of `create`, and uses it no more.
    drop(unsafe { Box::from_raw(graph) });
    SUCCESS
}

/// Returns what is in an array that is null if it is empty, unless it is null without being so.
///
/// # Safety
/// The array has so many elements if it is not null, and stays as long as it is used.
unsafe fn elements<'a, T>(array: *const T, count: usize) -> Option<&'a [T]> {
    match (array.is_null(), count) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: the caller says so.
        (false, _) => Some(unsafe { slice::from_raw_parts(array, count) }),
    }
}

unsafe extern "C" fn add_kernel(
    handle: *mut *const Node,
    graph: *mut Graph,
    dependencies: *const *const Node,
    count: usize,
    kernel: *const Call,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe { add_step(handle, graph, dependencies, count, kernel, false) }
}

/// Adds a kernel, which may begin early or not.
///
/// # Safety
/// That of `cuGraphAddKernelNode`.
unsafe fn add_step(
    handle: *mut *const Node,
    graph: *mut Graph,
    dependencies: *const *const Node,
    count: usize,
    kernel: *const Call,
    begins_early: bool,
) -> c_int {
    // SAFETY: the caller gives a handle of `create`, as many dependencies as it says, and a kernel, or null.
    let given = unsafe { (graph.as_mut(), elements(dependencies, count), kernel.as_ref()) };
    let (Some(graph), Some(dependencies), Some(kernel)) = given else { return INVALID_VALUE };
    // SAFETY: the caller gives a function of a module that is loaded as long as the graph is used, and its parameters.
    let kernel = match unsafe { kernel.prepare() } {
        Ok(kernel) => kernel,
        Err(code) => return code,
    };
    let Some(added) = graph.add(Step { kernel, begins_early }, dependencies) else { return INVALID_VALUE };
    // SAFETY: the caller gives a place for a handle.
    unsafe { give(handle, added) }
}

unsafe extern "C" fn add(
    handle: *mut *const Node,
    graph: *mut Graph,
    dependencies: *const *const Node,
    edges: *const Edge,
    count: usize,
    parameters: *const Parameters,
) -> c_int {
    // Without edges all are those that wait for everything.
    let edge_count = if edges.is_null() { 0 } else { count };
    // SAFETY: the caller gives an edge for each dependency, or null.
    let edges = unsafe { elements(edges, edge_count) }.unwrap_or_default();
    if parameters.is_null() || !edges.iter().all(Edge::is_known) {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives parameters of the kind that they say.
    let (kind, kernel) = unsafe { ((*parameters).kind, &raw const (*parameters).kernel) };
    if kind != KERNEL {
        return NOT_SUPPORTED;
    }
    // SAFETY: as the caller's.
    unsafe { add_step(handle, graph, dependencies, count, kernel, edges.iter().any(Edge::begins_early)) }
}

unsafe extern "C" fn instantiate(handle: *mut *mut Executable, graph: *const Graph, flags: u64) -> c_int {
    if flags != 0 {
        return NOT_SUPPORTED;
    }
    // SAFETY: the caller gives a handle of `create`, or null.
    let Some(graph) = (unsafe { graph.as_ref() }) else { return INVALID_VALUE };
    let made = || Box::into_raw(Box::new(Executable(graph.ordered())));
    // SAFETY: the caller gives a place for a handle.
    number(contexts::current().map(|_| unsafe { give(handle, made()) }))
}

unsafe extern "C" fn destroy_executable(executable: *mut Executable) -> c_int {
    if executable.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives a handle of `instantiate`, and uses it no more.
    drop(unsafe { Box::from_raw(executable) });
    SUCCESS
}

unsafe extern "C" fn launch(executable: *const Executable, stream: *const Stream) -> c_int {
    // SAFETY: the caller gives a handle of `instantiate`, or null.
    let Some(executable) = (unsafe { executable.as_ref() }) else { return INVALID_VALUE };
    counts::note("cuGraphLaunch");
    // SAFETY: the caller gives a handle of a stream, or null.
    let context = match unsafe { context_of(stream) } {
        Ok(context) => context,
        Err(error) => return error,
    };
    if !executable.0.iter().all(|step| step.kernel.is_of(context)) {
        return INVALID_HANDLE;
    }
    primary::launch(context, || run(executable))
}

/// Runs the kernels of a graph.
fn run(executable: &Executable) -> c_int {
    let written = Written::default();
    let may_overlap = executable.0.iter().any(|step| step.begins_early);
    for Step { kernel, begins_early } in &executable.0 {
        let overlap = may_overlap.then(|| written.next(*begins_early));
        // SAFETY: the modules of a graph's kernels stay loaded as long as it is used.
        let code = unsafe { kernel.run(if *begins_early { "early kernel" } else { "kernel" }, overlap) };
        if code != SUCCESS {
            return code;
        }
    }
    SUCCESS
}
