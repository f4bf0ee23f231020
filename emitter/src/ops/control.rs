//! Control flow, numbers on the host, barriers and globals.

use safetensors::Dtype;

use crate::{
    global::{Global, Init},
    graph::{Graph, HostIndex, Tensor},
    kernels::KernelConstant,
    types::{HostType, TensorType, ValueType},
};

impl Graph {
    /// Repeats `body` on `state` for `i = 0, step, …` below `end`, counted on the host. `body` returns the next state, which has
    /// the same types.
    pub fn for_loop(
        &mut self,
        end: HostIndex,
        step: usize,
        state: &[Tensor],
        body: impl FnOnce(&mut Self, HostIndex, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        const OP: &str = "scf.for";
        let types: Vec<_> = state.iter().map(|&tensor| self.type_of(tensor)).collect();
        if Self::poisoned(state) {
            return vec![Self::poison(); state.len()];
        }
        if step == 0 {
            self.fail(OP, "found step 0, expected at least 1");
            return vec![Self::poison(); state.len()];
        }
        let bounds = [self.host_constant(0), end.0, self.host_constant(step)];
        let index = ValueType::Host(HostType::Index);
        let arguments: Vec<_> = std::iter::once(index).chain(types.iter().cloned().map(Into::into)).collect();
        let body = self.region(&arguments, |g, values| body(g, HostIndex(values[0]), &values[1..]));
        let next: Vec<_> = body.results.iter().map(|&tensor| self.type_of(tensor)).collect();
        if !Self::poisoned(&body.results) && next != types {
            self.fail(OP, format!("found next state {}, expected {}", join(&next), join(&types)));
            return vec![Self::poison(); state.len()];
        }
        let operands: Vec<_> = bounds.into_iter().chain(state.iter().copied()).collect();
        self.op_with_regions(OP, &operands, vec![], vec![body], types.into_iter().map(Into::into).collect())
    }

    /// Returns a number on the host that is opaque to the compiler. Code that differs only in such numbers is compiled once.
    ///
    /// The number is defined at the start of the function, because iree-compile ends a command buffer before each one.
    pub fn host_number(&mut self, value: usize) -> HostIndex {
        if let Some(known) = self.host_numbers.get(&value) {
            return *known;
        }
        let constant = self.host_constant(value);
        let index = vec![ValueType::Host(HostType::Index)];
        let made = self.op_with_regions("util.optimization_barrier", &[constant], vec![], vec![], index)[0];
        self.move_to_start(2, 2 * self.host_numbers.len());
        self.host_numbers.insert(value, HostIndex(made));
        HostIndex(made)
    }

    /// Returns a number on the host as an `i32` scalar on the device.
    pub fn host_scalar(&mut self, index: HostIndex) -> Tensor {
        let number = self.host_i32(index);
        self.op("tensor.from_elements", &[number], vec![], TensorType::new(Dtype::I32, []))
    }

    /// Returns a number on the host in 32 bits, as kernels on GPUs take it.
    pub(super) fn host_i32(&mut self, index: HostIndex) -> Tensor {
        let host = vec![ValueType::Host(HostType::I32)];
        self.op_with_regions("arith.index_cast", &[index.0], vec![], vec![], host)[0]
    }

    /// Returns a constant in 32 bits, as kernels on GPUs take it.
    pub(super) fn host_i32_constant(&mut self, op: &'static str, value: KernelConstant) -> Tensor {
        let Some(bits) = value.word() else {
            return self.fail(op, format!("found {}, expected at most 32 bits", value.attribute()));
        };
        let attributes = vec![("value", format!("{} : i32", bits.cast_signed()))];
        let host = vec![ValueType::Host(HostType::I32)];
        self.op_with_regions("arith.constant", &[], attributes, vec![], host)[0]
    }

    /// Returns a constant on the host.
    pub(crate) fn host_constant(&mut self, value: usize) -> Tensor {
        let attributes = vec![("value", format!("{value} : index"))];
        let index = vec![ValueType::Host(HostType::Index)];
        self.op_with_regions("arith.constant", &[], attributes, vec![], index)[0]
    }

    /// Repeats `body` on `state` while `condition` is true. `body` returns the next state, which has the same types.
    pub fn while_loop(
        &mut self,
        state: &[Tensor],
        condition: impl FnOnce(&mut Self, &[Tensor]) -> Tensor,
        body: impl FnOnce(&mut Self, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        const OP: &str = "stablehlo.while";
        let types: Vec<_> = state.iter().map(|&tensor| self.type_of(tensor)).collect();
        if Self::poisoned(state) {
            return vec![Self::poison(); state.len()];
        }
        let arguments: Vec<_> = types.iter().cloned().map(Into::into).collect();
        let condition = self.region(&arguments, |g, values| vec![condition(g, values)]);
        let body = self.region(&arguments, body);
        let truth = TensorType::new(Dtype::BOOL, []);
        if !Self::poisoned(&condition.results) && self.type_of(condition.results[0]) != truth {
            let found = self.type_of(condition.results[0]);
            self.fail(OP, format!("found condition {found}, expected {truth}"));
            return vec![Self::poison(); state.len()];
        }
        let next: Vec<_> = body.results.iter().map(|&tensor| self.type_of(tensor)).collect();
        if !Self::poisoned(&body.results) && next != types {
            self.fail(OP, format!("found next state {}, expected {}", join(&next), join(&types)));
            return vec![Self::poison(); state.len()];
        }
        self.op_with_regions(
            OP,
            state,
            vec![],
            vec![condition, body],
            types.into_iter().map(Into::into).collect(),
        )
    }

    /// Repeats `body` on `state` a number of times. It takes the index, `i32`, and returns the next state, which has the same
    /// types.
    pub fn repeat(
        &mut self,
        times: usize,
        state: &[Tensor],
        body: impl FnOnce(&mut Self, Tensor, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let Ok(times) = i32::try_from(times) else {
            self.fail("stablehlo.while", format!("found {times} times, expected at most {}", i32::MAX));
            return vec![Self::poison(); state.len()];
        };
        let begin = self.scalar(0.0, Dtype::I32);
        let all: Vec<_> = std::iter::once(begin).chain(state.iter().copied()).collect();
        let last = self.while_loop(
            &all,
            |g, state| {
                let end = g.scalar(f64::from(times), Dtype::I32);
                g.lt(state[0], end)
            },
            |g, state| {
                let one = g.scalar(1.0, Dtype::I32);
                let next = g.add(state[0], one);
                let state = body(g, state[0], &state[1..]);
                std::iter::once(next).chain(state).collect()
            },
        );
        last[1..].to_vec()
    }

    /// Returns the results of `then` if the scalar `condition` is true, otherwise those of `otherwise`. Both have the same types.
    pub fn if_else(
        &mut self,
        condition: Tensor,
        then: impl FnOnce(&mut Self) -> Vec<Tensor>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        const OP: &str = "stablehlo.if";
        let then = self.region(&[], |g, _| then(g));
        let otherwise = self.region(&[], |g, _| otherwise(g));
        let types = |g: &Self, tensors: &[Tensor]| tensors.iter().map(|&t| g.type_of(t)).collect::<Vec<_>>();
        let (a, b) = (types(self, &then.results), types(self, &otherwise.results));
        let poisoned = Self::poisoned(&[condition])
            || Self::poisoned(&then.results)
            || Self::poisoned(&otherwise.results);
        if !poisoned && a != b {
            self.fail(OP, format!("found branches {} and {}, expected the same types", join(&a), join(&b)));
        } else if !poisoned && self.type_of(condition) != TensorType::new(Dtype::BOOL, []) {
            let found = self.type_of(condition);
            self.fail(OP, format!("found condition {found}, expected tensor<i1>"));
        } else {
            let results = a.into_iter().map(Into::into).collect();
            return self.op_with_regions(OP, &[condition], vec![], vec![then, otherwise], results);
        }
        vec![Self::poison(); a.len()]
    }

    /// Returns `x`, behind a barrier that the compiler does not fuse across.
    pub fn barrier(&mut self, x: Tensor) -> Tensor {
        let ty = self.type_of(x);
        self.op("util.optimization_barrier", &[x], vec![], ty)
    }

    /// Loads the value of a global.
    pub fn load(&mut self, global: &Global) -> Tensor {
        let attributes = vec![("global", format!("@\"{}\"", global.symbol))];
        self.op("util.global.load", &[], attributes, global.ty.clone())
    }

    /// Stores `value` in a mutable global.
    pub fn store(&mut self, global: &Global, value: Tensor) {
        const OP: &str = "util.global.store";
        let ty = self.type_of(value);
        if !Self::poisoned(&[value]) && ty != global.ty {
            self.fail(OP, format!("found {ty}, expected {} for @{}", global.ty, global.symbol));
            return;
        }
        if matches!(global.init, Init::Parameter { .. }) {
            self.fail(OP, format!("found the parameter @{}, expected a mutable global", global.symbol));
            return;
        }
        let attributes = vec![("global", format!("@\"{}\"", global.symbol))];
        self.op_with_regions(OP, &[value], attributes, vec![], vec![]);
    }
}

fn join(types: &[TensorType]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
