//! Panels of codes in groups of 32 inputs, and of what the groups have, both as bytes, see `groups.h`. Activations are sums of
//! rows in 8-bit groups.

use mlxcel_models::{FloatCodes, Weight};
use safetensors::Dtype;

use super::{
    float,
    layout::split_into_panels,
    product::{PackedProduct, ProductInputs},
    rows::quantized_rows,
};
use crate::{
    decode::fields,
    form::Activation,
    graph::{Graph, Tensor},
    group_form::{GROUP, GroupForm, INPUTS_OF_4_BITS, SUPERBLOCK, Scales, UNIT_GROUPS},
    kernels::{GatherFloats, GatherGroups, Isa, MatmulOperands},
    layers::{
        builder::Builder,
        gather,
        weights::{Matrix, Weights},
    },
};

/// Groups of a superblock.
const IN_SUPERBLOCK: usize = SUPERBLOCK / GROUP;

/// Inputs that a lane of 32 bits has, one in each byte.
const QUAD: usize = 4;

/// Computes `[batch, tokens, inputs]` to `[batch, tokens, outputs]`.
pub(super) fn product(b: &mut Builder<'_>, isa: Isa, inputs: ProductInputs<'_>, form: GroupForm) -> Tensor {
    let ProductInputs { weights, x, segments } = inputs;
    let &[batch, tokens, _] = b.graph.shape(x) else {
        return x;
    };
    let (outputs, inputs) = weights.size();
    let [w, w_scale] = packed(b, isa, weights, form);
    let x = b.in_column_order(weights, x, form);
    let operands = match form.scales {
        Scales::Floats(codes, groups) => {
            // The last group of a row is even if both are.
            let is_even = |inputs: usize| inputs.is_multiple_of(float::PAIR);
            let in_pairs = codes == FloatCodes::E4m3
                && isa.multiplies_e4m3_pairs()
                && b.precision == Dtype::BF16
                && is_even(inputs)
                && is_even(groups.size);
            if in_pairs {
                let a = b.graph.convert(x, Dtype::BF16);
                MatmulOperands::FloatPairs { form, w, w_scale, a }
            } else {
                MatmulOperands::Floats { form, w, w_scale, a: x }
            }
        }
        _ => {
            let rows = quantized_rows(b, isa, x, Activation::Groups);
            let [a, a_scale, a_sums] = [rows[0], rows[1], rows[2]];
            MatmulOperands::Groups { form, w, w_scale, a, a_scale, a_sums, terms: b.input_terms }
        }
    };
    let lanes = outputs_of_panel(isa, form);
    let panel_bytes = lanes * form.row_bytes(inputs);
    let product = PackedProduct { isa, operands, segments, outputs, inputs, lanes, panel_bytes };
    product.call(b, batch, tokens)
}

/// Looks up rows of a weight: `[…]` to `[…, inputs]` in `f32`.
pub(super) fn rows(b: &mut Builder<'_>, isa: Isa, weight: &Weight, ids: Tensor, form: GroupForm) -> Tensor {
    let [w, w_scale] = packed(b, isa, Weights::Layers(&[weight.into()]), form);
    let (_, width) = Matrix::from(weight).size();
    if form.takes_floats() {
        return gather::call(b, isa, ids, width, |count, out| GatherFloats {
            w,
            w_scale,
            ids,
            count,
            out,
            width,
            format: form.into(),
        });
    }
    gather::call(b, isa, ids, width, |count, out| GatherGroups {
        w,
        w_scale,
        ids,
        count,
        out,
        width,
        format: form.into(),
    })
}

/// Packs weights into panels: blocks of codes, `[panels, groups, bytes]`, and of scales, `[panels, runs, bytes]`.
fn packed(b: &mut Builder<'_>, isa: Isa, weights: Weights<'_>, form: GroupForm) -> [Tensor; 2] {
    let lanes = outputs_of_panel(isa, form);
    let made =
        b.packed_groups(&format!("{}_panels", form.name()), weights, lanes, (form, true), |g, parts| {
            let parts: Vec<_> = parts.iter().map(|&part| split_into_panels(g, part, lanes)).collect();
            let [codes, of_groups @ ..] = parts.as_slice() else { return vec![] };
            let codes = if form.takes_floats() {
                float_codes(g, *codes, form.bits)
            } else {
                blocks_of_codes(g, *codes, form.bits)
            };
            vec![codes, blocks_of_scales(g, of_groups, form)]
        });
    [made[0], made[1]]
}

