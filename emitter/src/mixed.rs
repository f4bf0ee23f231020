//! Which form each matrix has in [`Quant::Q4K`](mlxcel_artifacts::Quant::Q4K), within a number of bits a weight.
//!
//! All matrices begin in 4 bits. [`STEPS`] then give more bits to those that gain most, as long as the average allows.

use std::collections::{BTreeMap, BTreeSet};

use mlxcel_models::{Attention, Block, FeedForward, Head, Linear, Mlp, ModelConfig, Weight};

use crate::group_form::{GroupForm, Scales};

const Q4: GroupForm = GroupForm { bits: 4, scales: Scales::Superblocks };
const Q5: GroupForm = GroupForm { bits: 5, scales: Scales::Superblocks };
const Q6: GroupForm = GroupForm { bits: 6, scales: Scales::Halves };

/// The largest average, in hundredths of a bit.
const MOST_BITS: u64 = 485;

/// What a matrix is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The table of tokens, which is also the head.
    TiedEmbedding,
    Embedding,
    Head,
    Query,
    Key,
    Value,
    /// Query, key and value, or some of them, in one tensor.
    FusedAttention,
    AttentionOutput,
    /// The down projection of the first block.
    FirstDown,
    Down,
    /// Gates and up projections.
    Wide,
}

/// Upgrades in the order of what they gain.
///
/// The gains are how much the divergence from floats falls for each bit that the average rises (demo model, held-out text,
/// one upgrade at a time, 2026-11-25). The gain of a fused tensor is that of its parts.
const STEPS: [(Role, GroupForm); 14] = [
    (Role::Value, Q5),           // 0.098
    (Role::TiedEmbedding, Q5),   // 0.049
    (Role::Head, Q5),            // 0.032
    (Role::AttentionOutput, Q5), // 0.032
    (Role::FirstDown, Q5),       // 0.032
    (Role::FusedAttention, Q5),  // 0.031
    (Role::Key, Q5),             // 0.024
    (Role::Value, Q6),           // 0.019
    (Role::Embedding, Q5),       // 0.017
    (Role::Query, Q5),           // 0.011
    (Role::TiedEmbedding, Q6),   // 0.010
    (Role::Key, Q6),             // 0.009
    (Role::Down, Q5),            // 0.005 to 0.012
    (Role::Head, Q6),            // 0.006
];

/// Matrices that have one form.
#[derive(Debug)]
struct Unit<'m> {
    role: Role,
    matrices: Vec<(&'m Weight, usize)>,
    form: GroupForm,
}

/// Returns the form of every matrix by its name.
pub(crate) fn mixed_forms(model: &ModelConfig) -> BTreeMap<String, GroupForm> {
    let mut units = units(model);
    let elements: u64 = units.iter().map(|unit| unit.elements()).sum();
    let most_bytes = elements.saturating_mul(MOST_BITS) / 800;
    let mut bytes: u64 = units.iter().map(|unit| unit.bytes(unit.form)).sum();
    for (role, form) in STEPS {
        // The last blocks gain more than those in the middle.
        for unit in units.iter_mut().rev().filter(|unit| unit.role == role) {
            let changed = bytes - unit.bytes(unit.form) + unit.bytes(form);
            if changed <= most_bytes {
                (bytes, unit.form) = (changed, form);
            }
        }
    }
    let forms = units.iter().flat_map(|Unit { matrices, form, .. }| {
        matrices.iter().map(|(weight, _)| (weight.name.clone(), *form))
    });
    forms.collect()
}

impl Unit<'_> {
    fn elements(&self) -> u64 {
        self.matrices.iter().map(|(weight, _)| weight.elements()).sum()
    }

    fn bytes(&self, form: GroupForm) -> u64 {
        let of = |&(weight, inputs): &(&Weight, usize)| {
            (weight.elements() / inputs.max(1) as u64).saturating_mul(form.row_bytes(inputs) as u64)
        };
        self.matrices.iter().map(of).sum()
    }
}

/// Returns all quantized matrices, each once: those of a block with one role share a unit.
fn units(model: &ModelConfig) -> Vec<Unit<'_>> {
    let (mut units, mut seen) = (Vec::<Unit<'_>>::new(), BTreeSet::new());
    let is_tied = matches!(&model.head, Head::Logits(head) if head.tied);
    let of_table = if is_tied { Role::TiedEmbedding } else { Role::Embedding };
    let table = (of_table, (&model.embedding.weight, model.hidden));
    let blocks = model.blocks.iter().enumerate().map(|(index, block)| of_block(block, index == 0));
    let head = match &model.head {
        Head::Logits(head) if !head.tied => vec![(Role::Head, matrix(&head.linear))],
        _ => vec![],
    };
    for group in [vec![table]].into_iter().chain(blocks).chain([head]) {
        let first = units.len();
        // Blocks may share tensors.
        let new = distinct(group).into_iter().filter(|(_, (weight, _))| seen.insert(weight.name.as_str()));
        for (role, matrix) in new {
            match units[first..].iter_mut().find(|unit| unit.role == role) {
                Some(unit) => unit.matrices.push(matrix),
                None => units.push(Unit { role, matrices: vec![matrix], form: Q4 }),
            }
        }
    }
    units
}

