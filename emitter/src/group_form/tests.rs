use mlxcel_models::{Expr, StoredTensor};

use super::*;

/// Returns a weight with 512 inputs, whose scales are the stored tensor 1, and numbers the tensor 0.
fn storage(bits: usize, signed: bool, size: usize, scale: Dtype) -> (Storage, Expr) {
    let tensor =
        |name: &str, dtype, columns| StoredTensor { name: name.into(), dtype, shape: vec![8, columns] };
    let scales = Expr::Stored(1).floats();
    let coding = Coding {
        codes: Expr::Stored(0).integers(),
        numbers: Numbers::Integers { bits, signed },
        group: [1, size],
        column_groups: None,
        scales: OfGroups::Numbers(scales.clone()),
        zeros: None,
        minima: None,
        transposed: false,
    };
    let tensors = vec![tensor("w", Dtype::I8, 512), tensor("s", scale, 512 / size)];
    (Storage { tensors, coding: Some(coding), order: None }, scales)
}

/// Returns the name of the form that holds a weight after a change.
fn held((mut storage, scales): (Storage, Expr), change: impl FnOnce(&mut Coding, Expr)) -> Option<String> {
    change(storage.coding.as_mut().unwrap(), scales);
    GroupForm::holding(&storage, 512, false, KernelsOf::Cpus).map(GroupForm::name)
}

/// Returns steps of so many bits, whose units are the scales.
fn steps(bits: usize, signed: bool, in_block: usize, sizes: Expr) -> OfGroups {
    let numbers = Numbers::Integers { bits, signed };
    OfGroups::Steps { steps: Expr::Stored(0).integers(), numbers, sizes, in_block }
}

#[test]
fn codes_with_scales_are_held_by_the_narrowest_kernel() {
    let symmetric = |bits, size, dtype| held(storage(bits, true, size, dtype), |_, _| {});
    assert_eq!(symmetric(4, 32, Dtype::F16).as_deref(), Some("q4_symmetric32_f16"));
    assert_eq!(GroupForm::Q4_0.name(), "q4_symmetric32_f16");
    assert_eq!(symmetric(3, 128, Dtype::BF16).as_deref(), Some("q3_zeros128_bf16"));
    assert_eq!(symmetric(6, 512, Dtype::F32).as_deref(), Some("q8_symmetric512_f32"));
    let zeros =
        |bits| held(storage(bits, false, 64, Dtype::F16), |coding, scales| coding.zeros = Some(scales));
    assert_eq!(zeros(5).as_deref(), Some("q8_zeros64_f16"));
    let minima = held(storage(6, false, 64, Dtype::BF16), |coding, scales| {
        coding.minima = Some(OfGroups::Numbers(scales));
    });
    assert_eq!(minima.as_deref(), Some("q6_minima64_bf16"));
    assert_eq!(zeros(3).as_deref(), Some("q3_zeros64_f16"));
    let (of_two, _) = storage(2, false, 64, Dtype::F16);
    let zero_of_one = |coding: &Coding| Coding { zeros: Some(Expr::number(1.0)), ..coding.clone() };
    let of_two = Storage { coding: of_two.coding.as_ref().map(zero_of_one), ..of_two };
    let by = |kernels| GroupForm::holding(&of_two, 512, false, kernels).map(GroupForm::name);
    assert_eq!(by(KernelsOf::Cpus).as_deref(), Some("q2_zeros64_f16"));
    assert_eq!(by(KernelsOf::Gpus).as_deref(), Some("q4_zeros64_f16"));
    // The middle of unsigned codes is a zero point of symmetric ones.
    let middle =
        |zero| held(storage(4, false, 32, Dtype::F16), |coding, _| coding.zeros = Some(Expr::number(zero)));
    assert_eq!(middle(8.0).as_deref(), Some("q4_symmetric32_f16"));
    assert_eq!(middle(7.0).as_deref(), Some("q4_zeros32_f16"));
}