/// Returns the outputs of a panel. Codes that are floats have as many as floats, see `float_codes.h`.
fn outputs_of_panel(isa: Isa, form: GroupForm) -> usize {
    if form.takes_floats() { float::LANES } else { isa.group_outputs() }
}

/// Returns bytes of codes that are floats, inputs first, for `[panels, lanes, inputs]`.
///
/// Codes of 8 bits are `[panels, inputs, lanes]`, those of 4 bits `[panels, inputs / 4, 32]`, as `f4.h` documents.
fn float_codes(g: &mut Graph, codes: Tensor, bits: usize) -> Tensor {
    let &[panels, _, inputs] = g.shape(codes) else { return codes };
    if bits == 8 {
        let bytes = g.convert(codes, Dtype::I8);
        return g.transpose(bytes, &[0, 2, 1]);
    }
    let blocks = inputs / INPUTS_OF_4_BITS;
    // Lanes are halves of a byte, halves of a block, and columns of a vector of 4.
    let codes = g.reshape(codes, &[panels, 2, 2, 4, blocks, INPUTS_OF_4_BITS]);
    let [low, high] = [0, 1].map(|half| g.slice_dimension(codes, 1, half, half + 1));
    let high = g.with_number(high, 4, Graph::shift_left);
    let bytes = g.or(low, high);
    let bytes = g.reshape(bytes, &[panels, 2, 4, blocks, INPUTS_OF_4_BITS]);
    let bytes = g.convert(bytes, Dtype::I8);
    let bytes = g.transpose(bytes, &[0, 3, 1, 4, 2]);
    g.reshape(bytes, &[panels, blocks, 8 * INPUTS_OF_4_BITS])
}

/// Returns blocks of codes, `[panels, groups, bytes]`, for `[panels, lanes, inputs]`.
fn blocks_of_codes(g: &mut Graph, codes: Tensor, bits: usize) -> Tensor {
    let &[panels, lanes, inputs] = g.shape(codes) else { return codes };
    let groups = inputs / GROUP;
    let quads = g.reshape(codes, &[panels, lanes, groups, GROUP / QUAD, QUAD]);
    if bits == 8 {
        return plane(g, quads);
    }
    if bits < 4 {
        let low = if bits == 2 { quads } else { g.with_number(quads, 3, Graph::and) };
        let mut planes = fields_of(g, low, 2);
        if bits == 3 {
            let high = g.with_number(quads, 2, Graph::shift_right_logical);
            planes.extend(fields_of(g, high, 1));
        }
        return g.concatenate(&planes, 2);
    }
    let half = GROUP / QUAD / 2;
    let low = if bits == 4 { quads } else { g.with_number(quads, 15, Graph::and) };
    let [low, upper] = [0, half].map(|first| g.slice_dimension(low, 3, first, first + half));
    let upper = g.with_number(upper, 4, Graph::shift_left);
    let both = g.or(low, upper);
    let mut planes = vec![plane(g, both)];
    if bits > 4 {
        let high = g.with_number(quads, 4, Graph::shift_right_logical);
        planes.extend(fields_of(g, high, bits - 4));
    }
    if let &[only] = planes.as_slice() { only } else { g.concatenate(&planes, 2) }
}

