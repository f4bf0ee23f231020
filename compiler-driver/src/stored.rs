//! Weights that a checkpoint stores in few bits, and how a target reads them.

use std::collections::BTreeSet;

use mlxcel_emitter::{Form, Forms, GroupForm, Plan};
use mlxcel_models::{ModelConfig, Storage, Weight};

/// Weights that are stored in one way and read in one form.
#[derive(Debug)]
pub(crate) struct StoredWeights {
    /// How they are stored, in words.
    pub(crate) coding: String,
    /// How kernels read them; `None` if they are decoded to floats.
    pub(crate) form: Option<GroupForm>,
    /// Their names, in the order of use.
    pub(crate) names: Vec<String>,
}

impl StoredWeights {
    /// Returns the weights in few bits by how they are stored, where a module with this plan reads them.
    pub(crate) fn of(
        config: &ModelConfig,
        plan: &Plan,
        storage_of: &dyn Fn(&Weight) -> Storage,
    ) -> Vec<Self> {
        let forms = Forms::new(config, plan, storage_of);
        let mut all: Vec<Self> = Vec::new();
        let mut seen = BTreeSet::new();
        for weight in config.weights() {
            let coding = storage_of(weight).coding.filter(|coding| coding.is_quantized());
            let Some(coding) = coding.filter(|_| seen.insert(&weight.name)) else { continue };
            let coding = coding.to_string();
            let form = match forms.of(weight) {
                Form::Groups(form) => Some(form),
                Form::Floats | Form::Rows => None,
            };
            let name = weight.name.clone();
            match all.iter_mut().find(|known| known.coding == coding && known.form == form) {
                Some(known) => known.names.push(name),
                None => all.push(Self { coding, form, names: vec![name] }),
            }
        }
        all.sort_by(|one, other| one.coding.cmp(&other.coding));
        all
    }
}

/// Names the first of some weights, and counts the others.
pub(crate) fn in_words(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
