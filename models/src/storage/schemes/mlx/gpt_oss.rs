//! The experts of gpt-oss as mlx-lm stores them: gate and up apart, and outputs first.

use crate::{
    layers::Weight,
    storage::{
        coding::{Coding, Numbers, OfGroups, Storage},
        expr::Expr,
        tensors::{Parts, StoredTensors, WrongStorage},
    },
};

/// Returns the modules that have a weight or a bias of gpt-oss' experts, and whether it is a bias.
pub(super) fn stacks(name: &str) -> Option<(Vec<String>, bool)> {
    let (layer, is_bias) = name.strip_suffix("_bias").map_or((name, false), |layer| (layer, true));
    let modules = match layer.split_once(".experts.")? {
        (experts, "gate_up_proj") => [experts, experts].into_iter().zip(["gate_proj", "up_proj"]).collect(),
        (experts, "down_proj") => vec![(experts, "down_proj")],
        _ => return None,
    };
    Some((
        modules.into_iter().map(|(experts, layer)| format!("{experts}.experts.{layer}")).collect(),
        is_bias,
    ))
}

/// Returns the coding of a module's weight, `[outer…, columns]`.
type CodingOf<'c> = &'c dyn Fn(&mut Parts<'_>, &str, (&[usize], usize)) -> Result<Coding, WrongStorage>;

/// Returns how a weight, `[experts, inputs, outputs]`, or a bias, `[experts, outputs]`, is stored.
pub(super) fn storage(
    weight: &Weight,
    tensors: &StoredTensors,
    (modules, is_bias): (&[String], bool),
    coding_of: CodingOf<'_>,
) -> Result<Storage, WrongStorage> {
    let mut parts = Parts::new(tensors);
    let (experts, outputs) = match (weight.shape.as_slice(), is_bias) {
        (&[experts, _, outputs], false) | (&[experts, outputs], true) => (experts, outputs),
        (shape, _) => {
            let problem = format!("shape {shape:?}, expected a stack of experts");
            return Err(WrongStorage::new(&weight.name, problem));
        }
    };
    let rows = outputs / modules.len();
    if is_bias {
        let biases = modules.iter().map(|module| {
            let bias = parts.floats(&format!("{module}.bias"), &[experts, rows])?;
            Ok(bias.reshape(&[experts, rows, 1]))
        });
        let both = Expr::Concatenate(biases.collect::<Result<_, WrongStorage>>()?, 2);
        let codes = both.reshape(&[experts, outputs]);
        let coding = Coding::in_groups(codes, Numbers::Floats { bits: 16 }, outputs, Expr::number(1.0));
        return Ok(parts.finish(coding));
    }
    let inputs = weight.shape[1];
    let codings = modules.iter().map(|module| coding_of(&mut parts, module, (&[experts, rows], inputs)));
    let codings: Vec<_> = codings.collect::<Result<_, _>>()?;
    let Some(first) = codings.first().cloned() else {
        return Err(WrongStorage::new(&weight.name, "no module, expected gate, up or down"));
    };
    if let Some(other) =
        codings.iter().find(|other| (other.group, other.numbers) != (first.group, first.numbers))
    {
        let problem = format!(
            "groups of {} and of {}, expected one form of gate and up",
            first.group[1], other.group[1]
        );
        return Err(WrongStorage::new(&weight.name, problem));
    }
    let groups = inputs / first.group[1];
    // Output 2i is that of gate, and 2i + 1 that of up.
    let interleaved = |exprs: Vec<Expr>, last: usize| {
        let parts = exprs.into_iter().map(|part| part.reshape(&[experts, rows, 1, last])).collect();
        Expr::Concatenate(parts, 2).reshape(&[experts, outputs, last])
    };
    let of_groups = |parts: Vec<OfGroups>| {
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        match parts.next() {
            None => Some(first.map(groups, |part, last| interleaved(vec![part], last))),
            Some(second) => first.join(second, groups, |both, last| interleaved(both.into(), last)),
        }
    };
    let scales = of_groups(codings.iter().map(|coding| coding.scales.clone()).collect());
    let minima = codings.iter().map(|coding| coding.minima.clone()).collect::<Option<_>>();
    let coding = Coding {
        codes: interleaved(codings.iter().map(|coding| coding.codes.clone()).collect(), inputs),
        scales: scales.unwrap_or_else(|| first.scales.clone()),
        minima: minima.and_then(of_groups),
        transposed: true,
        ..first
    };
    Ok(parts.finish(coding))
}