/// Returns the bytes of blocks that have so many bits of each input, of as many adjacent vectors as a byte has fields for.
fn fields_of(g: &mut Graph, quads: Tensor, bits: usize) -> Vec<Tensor> {
    let &[panels, lanes, groups, vectors, quad] = g.shape(quads) else { return vec![quads] };
    let in_byte = 8 / bits;
    let rows = vectors / in_byte;
    let fields = g.reshape(quads, &[panels, lanes, groups, rows, in_byte, quad]);
    let mut bytes = None;
    for (field, start) in (0..in_byte).zip((0..8).step_by(bits)) {
        let one = g.slice_dimension(fields, 4, field, field + 1);
        let one = g.reshape(one, &[panels, lanes, groups, rows, quad]);
        let one = g.with_number(one, start, Graph::shift_left);
        bytes = Some(bytes.map_or(one, |bytes| g.or(bytes, one)));
    }
    bytes.into_iter().map(|bytes| plane(g, bytes)).collect()
}

/// Returns the bytes of blocks, `[panels, groups, bytes]`, for `[panels, lanes, groups, vectors, QUAD]`.
fn plane(g: &mut Graph, bytes: Tensor) -> Tensor {
    let &[panels, lanes, groups, vectors, quad] = g.shape(bytes) else { return bytes };
    let bytes = g.convert(bytes, Dtype::I8);
    let bytes = g.transpose(bytes, &[0, 2, 3, 1, 4]);
    g.reshape(bytes, &[panels, groups, vectors * lanes * quad])
}

/// Returns blocks of what groups have, bytes `[panels, runs, bytes]`, for `[panels, lanes, …]` of each part.
fn blocks_of_scales(g: &mut Graph, parts: &[Tensor], form: GroupForm) -> Tensor {
    // [panels, …, lanes]
    let parts: Vec<_> = parts.iter().map(|&part| g.transpose(part, &[0, 2, 1])).collect();
    let bytes = match (form.scales, parts.as_slice()) {
        (Scales::Symmetric(_) | Scales::Floats(..) | Scales::Listed(..), &[scales]) => {
            vec![bytes_of(g, scales)]
        }
        (Scales::Floats(..) | Scales::ListedHalves, &[units, steps]) => {
            let steps = by_block(g, steps, UNIT_GROUPS);
            let &[panels, blocks, _, lanes] = g.shape(steps) else { return steps };
            let steps = g.reshape(steps, &[panels, blocks, UNIT_GROUPS * lanes]);
            vec![bytes_of(g, units), g.convert(steps, Dtype::I8)]
        }
        (Scales::Zeros(_), &[scales, zeros]) => vec![bytes_of(g, scales), g.convert(zeros, Dtype::I8)],
        (Scales::Minima(_), &[scales, minima]) => [scales, minima].map(|part| bytes_of(g, part)).to_vec(),
        (Scales::Superblocks, &[unit, least, scales, minima]) => {
            let units = [unit, least].map(|part| bytes_of(g, part));
            let units = g.concatenate_fused(&units, 2);
            let [first, second, last] = six_bits(g, scales, minima);
            vec![units, first, second, last]
        }
        (Scales::HalfMinima, &[unit, least, scales, minima]) => {
            let units = [unit, least].map(|part| bytes_of(g, part));
            let units = g.concatenate_fused(&units, 2);
            let [scales, minima] = [scales, minima].map(|part| by_block(g, part, 2 * IN_SUPERBLOCK));
            let minima = g.with_number(minima, 4, Graph::shift_left);
            let both = g.or(scales, minima);
            let &[panels, blocks, in_block, lanes] = g.shape(both) else { return scales };
            let both = g.reshape(both, &[panels, blocks, in_block * lanes]);
            vec![units, g.convert(both, Dtype::I8)]
        }
        (Scales::Halves | Scales::ListedBlocks, &[unit, scales]) => {
            let scales = g.convert(scales, Dtype::I8);
            let of_halves = form.scales == Scales::Halves;
            let in_block = if of_halves { 2 * IN_SUPERBLOCK } else { IN_SUPERBLOCK };
            let of_blocks = by_block(g, scales, in_block);
            let &[panels, blocks, _, lanes] = g.shape(of_blocks) else { return scales };
            vec![bytes_of(g, unit), g.reshape(of_blocks, &[panels, blocks, in_block * lanes])]
        }
        (_, parts) => {
            vec![g.fail("panels", format!("found {} parts, expected those of {}", parts.len(), form.name()))]
        }
    };
    g.concatenate_fused(&bytes, 2)
}

