//! Weights in groups as kernels for GPUs read them, see `cuda/groups.h`, and back: rows of codes, and rows of words with what
//! groups have.

use mlxcel_models::FloatCodes;
use safetensors::Dtype;

use super::quantization::nibble_bytes;
use crate::{
    decode::fields,
    graph::{Graph, Tensor},
    group_form::{GROUP, GroupForm, SUPERBLOCK, Scales},
    kernels::{CudaGroups, GroupNumbers},
    ops::Reduction,
};

/// Bits and bytes of a word.
const WORD_BITS: usize = 32;
const WORD: usize = WORD_BITS / 8;

/// What the codes of a group are divided into: halves, words of four inputs, and these.
const IN_WORDS: [usize; 3] = [2, GROUP / 2 / WORD, WORD];

/// What codes of 8 bits are less than unsigned ones.
const BYTE_OFFSET: i32 = 128;

/// The sign of an `f16`.
const HALF_SIGN: i32 = 0x8000;

/// Returns codes and words, `[outputs, …]` each, for the parts of a form, see [`decode_groups`](crate::decode::decode_groups).
pub(super) fn packed(g: &mut Graph, parts: &[Tensor], form: GroupForm) -> Vec<Tensor> {
    let [codes, of_groups @ ..] = parts else { return parts.to_vec() };
    let &[outputs, inputs] = g.shape(*codes) else { return parts.to_vec() };
    let of = CudaGroups { form, inputs };
    let bytes = if form.bits == 8 {
        g.convert(*codes, Dtype::I8)
    } else {
        let low = g.with_number(*codes, 15, Graph::and);
        nibble_bytes(g, low)
    };
    let planes = (of.planes() > 0).then(|| planes(g, *codes, of.planes()));
    let of_groups = with_nan(g, *codes, of_groups, of);
    let words: Vec<_> = planes.into_iter().chain(numbers(g, &of_groups, of)).collect();
    let words = g.concatenate_fused(&words, 1);
    let width = bytes_of_row(form, inputs);
    vec![g.reshape(bytes, &[outputs, width]), g.pad_end(words, 1, of.row_words())]
}

/// Returns what groups have, with scales or units that are NaN where one of their codes in E4M3 is: kernels take that for a number.
fn with_nan(g: &mut Graph, codes: Tensor, of_groups: &[Tensor], of: CudaGroups) -> Vec<Tensor> {
    match (of.form.scales, of_groups) {
        (Scales::Floats(FloatCodes::E4m3, groups), &[scales]) => {
            vec![nan_with(g, scales, codes, groups.size)]
        }
        (Scales::Floats(..), &[units, steps]) => {
            let unit = g.slice_dimension(units, 1, 0, 1);
            let groups = g.shape(steps)[1];
            vec![nan_with(g, unit, steps, groups), steps]
        }
        _ => of_groups.to_vec(),
    }
}

/// Returns numbers, `[outputs, …]`, that are NaN where one of so many codes of each, in E4M3, is.
fn nan_with(g: &mut Graph, numbers: Tensor, codes: Tensor, each: usize) -> Tensor {
    let &[outputs, count] = g.shape(numbers) else { return numbers };
    let dtype = g.dtype(numbers);
    let codes = g.pad_end(codes, 1, count * each);
    let magnitude = g.with_number(codes, 127, Graph::and);
    let is_number = g.with_number(magnitude, 127, Graph::lt);
    // Minima of integers do not compile for GPUs.
    let is_number = g.convert(is_number, Dtype::F32);
    let is_number = g.reshape(is_number, &[outputs, count, each]);
    let are_numbers = g.reduce(is_number, Reduction::Min, &[2]);
    // 1 / 1 or 0 / 0
    let one_or_nan = g.divide(are_numbers, are_numbers);
    let one_or_nan = g.convert(one_or_nan, dtype);
    g.multiply(numbers, one_or_nan)
}

/// Returns the bytes of a row of codes.
fn bytes_of_row(form: GroupForm, inputs: usize) -> usize {
    if form.bits == 8 { inputs } else { inputs / 2 }
}

/// Returns the planes of codes, `[outputs, inputs]`: the bits after the fourth of a group, in so many words.
fn planes(g: &mut Graph, codes: Tensor, planes: usize) -> Tensor {
    let &[outputs, inputs] = g.shape(codes) else { return codes };
    let groups = inputs / GROUP;
    let [halves, words, bytes] = IN_WORDS;
    let high = g.with_number(codes, 4, Graph::shift_right_logical);
    let high = g.reshape(high, &[outputs, groups, halves, words, bytes]);
    let by_word = combined(g, high, 8);
    let by_half = combined(g, by_word, planes);
    let whole = if planes == 1 { combined(g, by_half, words) } else { by_half };
    g.reshape(whole, &[outputs, groups * planes])
}

