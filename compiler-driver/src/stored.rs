//! Weights that a checkpoint stores in few bits, and how a target reads them.

use std::collections::{BTreeMap, BTreeSet};

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
        let mut names_of: BTreeMap<(String, Option<String>), (Option<GroupForm>, Vec<String>)> =
            BTreeMap::new();
        let mut seen = BTreeSet::new();
        for weight in config.weights() {
            let coding = storage_of(weight).coding.filter(|coding| coding.is_quantized());
            let Some(coding) = coding.filter(|_| seen.insert(&weight.name)) else { continue };
            let form = match forms.of(weight) {
                Form::Groups(form) => Some(form),
                Form::Floats | Form::Rows => None,
            };
            let key = (coding.to_string(), form.map(GroupForm::name));
            names_of.entry(key).or_insert((form, vec![])).1.push(weight.name.clone());
        }
        names_of.into_iter().map(|((coding, _), (form, names))| Self { coding, form, names }).collect()
    }

    /// Says which weights these are: `7 weights of 3-bit integers in groups of 32 (model.layers.0.…)`.
    pub(crate) fn to_words(&self) -> String {
        let Self { coding, names, .. } = self;
        match names.as_slice() {
            [only] => format!("{only} ({coding})"),
            [first, rest @ ..] => format!("{first} and {} more ({coding})", rest.len()),
            [] => coding.clone(),
        }
    }
}