/// Returns scales and minima of 6 bits, `[panels, groups, lanes]`, as the 12 bytes that a superblock has for each lane: three
/// tensors of 4 each, `[panels, blocks, bytes]`.
fn six_bits(g: &mut Graph, scales: Tensor, minima: Tensor) -> [Tensor; 3] {
    let half = IN_SUPERBLOCK / 2;
    let [scales, minima] = [scales, minima].map(|part| by_block(g, part, IN_SUPERBLOCK));
    let &[panels, blocks, _, lanes] = g.shape(scales) else { return [scales; 3] };
    let split =
        |g: &mut Graph, x: Tensor| [0, half].map(|first| g.slice_dimension(x, 2, first, first + half));
    let [(scales, upper_scales), (minima, upper_minima)] =
        [scales, minima].map(|part| split(g, part)).map(|[lower, upper]| (lower, upper));
    let mut with_high = |lower: Tensor, upper: Tensor| {
        let high = g.with_number(upper, 4, Graph::shift_right_logical);
        let high = g.with_number(high, 6, Graph::shift_left);
        g.or(lower, high)
    };
    let first = [with_high(scales, upper_scales), with_high(minima, upper_minima)];
    let [low_scales, low_minima] =
        [upper_scales, upper_minima].map(|part| g.with_number(part, 15, Graph::and));
    let low_minima = g.with_number(low_minima, 4, Graph::shift_left);
    let last = g.or(low_scales, low_minima);
    [first[0], first[1], last].map(|part| {
        let part = g.reshape(part, &[panels, blocks, half * lanes]);
        g.convert(part, Dtype::I8)
    })
}

/// Returns `[panels, blocks, in_block, lanes]` for `[panels, groups, lanes]`, with zeros in the last block.
fn by_block(g: &mut Graph, x: Tensor, in_block: usize) -> Tensor {
    let &[panels, groups, lanes] = g.shape(x) else { return x };
    let blocks = groups.div_ceil(in_block);
    let x = g.pad_end(x, 1, blocks * in_block);
    g.reshape(x, &[panels, blocks, in_block, lanes])
}