/// Combines what the last dimension has, each so many bits higher than the one before.
fn combined(g: &mut Graph, x: Tensor, bits: usize) -> Tensor {
    let shape = g.shape(x).to_vec();
    let (last, kept) = shape.split_last().map_or((1, &[][..]), |(&last, kept)| (last, kept));
    let mut made = None;
    for (index, start) in (0..last).zip((0..).step_by(bits)) {
        let one = g.slice_dimension(x, kept.len(), index, index + 1);
        let one = g.with_number(one, start, Graph::shift_left);
        made = Some(made.map_or(one, |made| g.or(made, one)));
    }
    g.reshape(made.unwrap_or(x), kept)
}

/// Returns where the field of each code is in its plane.
fn starts(g: &mut Graph, planes: usize, shape: &[usize]) -> Tensor {
    let [halves, words, bytes] = IN_WORDS;
    let mut starts = Vec::new();
    for (half, word, byte) in (0..halves)
        .flat_map(|half| (0..words).flat_map(move |word| (0..bytes).map(move |byte| (half, word, byte))))
    {
        let start = if planes == 1 { 8 * byte + 4 * half + word } else { 8 * byte + 2 * word };
        starts.push(i32::try_from(start).unwrap_or(0));
    }
    let starts = g.constant_i32(&starts, &IN_WORDS);
    g.broadcast_in_dim(starts, shape, &[2, 3, 4])
}

/// Returns the words of what groups have.
fn numbers(g: &mut Graph, parts: &[Tensor], of: CudaGroups) -> Vec<Tensor> {
    match (of.form.scales, parts) {
        (Scales::Symmetric(_) | Scales::Floats(..) | Scales::Listed(..), &[scales]) => {
            vec![of_runs(g, scales, of)]
        }
        (Scales::Floats(..), &[unit, steps]) => vec![bits_of(g, unit), words_of(g, steps, 1)],
        (Scales::Zeros(_), &[scales, zeros]) => vec![of_runs(g, scales, of), of_runs(g, zeros, of)],
        (Scales::Minima(_), &[scales, minima]) => vec![of_runs(g, scales, of), of_runs(g, minima, of)],
        (Scales::Superblocks, &[unit, least, scales, minima]) => {
            let [unit, least] = [unit, least].map(|half| bits_of(g, half));
            let least = g.with_number(least, HALF_SIGN, Graph::xor);
            let units = with_upper(g, unit, least, 16);
            let steps = with_upper(g, scales, minima, 8);
            vec![units, words_of(g, steps, 2)]
        }
        (Scales::Halves | Scales::ListedBlocks, &[unit, scales]) => {
            let unit = bits_of(g, unit);
            vec![words_of(g, unit, 2), words_of(g, scales, 1)]
        }
        (_, parts) => {
            let problem = format!("found {} parts, expected those of {}", parts.len(), of.form.name());
            vec![g.fail("groups", problem)]
        }
    }
}

/// Returns the words of numbers of runs, `[outputs, runs]`: floats, or zero points.
fn of_runs(g: &mut Graph, numbers: Tensor, of: CudaGroups) -> Tensor {
    let &[outputs, runs] = g.shape(numbers) else { return numbers };
    let bytes = if g.dtype(numbers) == Dtype::I32 { 1 } else { g.dtype(numbers).bitsize() / 8 };
    let bits = bits_of(g, numbers);
    let each = of.form.run() / of.run();
    let wide = g.broadcast_in_dim(bits, &[outputs, runs, each], &[0, 1]);
    let repeated = g.reshape(wide, &[outputs, runs * each]);
    // The last group of a row may be smaller.
    let repeated = g.slice_dimension(repeated, 1, 0, of.inputs.div_ceil(of.run()));
    words_of(g, repeated, bytes)
}

/// Returns the bits of floating-point numbers as `i32`, or the numbers if they are whole.
fn bits_of(g: &mut Graph, x: Tensor) -> Tensor {
    match g.dtype(x) {
        Dtype::I32 => x,
        // Exponents, of which the lowest byte counts.
        Dtype::I8 => g.convert(x, Dtype::I32),
        Dtype::F32 => g.bitcast_convert(x, Dtype::I32),
        _ => {
            let bits = g.bitcast_convert(x, Dtype::I16);
            let bits = g.convert(bits, Dtype::I32);
            g.with_number(bits, 0xffff, Graph::and)
        }
    }
}

