//! Weights in every form of groups, as a checkpoint may store them.

use mlxcel_models::{Coding, Expr, FloatCodes, Numbers, OfGroups, Storage, StoredTensor, Weight};
use safetensors::Dtype;

use crate::group_form::{GroupForm, Groups, KernelsOf, List, Scales};

/// Returns every form that there is a kernel for.
pub(super) fn group_forms() -> Vec<GroupForm> {
    let groups = Groups { size: 64, dtype: Dtype::BF16 };
    let of_groups = [Scales::Symmetric(groups), Scales::Zeros(groups), Scales::Minima(groups)];
    let floats = FloatCodes::ALL.map(|codes| Scales::Floats(codes, groups));
    let exponents = Groups { dtype: Dtype::F8_E8M0, ..groups };
    let lists = [(List::Iq4, groups), (List::E2m1, exponents)].map(|(list, of)| Scales::Listed(list, of));
    let of_blocks =
        [Scales::Superblocks, Scales::Halves, Scales::HalfMinima, Scales::ListedBlocks, Scales::ListedHalves];
    let all = of_groups.into_iter().chain(floats).chain(lists).chain(of_blocks);
    let of_scales =
        |scales: Scales| scales.widths(KernelsOf::Cpus).iter().map(move |&bits| GroupForm { bits, scales });
    all.flat_map(of_scales).collect()
}

/// Returns a matrix that a form holds, and any other weight as it is.
pub(super) fn stored_in(form: GroupForm, weight: &Weight) -> Storage {
    let &[outputs, inputs] = weight.shape.as_slice() else { return Storage::plain(weight, Dtype::F32) };
    let mut tensors = Vec::new();
    let mut stored = |dtype, columns| {
        let name = format!("{}.{}", weight.name, tensors.len());
        tensors.push(StoredTensor { name, dtype, shape: vec![outputs, columns] });
        Expr::Stored(tensors.len() - 1)
    };
    let list = form.scales.list();
    let signed = list.is_some() || matches!(form.scales, Scales::Symmetric(_) | Scales::Halves);
    let codes = stored(Dtype::I8, inputs);
    let codes = match form.scales {
        Scales::Floats(codes_of, _) => codes.lookup(codes_of.list()),
        Scales::ListedHalves => codes.lookup(FloatCodes::E2m1.list()),
        _ => list.map_or(codes.clone(), |list| codes.lookup(Expr::Constant(list.numbers().to_vec()))),
    };
    let mut steps = |bits, signed, size: usize| OfGroups::Steps {
        steps: stored(Dtype::I8, inputs / size).integers(),
        numbers: Numbers::Integers { bits, signed },
        sizes: stored(Dtype::F16, inputs / 256).floats(),
        in_block: 256 / size,
    };
    let mut of_steps = |count: usize, bits, signed, size| {
        let mut made = (0..count).map(|_| steps(bits, signed, size)).collect::<Vec<_>>().into_iter();
        (made.next(), made.next(), size)
    };
    let (scales, minima, size) = match form.scales {
        Scales::Listed(List::E2m1, Groups { size, .. }) => {
            let powers = (0i16..255).map(|exponent| 2f32.powi(i32::from(exponent) - 127)).collect();
            let scales = stored(Dtype::U8, inputs / size).lookup(Expr::Constant(powers));
            (Some(OfGroups::Numbers(scales)), None, size)
        }
        Scales::Symmetric(Groups { size, dtype })
        | Scales::Zeros(Groups { size, dtype })
        | Scales::Floats(_, Groups { size, dtype })
        | Scales::Listed(_, Groups { size, dtype }) => {
            (Some(OfGroups::Numbers(stored(dtype, inputs / size).floats())), None, size)
        }
        Scales::Minima(Groups { size, dtype }) => {
            let mut number = || Some(OfGroups::Numbers(stored(dtype, inputs / size).floats()));
            (number(), number(), size)
        }
        Scales::Superblocks => of_steps(2, 6, false, 32),
        Scales::Halves => of_steps(1, 8, true, 16),
        Scales::HalfMinima => of_steps(2, 4, false, 16),
        Scales::ListedBlocks => of_steps(1, 6, true, 32),
        Scales::ListedHalves => {
            let codes = stored(Dtype::U8, inputs / 16).lookup(FloatCodes::E4m3.list());
            let unit = stored(Dtype::F32, 1).floats().reshape(&[outputs, 1]);
            (Some(OfGroups::Numbers(codes.times(unit))), None, 16)
        }
    };
    let zeros = matches!(form.scales, Scales::Zeros(_)).then(|| stored(Dtype::U8, inputs / size).floats());
    let are_floats = form.takes_floats() || form.scales == Scales::ListedHalves;
    let coding = Coding {
        codes: if are_floats { codes } else { codes.integers() },
        numbers: if are_floats {
            Numbers::Floats { bits: form.bits }
        } else {
            Numbers::Integers { bits: form.bits, signed }
        },
        group: [1, size],
        column_groups: None,
        scales: scales.unwrap(),
        zeros,
        minima,
        transposed: false,
    };
    Storage { tensors, coding: Some(coding), order: None }
}
