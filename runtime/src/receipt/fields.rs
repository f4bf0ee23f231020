//! Values of receipts that JSON has no form of, or one that programs change.

/// Numbers of 64 bits as text, because many programs read numbers as `f64`.
pub(super) mod number {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refuse = || de::Error::custom(format_args!("found {text:?}, expected a whole number as text"));
        text.parse().map_err(|_| refuse())
    }
}

/// Biases as pairs of a token and a number, or one of the texts `-inf` and `inf`.
pub(super) mod biases {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged, expecting = "a number, \"inf\" or \"-inf\"")]
    enum Bias {
        Finite(f32),
        Infinite(String),
    }

    pub(crate) fn serialize<S: Serializer>(biases: &[(u32, f32)], serializer: S) -> Result<S::Ok, S::Error> {
        let form = |&(token, bias): &(u32, f32)| {
            let bias = if bias.is_infinite() { Bias::Infinite(bias.to_string()) } else { Bias::Finite(bias) };
            (token, bias)
        };
        serializer.collect_seq(biases.iter().map(form))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(u32, f32)>, D::Error> {
        let pairs = Vec::<(u32, Bias)>::deserialize(deserializer)?;
        let parse = |(token, bias)| match bias {
            Bias::Finite(bias) => Ok((token, bias)),
            Bias::Infinite(text) if text == "-inf" => Ok((token, f32::NEG_INFINITY)),
            Bias::Infinite(text) if text == "inf" => Ok((token, f32::INFINITY)),
            Bias::Infinite(text) => {
                Err(de::Error::custom(format_args!("found the bias {text:?}, expected a number")))
            }
        };
        pairs.into_iter().map(parse).collect()
    }
}

/// Reasons by their names.
pub(super) mod stop_reason {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::engine::StopReason;

    /// The reasons of answers that have an end.
    const ENDS: [StopReason; 4] =
        [StopReason::Eos, StopReason::Stop, StopReason::Length, StopReason::Context];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(reason: &StopReason, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(reason.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StopReason, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refuse = || {
            let names = ENDS.map(StopReason::name).join(", ");
            de::Error::custom(format_args!("found the finish_reason {text:?}, expected one of {names}"))
        };
        ENDS.into_iter().find(|reason| reason.name() == text).ok_or_else(refuse)
    }
}