/// Returns `lower`, with `upper` so many bits higher.
fn with_upper(g: &mut Graph, lower: Tensor, upper: Tensor, bits: i32) -> Tensor {
    let upper = g.with_number(upper, bits, Graph::shift_left);
    g.or(lower, upper)
}

/// Returns `[outputs, words]` of the lowest bytes of numbers, `[outputs, numbers]`.
fn words_of(g: &mut Graph, numbers: Tensor, bytes: usize) -> Tensor {
    let &[outputs, count] = g.shape(numbers) else { return numbers };
    let in_word = WORD / bytes;
    if in_word == 1 {
        return numbers;
    }
    let bits = 8 * bytes;
    let low = g.with_number(numbers, (1 << bits) - 1, Graph::and);
    let words = count.div_ceil(in_word);
    let whole = g.pad_end(low, 1, words * in_word);
    let by_word = g.reshape(whole, &[outputs, words, in_word]);
    combined(g, by_word, bits)
}

/// Reverses [`packed`], to weights `[outputs, inputs]` in `f32`.
pub(super) fn unpacked(g: &mut Graph, [codes, words]: [Tensor; 2], of: CudaGroups) -> Tensor {
    let CudaGroups { form, inputs } = of;
    let &[outputs, ..] = g.shape(codes) else { return codes };
    let codes = unpacked_codes(g, codes, words, of);
    let firsts = unpacked_numbers(g, words, of.starts()[0], of.firsts());
    let seconds = of.seconds().map(|seconds| unpacked_numbers(g, words, of.starts()[1], seconds));
    // What each input has, of numbers that so many inputs share.
    let spread = |g: &mut Graph, x: Tensor, each: usize| {
        let count = g.shape(x)[1];
        let wide = g.broadcast_in_dim(x, &[outputs, count, each], &[0, 1]);
        let wide = g.reshape(wide, &[outputs, count * each]);
        g.slice_dimension(wide, 1, 0, inputs)
    };
    let run = of.run();
    match (form.scales, seconds) {
        (Scales::Symmetric(groups), _) => {
            let d = floats(g, firsts, groups.dtype);
            let d = spread(g, d, run);
            let codes = g.with_number(codes, 1 << (form.bits - 1), Graph::subtract);
            product(g, codes, d)
        }
        (Scales::Floats(..), Some(steps)) => {
            let steps = fields(g, steps, 2, 8);
            let steps = looked_up(g, &FloatCodes::E4m3.numbers(), steps);
            let (unit, steps) = (floats(g, firsts, Dtype::F32), spread(g, steps, GROUP / 2));
            let (unit, x) = (spread(g, unit, inputs), g.multiply(codes, steps));
            g.multiply(unit, x)
        }
        (Scales::Listed(_, groups) | Scales::Floats(_, groups), _) => {
            let d = floats(g, firsts, groups.dtype);
            let d = spread(g, d, run);
            g.multiply(codes, d)
        }
        (Scales::Zeros(groups), Some(zeros)) => {
            let d = floats(g, firsts, groups.dtype);
            let [d, zeros] = [d, zeros].map(|x| spread(g, x, run));
            let codes = g.subtract(codes, zeros);
            product(g, codes, d)
        }
        (Scales::Minima(groups), Some(minima)) => {
            let [d, m] = [firsts, minima].map(|bits| {
                let x = floats(g, bits, groups.dtype);
                spread(g, x, run)
            });
            let x = product(g, codes, d);
            g.add(x, m)
        }
        (Scales::Superblocks, Some(steps)) => {
            let upper = g.with_number(firsts, 16, Graph::shift_right_logical);
            let [unit, least] = [firsts, upper].map(|bits| {
                let x = floats(g, bits, Dtype::F16);
                spread(g, x, SUPERBLOCK)
            });
            let high = g.with_number(steps, 8, Graph::shift_right_logical);
            let [scale, minimum] = [steps, high].map(|step| {
                let step = g.with_number(step, 255, Graph::and);
                let step = g.convert(step, Dtype::F32);
                spread(g, step, GROUP)
            });
            let (d, m) = (g.multiply(unit, scale), g.multiply(least, minimum));
            let x = product(g, codes, d);
            g.add(x, m)
        }
        (Scales::Halves, Some(steps)) => {
            let steps = fields(g, steps, 2, 8);
            let (unit, steps) = (floats(g, firsts, Dtype::F16), signed(g, steps));
            let (unit, steps) = (spread(g, unit, SUPERBLOCK), spread(g, steps, GROUP / 2));
            let codes = g.with_number(codes, 1 << (form.bits - 1), Graph::subtract);
            let d = g.multiply(unit, steps);
            product(g, codes, d)
        }
        (Scales::ListedBlocks, Some(steps)) => {
            let (unit, steps) = (floats(g, firsts, Dtype::F16), signed(g, steps));
            let (unit, steps) = (spread(g, unit, SUPERBLOCK), spread(g, steps, GROUP));
            let d = g.multiply(unit, steps);
            g.multiply(codes, d)
        }
        _ => g.fail("groups", format!("found other numbers than those of {}", form.name())),
    }
}

