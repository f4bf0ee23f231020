//! Functions of a module, with the arguments and results that the manifest lists.

use mlxcel_artifacts::entry::{ArgumentKind, ArgumentSpec, Entry, MODULE_NAME, ResultKind};

use crate::{
    error::Error,
    ffi::{ArgumentType, Call, Input, Module, Tensor},
};

/// The function of an entry point.
pub(super) struct Function {
    entry: Entry,
    call: Call,
}

impl Function {
    /// Finds the function of `entry` and prepares to call it. It takes arguments of the kinds in `passed` on the device.
    pub(super) fn new(module: &Module, entry: &Entry, passed: &[ArgumentKind]) -> Result<Self, Error> {
        let name = &entry.name;
        let types = entry.arguments.iter().map(|argument| match passed.contains(&argument.kind) {
            true => ArgumentType::Tensor,
            false => argument_type(argument),
        });
        let types: Vec<_> = types.collect();
        let in_place = entry.role.sizes().is_some_and(|sizes| sizes.in_place);
        let create = if in_place { Call::in_place } else { Call::new };
        let call = create(module, &format!("{MODULE_NAME}.{name}"), &types)
            .map_err(Error::iree(|| format!("prepare {name}")))?;
        Ok(Self { entry: entry.clone(), call })
    }

    /// Returns the entry point.
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Calls the function with its arguments in order, and returns its results in order.
    pub(super) fn call<'i>(
        &mut self,
        inputs: impl IntoIterator<Item = Input<'i>>,
    ) -> Result<Vec<Option<Tensor>>, Error> {
        self.begin(inputs)?;
        self.end()
    }

    /// Begins a call, which [`end`](Self::end) waits for.
    pub(super) fn begin<'i>(&mut self, inputs: impl IntoIterator<Item = Input<'i>>) -> Result<(), Error> {
        self.call.begin(inputs).map_err(Error::iree(|| format!("run {}", self.entry.name)))
    }

    /// Waits for the call that was begun, and returns its results in order.
    pub(super) fn end(&mut self) -> Result<Vec<Option<Tensor>>, Error> {
        let mut results = Vec::new();
        self.call.end(&mut results).map_err(Error::iree(|| format!("run {}", self.entry.name)))?;
        Ok(results.into_iter().map(Some).collect())
    }

    /// Returns whether a call may be begun before that of another function has ended.
    pub(super) fn is_replayed(&self) -> bool {
        self.call.is_replayed()
    }

    /// Takes the result of this kind out of `results`.
    pub(super) fn take(&self, kind: ResultKind, results: &mut [Option<Tensor>]) -> Result<Tensor, Error> {
        // A valid manifest lists the kind. A module that differs from its manifest may return fewer results.
        let index = self.entry.results.iter().position(|result| result.kind == kind);
        let found = index.and_then(|index| results.get_mut(index)).and_then(Option::take);
        found.ok_or_else(|| {
            let (name, found) = (&self.entry.name, results.len());
            Error::Unsupported(format!("{name} returns {found} results, expected {kind} among them"))
        })
    }
}

/// Returns how a function gets an argument. What is larger than some numbers stays on the device.
fn argument_type(argument: &ArgumentSpec) -> ArgumentType<'_> {
    match argument.kind {
        ArgumentKind::End => ArgumentType::Number,
        ArgumentKind::Logits
        | ArgumentKind::NextToken
        | ArgumentKind::Cache { .. }
        | ArgumentKind::Input
        | ArgumentKind::State { .. }
        | ArgumentKind::Storage { .. } => ArgumentType::Tensor,
        _ => ArgumentType::Copied(argument.dtype, &argument.shape),
    }
}
