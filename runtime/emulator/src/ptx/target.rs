//! What a module asks of the device: its version of PTX, and the compute capability that it is for.

use super::words::Words;

/// The greatest compute capability that is emulated.
const DEVICE: u32 = 90;
/// The newest version of PTX that is known: that of CUDA 12.8.
const NEWEST: (u32, u32) = (8, 7);

/// What a module says that it needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) version: (u32, u32),
    pub(super) capability: u32,
}

impl Target {
    /// Reads a directive: `.version 7.6` or `.target sm_80, texmode_independent`.
    pub(super) fn read(&mut self, line: &str) -> Result<(), String> {
        if let Some(version) = line.strip_prefix(".version") {
            let numbers = version.trim().split_once('.');
            let numbers = numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
            self.version = numbers.ok_or_else(|| format!("found {line}, expected two numbers"))?;
            if self.version > NEWEST {
                return Err(format!("found {line}, expected at most {}.{}", NEWEST.0, NEWEST.1));
            }
        }
        if let Some(target) = line.strip_prefix(".target") {
            let name = target.split(',').next().unwrap_or_default().trim();
            // Features of one architecture end with `a`, those of a family with `f`.
            let (digits, is_own) = match name.strip_suffix(['a', 'f']) {
                Some(name) => (name.strip_prefix("sm_"), true),
                None => (name.strip_prefix("sm_"), false),
            };
            let capability = digits.and_then(|digits| digits.parse().ok());
            self.capability = capability.ok_or_else(|| format!("found {line}, expected .target sm_NN"))?;
            if self.capability > DEVICE || (is_own && self.capability != DEVICE) {
                return Err(format!("found {line}, expected at most sm_{DEVICE}"));
            }
        }
        Ok(())
    }

    /// Refuses a module that does not say both.
    pub(super) fn check_given(self) -> Result<(), String> {
        if self.version == (0, 0) || self.capability == 0 {
            return Err("found no .version and .target, expected both before the first kernel".to_owned());
        }
        Ok(())
    }

    /// Refuses an instruction that the target does not have.
    pub(super) fn check(self, words: &Words<'_>) -> Result<(), String> {
        let (capability, version) = needed(words);
        if self.capability < capability {
            return Err(format!(
                "found an instruction of sm_{capability}, expected one that sm_{} has",
                self.capability
            ));
        }
        if self.version < version {
            let ((major, minor), (own_major, own_minor)) = (version, self.version);
            return Err(format!(
                "found an instruction of PTX {major}.{minor}, expected one that PTX {own_major}.{own_minor} has"
            ));
        }
        Ok(())
    }
}

/// Returns the compute capability and the version of PTX that an instruction needs: PTX ISA, "target ISA notes".
fn needed(words: &Words<'_>) -> (u32, (u32, u32)) {
    let has = |name: &str| words.has(name);
    let has_bf16 = has("bf16") || has("bf16x2");
    match words.op {
        "griddepcontrol" => (90, (7, 8)),
        "cp" => (80, (7, 0)),
        "ldmatrix" => (75, (6, 5)),
        "mma" if has("m16n8k8") && has("f16") => (75, (6, 5)),
        "mma" => (80, (7, 0)),
        "add" | "sub" | "mul" | "setp" if has_bf16 => (90, (7, 8)),
        "fma" | "neg" | "abs" | "min" | "max" if has_bf16 => (80, (7, 0)),
        "cvt" if has("bf16") && !has("f32") => (90, (7, 8)),
        "cvt" if words.modifiers.last() == Some(&"bf16") => (80, (7, 1)),
        "cvt" if has_bf16 || has("f16x2") || has("relu") => (80, (7, 0)),
        "ex2" | "tanh" if has_bf16 => (90, (7, 8)),
        "tanh" => (75, (7, 0)),
        "min" | "max" if has("NaN") => (80, (7, 0)),
        "fma" if has("relu") => (80, (7, 0)),
        "atom" | "red" if ["acquire", "release", "acq_rel", "relaxed"].iter().any(|name| has(name)) => {
            (70, (6, 0))
        }
        "shfl" | "vote" if has("sync") => (30, (6, 0)),
        "dp4a" => (61, (5, 0)),
        "ld" | "st" if words.modifiers.iter().any(|name| name.starts_with("L1::")) => (70, (7, 4)),
        _ => (0, (0, 0)),
    }
}