#[test]
fn steps_of_units_are_held_as_superblocks() {
    let superblocks = |bits, in_block| {
        held(storage(bits, false, 32, Dtype::F16), |coding, units| {
            let below = units.clone().times(Expr::number(-1.0));
            coding.scales = steps(6, false, in_block, units);
            coding.minima = Some(steps(6, false, in_block, below));
        })
    };
    assert_eq!(superblocks(4, 8).as_deref(), Some("q4_superblocks"));
    assert_eq!(superblocks(5, 8).as_deref(), Some("q5_superblocks"));
    // Others have numbers of their own for each group.
    assert_eq!(superblocks(6, 8).as_deref(), Some("q6_minima32_f32"));
    assert_eq!(superblocks(4, 4).as_deref(), Some("q4_minima32_f32"));
    let halves = |steps: &dyn Fn(Expr) -> OfGroups, dtype| {
        held(storage(6, true, 16, dtype), |coding, units| coding.scales = steps(units))
    };
    assert_eq!(halves(&|units| steps(8, true, 16, units), Dtype::F16).as_deref(), Some("q6_halves"));
    let narrow = |size| {
        held(storage(3, true, size, Dtype::F16), |coding, units| coding.scales = steps(6, true, 16, units))
    };
    assert_eq!(narrow(16).as_deref(), Some("q3_halves"));
    let with_minima = |bits| {
        held(storage(2, false, 16, Dtype::F16), |coding, units| {
            coding.scales = steps(bits, false, 16, units.clone());
            coding.minima = Some(steps(bits, false, 16, units));
        })
    };
    assert_eq!(with_minima(4).as_deref(), Some("q2_half_minima"));
    assert_eq!(with_minima(5), None);
    // An unsigned byte does not fit a signed one, and units are half precision.
    assert_eq!(halves(&|units| steps(8, false, 16, units), Dtype::F16), None);
    assert_eq!(halves(&|units| steps(8, true, 16, units), Dtype::F32), None);
}

#[test]
fn codes_that_look_up_known_numbers_are_held_as_they_are() {
    let looked_up = |numbers: &[f32], units: bool| {
        let list = Expr::Constant(numbers.to_vec());
        held(storage(4, true, 32, Dtype::F16), |coding, sizes| {
            coding.codes = Expr::Stored(0).unpack(4).lookup(list);
            coding.numbers = Numbers::Floats { bits: 4 };
            if units {
                coding.scales = steps(6, true, 8, sizes);
            }
        })
    };
    let [e2m1, iq4] = List::ALL.map(List::numbers);
    // CPUs' kernels read powers of two as scales of this list.
    assert_eq!(looked_up(&e2m1, false).as_deref(), Some("q5_symmetric32_f16"));
    let powers = Expr::Constant(vec![0.5, 1.0, 2.0]);
    let with_powers = held(storage(4, true, 32, Dtype::U8), |coding, steps| {
        coding.codes = Expr::Stored(0).unpack(4).lookup(Expr::Constant(e2m1.to_vec()));
        coding.numbers = Numbers::Floats { bits: 4 };
        coding.scales = OfGroups::Numbers(steps.lookup(powers));
    });
    assert_eq!(with_powers.as_deref(), Some("q4_e2m1_32_f8_e8m0"));
    assert_eq!(looked_up(&iq4, false).as_deref(), Some("q4_iq4_32_f16"));
    assert_eq!(looked_up(&iq4, true).as_deref(), Some("q4_iq4_blocks"));
    // No kernel has this list, but one reads integers of 5 bits.
    let mut others = e2m1;
    others[7] = 10.0;
    assert_eq!(looked_up(&others, false).as_deref(), Some("q5_symmetric32_f16"));
}

/// Returns floating-point codes in groups, whose scales are made of a stored tensor.
fn floats(group: [usize; 2], numbers: Expr, scales: impl Fn(Expr) -> Expr) -> Storage {
    let (mut storage, _) = storage(8, true, 128, Dtype::BF16);
    let coding = storage.coding.as_mut().unwrap();
    coding.codes = Expr::Stored(0).unpack(8).lookup(numbers);
    (coding.numbers, coding.group) = (Numbers::Floats { bits: 8 }, group);
    coding.scales = OfGroups::Numbers(scales(Expr::Stored(1)));
    storage
}

fn name_of_form(storage: &Storage, columns: usize, kernels: KernelsOf) -> Option<String> {
    GroupForm::holding(storage, columns, false, kernels).map(GroupForm::name)
}

