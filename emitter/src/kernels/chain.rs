//! Chains: kernels for CPUs that one dispatch runs one after the other.

use std::collections::BTreeSet;

use mlxcel_artifacts::Traffic;

use super::{
    executable::Executable,
    object::{Object, objects},
};
use crate::types::TensorType;

/// The file with the functions that divide a chain among threads.
const FILE: &str = "chain";

/// Words of 32 bits that count the groups of a link, as in `chain.h`.
pub(crate) const LINK_WORDS: usize = 32;

/// Workgroups of a dispatch. More threads than these are idle, and a workgroup that comes late costs nothing.
pub(super) const WORKGROUPS: usize = 64;

/// Where a tensor of a chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// An operand of the chain.
    Operand(usize),
    /// A result that the chain makes.
    Result(usize),
    /// Memory of the chain, from this byte on.
    Scratch(usize),
}

/// A kernel of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) executable: Executable,
    /// The places of the kernel's operands, then of its results.
    pub(crate) places: Vec<Place>,
    /// The chain's numbers that the kernel takes.
    pub(crate) numbers: Vec<usize>,
}

/// Kernels for CPUs that one dispatch runs one after the other. `kernels/cpu/chain.c` divides them among threads.
///
/// After its operands a chain takes the counters of all its links, `i32`, zero. After its numbers it takes the index of its first
/// link in the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) links: Vec<Link>,
    /// Tensors that come from outside. Kernels may write to those that are a cache.
    pub(crate) operands: Vec<TensorType>,
    /// Tensors that it makes.
    pub(crate) results: Vec<TensorType>,
    /// Bytes of tensors that stay within the chain. There is at least one.
    pub(crate) scratch: usize,
    /// How many numbers from the host its kernels take.
    pub(crate) numbers: usize,
}

/// Where weights are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WeightsPlace {
    pub(super) place: Place,
    pub(super) bytes: usize,
}

impl Chain {
    /// Returns the name of the chain with this index in a module.
    pub(crate) fn entry(index: usize) -> String {
        format!("chain_{index}")
    }

    /// Returns how much a call reads and writes.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        for link in &self.links {
            let Traffic { bytes, position_bytes } = link.executable.traffic();
            sum.bytes += bytes;
            sum.position_bytes += position_bytes;
        }
        sum
    }

    /// Returns the objects that contain its functions.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> {
        let names: BTreeSet<_> = self.object_names().collect();
        objects().filter(move |object| names.contains(&*object.name))
    }

    /// Returns the names of the objects that contain its functions.
    pub(super) fn object_names(&self) -> impl Iterator<Item = String> {
        let own = self.links.first().map(|link| link.executable.isa.object_name(FILE, FILE));
        own.into_iter().chain(self.links.iter().flat_map(|link| link.executable.object_names()))
    }

    /// Returns the weights that the next product after a link reads.
    pub(super) fn weights_after(&self, link: usize) -> Option<WeightsPlace> {
        self.links.iter().skip(link + 1).find_map(|Link { executable, places, .. }| {
            let at = executable.operands.iter().position(|(name, _)| *name == "w")?;
            let ty = &executable.operands[at].1;
            let bytes = ty.elements().saturating_mul(ty.dtype.bitsize()) / 8;
            Some(WeightsPlace { place: *places.get(at)?, bytes })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_words_of_the_header() {
        let header = include_str!("../../kernels/cpu/chain.h");
        assert!(header.contains(&format!("#define CHAIN_LINK_WORDS {LINK_WORDS}\n")));
    }
}