/// Returns the floating-point numbers of these bits, in `f32`.
fn floats(g: &mut Graph, bits: Tensor, dtype: Dtype) -> Tensor {
    if dtype == Dtype::F32 {
        return g.bitcast_convert(bits, Dtype::F32);
    }
    if dtype == Dtype::F8_E8M0 {
        let bits = g.with_number(bits, 23, Graph::shift_left);
        return g.bitcast_convert(bits, Dtype::F32);
    }
    let half = g.convert(bits, Dtype::I16);
    let half = g.bitcast_convert(half, dtype);
    g.convert(half, Dtype::F32)
}

/// Returns signed bytes in `f32`.
fn signed(g: &mut Graph, byte: Tensor) -> Tensor {
    let byte = g.convert(byte, Dtype::I8);
    g.convert(byte, Dtype::F32)
}

/// Multiplies whole numbers by scales.
fn product(g: &mut Graph, codes: Tensor, scales: Tensor) -> Tensor {
    let codes = g.convert(codes, Dtype::F32);
    g.multiply(codes, scales)
}

/// Returns unsigned codes, `[outputs, inputs]` of `i32`, or the numbers that they look up in `f32`.
fn unpacked_codes(g: &mut Graph, codes: Tensor, words: Tensor, of: CudaGroups) -> Tensor {
    let CudaGroups { form, inputs } = of;
    let &[outputs, ..] = g.shape(codes) else { return codes };
    let codes = g.convert(codes, Dtype::I32);
    if let Scales::Floats(FloatCodes::E4m3, _) = form.scales {
        let bytes = g.with_number(codes, 255, Graph::and);
        return looked_up(g, &FloatCodes::E4m3.numbers(), bytes);
    }
    if form.bits == 8 {
        return g.with_number(codes, BYTE_OFFSET, Graph::add);
    }
    let groups = inputs / GROUP;
    let bytes = g.reshape(codes, &[outputs, groups, GROUP / 2]);
    let upper = g.with_number(bytes, 4, Graph::shift_right_logical);
    let halves = [bytes, upper].map(|nibble| g.with_number(nibble, 15, Graph::and));
    let mut codes = g.concatenate(&halves, 2);
    if of.planes() > 0 {
        let planes = g.slice_dimension(words, 1, 0, groups * of.planes());
        let [halves, in_half, bytes] = IN_WORDS;
        let shape = [outputs, groups, halves, in_half, bytes];
        let (planes, kept): (_, &[usize]) = match of.planes() {
            1 => (planes, &[0, 1]),
            _ => (g.reshape(planes, &[outputs, groups, halves]), &[0, 1, 2]),
        };
        let wide = g.broadcast_in_dim(planes, &shape, kept);
        let starts = starts(g, of.planes(), &shape);
        let high = g.shift_right_logical(wide, starts);
        let high = g.with_number(high, (1 << of.planes()) - 1, Graph::and);
        let high = g.with_number(high, 4, Graph::shift_left);
        let high = g.reshape(high, &[outputs, groups, GROUP]);
        codes = g.or(codes, high);
    }
    let codes = g.reshape(codes, &[outputs, inputs]);
    match (form.scales, form.scales.list()) {
        (Scales::Floats(of, _), _) => looked_up(g, &of.numbers(), codes),
        (_, Some(list)) => looked_up(g, &list.numbers(), codes),
        (_, None) => codes,
    }
}

/// Returns the numbers that codes look up, in the same shape.
fn looked_up(g: &mut Graph, numbers: &[f32], codes: Tensor) -> Tensor {
    let shape = g.shape(codes).to_vec();
    let table = g.constant_f32(numbers, &[numbers.len(), 1]);
    let found = g.take_rows(table, codes);
    g.reshape(found, &shape)
}

/// Returns the bits of numbers of a row, `[outputs, count]`, from this word on.
fn unpacked_numbers(g: &mut Graph, words: Tensor, start: usize, of: GroupNumbers) -> Tensor {
    let words = g.slice_dimension(words, 1, start, start + of.words());
    let all = fields(g, words, WORD / of.bytes, 8 * of.bytes);
    g.slice_dimension(all, 1, 0, of.count)
}