/// A matrix with its number of inputs, and what it is for.
type Part<'m> = (Role, (&'m Weight, usize));

fn matrix(linear: &Linear) -> (&Weight, usize) {
    (&linear.weight, linear.inputs())
}

/// Returns the quantized matrices of a block. Layers may share one.
fn of_block(block: &Block, is_first: bool) -> Vec<Part<'_>> {
    let Attention { query, key, value, output, .. } = &block.attention.layer;
    let attention =
        [(Role::Query, query), (Role::Key, key), (Role::Value, value), (Role::AttentionOutput, output)];
    let down_role = if is_first { Role::FirstDown } else { Role::Down };
    let linears = match &block.mlp.layer {
        FeedForward::Mlp(mlp) => of_mlp(mlp, down_role),
        FeedForward::Experts(layer) => {
            let shared = layer.shared.iter().map(|shared| &shared.mlp);
            layer.experts.iter().chain(shared).flat_map(|mlp| of_mlp(mlp, down_role)).collect()
        }
    };
    attention.into_iter().chain(linears).map(|(role, linear)| (role, matrix(linear))).collect()
}

fn of_mlp(mlp: &Mlp, down_role: Role) -> Vec<(Role, &Linear)> {
    let Mlp { gate, up, down, .. } = mlp;
    let wide = gate.iter().chain([up]).map(|linear| (Role::Wide, linear));
    wide.chain([(down_role, down)]).collect()
}

/// Returns every matrix once, in the order of their first uses.
fn distinct(parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    let mut found: Vec<Part<'_>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (role, matrix) in parts {
        let place = *places.entry(&matrix.0.name).or_insert(found.len());
        match found.get_mut(place) {
            Some((known, _)) if *known == role => {}
            Some((known, _)) => *known = Role::FusedAttention,
            None => found.push((role, matrix)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use mlxcel_models::{PRESETS, Preset};

    use super::*;

    /// Returns the average bits of a weight.
    fn bits(model: &ModelConfig, forms: &BTreeMap<String, GroupForm>) -> f64 {
        let units = units(model);
        let of = |unit: &Unit<'_>| -> u64 {
            let matrices = unit.matrices.iter();
            let one = |&(weight, inputs): &(&Weight, usize)| {
                weight.elements() / inputs as u64 * forms[&weight.name].row_bytes(inputs) as u64
            };
            matrices.map(one).sum()
        };
        let bytes: u64 = units.iter().map(of).sum();
        let elements: u64 = units.iter().map(Unit::elements).sum();
        8.0 * bytes as f64 / elements as f64
    }

    #[test]
    fn every_model_stays_within_the_bits() {
        for preset in PRESETS {
            let model = preset.model().unwrap();
            let forms = mixed_forms(&model);
            let bits = bits(&model, &forms);
            assert!((4.65..=4.85).contains(&bits), "{}: {bits}", preset.name);
        }
    }

    #[test]
    fn what_gains_most_has_most_bits() {
        let model = Preset::find("llama-3.2-1b").unwrap().model().unwrap();
        let forms = mixed_forms(&model);
        let of = |name: &str| forms[&format!("model.{name}.weight")].bits;
        assert_eq!(of("embed_tokens"), 5);
        let attention = ["q", "k", "v", "o"].map(|name| of(&format!("layers.3.self_attn.{name}_proj")));
        assert_eq!(attention, [4, 5, 6, 5]);
        let mlp =
            |layer: usize| ["gate", "up", "down"].map(|name| of(&format!("layers.{layer}.mlp.{name}_proj")));
        assert_eq!([mlp(0), mlp(1)], [[4, 4, 5], [4, 4, 4]]);
    }

    #[test]
    fn matrices_of_one_product_of_experts_have_one_form() {
        let model = Preset::find("mixtral-8x7b").unwrap().model().unwrap();
        let forms = mixed_forms(&model);
        for block in &model.blocks {
            let FeedForward::Experts(layer) = &block.mlp.layer else { panic!("no experts") };
            let form = |linear: &Linear| forms[&linear.weight.name];
            for expert in &layer.experts {
                assert_eq!(expert.gate.as_ref().map(form), Some(form(&expert.up)));
                assert_eq!(form(&expert.down), form(&layer.experts[0].down));
            }
            assert!(!forms.contains_key(&layer.router.weight.name));
        }
    }

    #[test]
    fn a_fused_tensor_has_one_form() {
        let model = Preset::find("phi-4-mini").unwrap().model().unwrap();
        let forms = mixed_forms(&model);
        let last = model.blocks.last().unwrap();
        let FeedForward::Mlp(mlp) = &last.mlp.layer else { panic!("found experts") };
        let attention = &last.attention.layer;
        let fused = [&attention.query, &attention.value, &mlp.up].map(|linear| forms[&linear.weight.name]);
        assert_eq!(fused, [Q5, Q5, Q4]);
        // An embedding, and four tensors of each block.
        assert_eq!(forms.len(), 1 + 4 * model.blocks.len());
    }
}