/// Returns bytes, or those of floating-point numbers, the lowest first: `[…, n · bytes]` for `[…, n]`.
fn bytes_of(g: &mut Graph, x: Tensor) -> Tensor {
    if g.dtype(x) == Dtype::I8 {
        return x;
    }
    let size = g.dtype(x).bitsize() / 8;
    let whole = if size == 2 { Dtype::I16 } else { Dtype::I32 };
    let bits = g.bitcast_convert(x, whole);
    let bits = g.convert(bits, Dtype::I32);
    let bytes = fields(g, bits, size, 8);
    g.convert(bytes, Dtype::I8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_form::{Groups, List};

    const LANES: usize = 16;
    const PANELS: usize = 3;

    /// Returns forms of every width with every kind of scales, in groups of this size.
    fn forms(size: usize) -> Vec<GroupForm> {
        let scales = |dtype| {
            let groups = Groups { size, dtype };
            [
                Scales::Symmetric(groups),
                Scales::Zeros(groups),
                Scales::Minima(groups),
                Scales::Listed(List::Iq4, groups),
            ]
        };
        let of_groups = [Dtype::F16, Dtype::BF16, Dtype::F32].into_iter().flat_map(scales);
        let of_blocks = [
            Scales::Superblocks,
            Scales::Halves,
            Scales::HalfMinima,
            Scales::ListedBlocks,
            Scales::ListedHalves,
        ];
        let exponents = Scales::Listed(List::E2m1, Groups { size, dtype: Dtype::F8_E8M0 });
        let all: Vec<_> = of_groups.chain(of_blocks).chain([exponents]).collect();
        let with_bits = |bits| all.iter().map(move |&scales| GroupForm { bits, scales });
        let floats = [Dtype::F16, Dtype::F32, Dtype::F8_E4M3].into_iter().flat_map(|dtype| {
            let groups = Groups { size, dtype };
            FloatCodes::ALL
                .map(|codes| GroupForm { bits: codes.bits(), scales: Scales::Floats(codes, groups) })
        });
        [2, 3, 4, 5, 6, 8].into_iter().flat_map(with_bits).chain(floats).collect()
    }

    /// Returns the parts of a form, `[panels, lanes, …]`.
    fn parts(g: &mut Graph, form: GroupForm, inputs: usize) -> Vec<Tensor> {
        let mut part = |dtype, count| g.argument(dtype, &[PANELS, LANES, count]);
        let blocks = inputs.div_ceil(SUPERBLOCK);
        match form.scales {
            Scales::Listed(List::E2m1, Groups { size, .. }) => vec![part(Dtype::I8, inputs / size)],
            Scales::Floats(_, Groups { size, dtype: Dtype::F8_E4M3 }) => {
                let groups = inputs / size;
                vec![part(Dtype::F32, groups.div_ceil(UNIT_GROUPS)), part(Dtype::I32, groups)]
            }
            Scales::Symmetric(Groups { size, dtype })
            | Scales::Floats(_, Groups { size, dtype })
            | Scales::Listed(_, Groups { size, dtype }) => {
                vec![part(dtype, inputs / size)]
            }
            Scales::Zeros(Groups { size, dtype }) => {
                vec![part(dtype, inputs / size), part(Dtype::I32, inputs / size)]
            }
            Scales::Minima(Groups { size, dtype }) => {
                [dtype; 2].map(|dtype| part(dtype, inputs / size)).to_vec()
            }
            Scales::Superblocks => vec![
                part(Dtype::F16, blocks),
                part(Dtype::F16, blocks),
                part(Dtype::I32, inputs / GROUP),
                part(Dtype::I32, inputs / GROUP),
            ],
            Scales::Halves => vec![part(Dtype::F16, blocks), part(Dtype::I32, inputs / GROUP * 2)],
            Scales::HalfMinima => vec![
                part(Dtype::F16, blocks),
                part(Dtype::F16, blocks),
                part(Dtype::I32, inputs / GROUP * 2),
                part(Dtype::I32, inputs / GROUP * 2),
            ],
            Scales::ListedBlocks => vec![part(Dtype::F16, blocks), part(Dtype::I32, inputs / GROUP)],
            Scales::ListedHalves => vec![part(Dtype::F32, blocks), part(Dtype::I32, inputs / GROUP * 2)],
        }
    }

    #[test]
    fn blocks_have_the_bytes_of_their_form() {
        // The last superblock of 320 inputs is short.
        for (inputs, size) in [(320, 32), (320, 64), (512, 128), (512, 512)] {
            for form in forms(size) {
                let mut g = Graph::new();
                let codes = g.argument(Dtype::I32, &[PANELS, LANES, inputs]);
                let parts = parts(&mut g, form, inputs);
                let codes = if form.takes_floats() {
                    float_codes(&mut g, codes, form.bits)
                } else {
                    blocks_of_codes(&mut g, codes, form.bits)
                };
                let made = [codes, blocks_of_scales(&mut g, &parts, form)];
                let bytes = made.map(|made| {
                    let ty = g.type_of(made);
                    ty.elements() * ty.dtype.bitsize() / 8
                });
                g.finish(form.name(), &made).unwrap();
                let of_form = PANELS * LANES * form.row_bytes(inputs);
                assert_eq!(bytes.iter().sum::<usize>(), of_form, "{} of {inputs}", form.name());
            }
        }
    }

    #[test]
    fn parts_of_another_form_are_refused() {
        let mut g = Graph::new();
        let unit = g.argument(Dtype::F16, &[PANELS, LANES, 1]);
        let form = GroupForm { bits: 4, scales: Scales::Superblocks };
        let made = blocks_of_scales(&mut g, &[unit], form);
        let refused = g.finish("odd", &[made]).unwrap_err().to_string();
        assert!(refused.ends_with("panels: found 1 parts, expected those of q4_superblocks"), "{refused}");
    }
}
