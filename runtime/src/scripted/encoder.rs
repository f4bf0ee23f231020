//! An encoder that follows a script.

use std::fmt;

use crate::{
    device::DeviceInfo,
    encoder::contract::{Encoder, EncoderLimits, check_texts},
    error::Error,
};

/// Computes the embeddings of texts that were submitted together.
type Script = Box<dyn FnMut(&[&[u32]]) -> Result<Vec<Vec<f32>>, Error> + Send>;

/// An encoder without weights.
pub struct ScriptedEncoder {
    limits: EncoderLimits,
    info: DeviceInfo,
    script: Script,
}

impl ScriptedEncoder {
    /// Makes an encoder. `script` gets texts that the limits allow.
    pub fn new(
        limits: EncoderLimits,
        script: impl FnMut(&[&[u32]]) -> Result<Vec<Vec<f32>>, Error> + Send + 'static,
    ) -> Self {
        let info = DeviceInfo { name: "scripted".to_owned(), threads: 1, ..DeviceInfo::default() };
        Self { limits, info, script: Box::new(script) }
    }
}

impl Encoder for ScriptedEncoder {
    fn limits(&self) -> &EncoderLimits {
        &self.limits
    }

    fn device(&self) -> &DeviceInfo {
        &self.info
    }

    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error> {
        check_texts(&self.limits, texts)?;
        (self.script)(texts)
    }
}

impl fmt::Debug for ScriptedEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedEncoder").field("limits", &self.limits).finish_non_exhaustive()
    }
}
