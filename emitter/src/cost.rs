//! What calls of kernels take.

use mlxcel_artifacts::Traffic;

/// What a call of a kernel for GPUs takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) traffic: Traffic,
    /// Multiplications and additions of products.
    pub(crate) operations: u64,
}

/// The calls of a kernel in a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    /// What all of them take.
    pub(crate) cost: Cost,
}

impl Calls {
    /// Adds a call.
    pub(crate) fn add(&mut self, cost: Cost) {
        let Cost { traffic: Traffic { bytes, position_bytes }, operations } = cost;
        let sum = &mut self.cost;
        self.count += 1;
        sum.traffic.bytes += bytes;
        sum.traffic.position_bytes += position_bytes;
        sum.operations += operations;
    }

    /// Returns the traffic of a call, on average.
    pub(crate) fn mean_traffic(&self) -> Traffic {
        let mean = |sum: u64| sum / self.count.max(1);
        let Traffic { bytes, position_bytes } = self.cost.traffic;
        Traffic { bytes: mean(bytes), position_bytes: mean(position_bytes) }
    }
}