#[test]
fn floats_of_eight_bits_are_held_in_blocks_of_any_size() {
    let e4m3 = |group| floats(group, FloatCodes::E4m3.list(), Expr::floats);
    let blocks = e4m3([128, 128]);
    assert_eq!(name_of_form(&blocks, 500, KernelsOf::Cpus).as_deref(), Some("q8_e4m3_128_bf16"));
    assert_eq!(name_of_form(&blocks, 500, KernelsOf::Gpus), None);
    assert_eq!(name_of_form(&blocks, 576, KernelsOf::Gpus).as_deref(), Some("q8_e4m3_128_bf16"));
    let of_tensor = e4m3([8, 512]);
    assert_eq!(name_of_form(&of_tensor, 512, KernelsOf::Cpus).as_deref(), Some("q8_e4m3_512_bf16"));
    let others = Expr::Constant((0u8..=255).map(f32::from).map(f32::sqrt).collect());
    assert_eq!(name_of_form(&floats([1, 128], others, Expr::floats), 512, KernelsOf::Cpus), None);
}

#[test]
fn floats_of_four_bits_are_held_in_whole_groups() {
    let held = |codes: FloatCodes, size, columns| {
        name_of_form(&floats([1, size], codes.list(), Expr::floats), columns, KernelsOf::Cpus)
    };
    assert_eq!(held(FloatCodes::Nf4, 64, 512).as_deref(), Some("q4_nf4_64_bf16"));
    assert_eq!(held(FloatCodes::Fp4, 64, 512).as_deref(), Some("q4_fp4_64_bf16"));
    assert_eq!(held(FloatCodes::E2m1, 16, 512).as_deref(), Some("q4_e2m1_floats_16_bf16"));
    let of_16 = floats([1, 16], FloatCodes::E2m1.list(), Expr::floats);
    assert_eq!(name_of_form(&of_16, 512, KernelsOf::Gpus), None);
    // A block would be of two rows.
    assert_eq!(held(FloatCodes::Nf4, 64, 96), None);
}

#[test]
fn scales_in_e4m3_stay_so() {
    let unit = || Expr::Stored(0).floats().reshape(&[1, 1]);
    let scales = |codes: Expr| codes.unpack(8).lookup(FloatCodes::E4m3.list()).divided_by(unit());
    let nvfp4 = floats([1, 16], FloatCodes::E2m1.list(), scales);
    let held = |storage, columns, kernels| GroupForm::holding(storage, columns, false, kernels).unwrap();
    let [halves, of_gpus] = [KernelsOf::Cpus, KernelsOf::Gpus].map(|kernels| held(&nvfp4, 512, kernels));
    assert_eq!([halves, of_gpus].map(GroupForm::name), ["q4_e2m1_halves", "q4_e2m1_floats_16_f8_e4m3"]);
    // Two blocks of 16 groups with a unit of 4 bytes.
    assert_eq!([halves, of_gpus].map(|form| form.row_bytes(512)), [512 / 2 + 2 * (16 + 4); 2]);
    // Half a group is left over, or groups are whole.
    assert_eq!(held(&nvfp4, 528, KernelsOf::Cpus).name(), "q4_e2m1_floats_16_f8_e4m3");
    let of_32 = floats([1, 32], FloatCodes::E2m1.list(), scales);
    assert_eq!(held(&of_32, 512, KernelsOf::Cpus).name(), "q4_e2m1_floats_32_f8_e4m3");
}

#[test]
fn what_no_kernel_holds_exactly_is_decoded() {
    type Change = fn(&mut Coding, Expr);
    let changes: [Change; 5] = [
        |coding, _| coding.numbers = Numbers::Floats { bits: 4 },
        |coding, _| coding.group = [2, 32],
        |coding, _| coding.group = [1, 16],
        |coding, index| coding.column_groups = Some(index),
        |coding, _| coding.transposed = true,
    ];
    for change in changes {
        assert_eq!(held(storage(4, true, 32, Dtype::F16), change), None);
    }
    let (plain, _) = storage(4, true, 32, Dtype::F16);
    assert_eq!(GroupForm::holding(&Storage { coding: None, ..plain }, 512, false, KernelsOf::Cpus), None);
}
