//! Objects that stay on the thread that made them: programs and their functions.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    thread::{self, ThreadId},
};

use mlxcel_runtime::{Function, LoadedProgram};

use crate::{errors::Problem, handles::object};

/// What the handle of a program says: where the program is.
#[derive(Debug)]
pub(crate) struct ProgramPlace {
    thread: ThreadId,
    key: u64,
}

/// What the handle of a function says.
#[derive(Debug)]
pub(crate) struct FunctionPlace {
    program: ProgramPlace,
    key: u64,
}

object!(ProgramPlace, 6, "a program");

/// A program of this thread, with its functions.
struct Local {
    // Before the program.
    functions: HashMap<u64, Function>,
    program: LoadedProgram,
}

thread_local! {
    static PROGRAMS: RefCell<HashMap<u64, Local>> = RefCell::default();
}

fn next_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl ProgramPlace {
    /// Keeps a program on this thread.
    pub(crate) fn keep(program: LoadedProgram) -> Self {
        let key = next_key();
        let local = Local { functions: HashMap::new(), program };
        PROGRAMS.with_borrow_mut(|programs| programs.insert(key, local));
        Self { thread: thread::current().id(), key }
    }

    /// Uses the program.
    ///
    /// # Errors
    /// This is another thread, or the program was closed.
    fn with<R>(&self, work: impl FnOnce(&mut Local) -> Result<R, Problem>) -> Result<R, Problem> {
        if self.thread != thread::current().id() {
            let text = "found a call on another thread, expected the one that loaded the program\n\
                        hint: load the program on each thread that uses it";
            return Err(Problem::Thread(text.into()));
        }
        PROGRAMS.with_borrow_mut(|programs| {
            let closed =
                Problem::Handle { found: "a function of a closed program", expected: "an open program" };
            work(programs.get_mut(&self.key).ok_or(closed)?)
        })
    }

    /// Prepares a function.
    pub(crate) fn function(&self, name: Option<&str>) -> Result<FunctionPlace, Problem> {
        let key = next_key();
        self.with(|local| {
            let names: Vec<&str> =
                local.program.functions().iter().map(|entry| entry.function_name()).collect();
            let name = name.map_or_else(|| default_name(&names), |name| Ok(name.to_owned()))?;
            let function = local.program.function(&name)?;
            local.functions.insert(key, function);
            Ok(())
        })?;
        Ok(FunctionPlace { program: Self { thread: self.thread, key: self.key }, key })
    }

    /// Closes the program and its functions.
    ///
    /// # Errors
    /// This is another thread.
    pub(crate) fn close(&self) -> Result<(), Problem> {
        self.with(|_| Ok(()))?;
        drop(PROGRAMS.with_borrow_mut(|programs| programs.remove(&self.key)));
        Ok(())
    }
}

/// Returns the function that is meant if none is named.
fn default_name(names: &[&str]) -> Result<String, Problem> {
    match names {
        [only] => Ok((*only).to_owned()),
        _ if names.contains(&"main") => Ok("main".to_owned()),
        _ => {
            let (count, names) = (names.len(), names.join(", "));
            Err(mlxcel_runtime::Error::from(mlxcel_runtime::ProgramError::SeveralFunctions { count, names })
                .into())
        }
    }
}

impl FunctionPlace {
    /// Uses the function.
    ///
    /// # Errors
    /// This is another thread, or the function or its program was closed.
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut Function) -> Result<R, Problem>,
    ) -> Result<R, Problem> {
        self.program.with(|local| {
            let closed = Problem::Handle { found: "a handle that was closed", expected: "a function" };
            work(local.functions.get_mut(&self.key).ok_or(closed)?)
        })
    }

    /// Closes the function.
    ///
    /// # Errors
    /// This is another thread.
    pub(crate) fn close(&self) -> Result<(), Problem> {
        self.program.with(|local| {
            local.functions.remove(&self.key);
            Ok(())
        })
    }
}
