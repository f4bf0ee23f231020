//! The forms in which StableHLO programs are stored.

use std::fmt;

/// The bytes that MLIR's bytecode begins with.
const BYTECODE: &[u8] = b"ML\xefR";

/// Place of the module among the fields of JAX's table `Exported` (`jax/_src/export/serialization.fbs`). New fields follow at
/// the end.
const MODULE_FIELD: usize = 13;

/// What the producer of a portable artifact is called, with the version of StableHLO after it.
const PORTABLE_PRODUCER: &str = "StableHLO_v";

/// The last version of StableHLO that IREE 3.13 reads.
const LAST_VERSION: Version = Version { major: 1, minor: 21, patch: u32::MAX };

/// The longest name of a producer. MLIR's own is `MLIR22.1.0`.
const PRODUCER_MAX: usize = 256;

/// A version of StableHLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The form of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// MLIR's text.
    Text,
    /// A portable artifact, which newer versions of StableHLO read too.
    Portable(Version),
    /// A file of `jax.export`, which has a portable artifact.
    JaxExport(Version),
}

impl Form {
    /// Returns the version of StableHLO that the program was written for. Text has none.
    pub(crate) fn version(self) -> Option<String> {
        match self {
            Self::Text => None,
            Self::Portable(version) | Self::JaxExport(version) => Some(version.to_string()),
        }
    }
}

/// Says it to people: `portable artifact of StableHLO 1.15.0`.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("MLIR text"),
            Self::Portable(version) => write!(f, "portable artifact of StableHLO {version}"),
            Self::JaxExport(version) => write!(f, "jax.export file of StableHLO {version}"),
        }
    }
}

/// Why a file is no program that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It is empty.
    #[error("0 bytes, expected a StableHLO program\nhint: export it again")]
    Empty,
    /// It is in none of the forms.
    #[error(
        "neither text nor MLIR bytecode, expected a StableHLO program\n\
         hint: write one with jax.export, stablehlo.serialize_portable_artifact or as text"
    )]
    Unknown,
    /// It is bytecode, which is not the same in every version.
    #[error(
        "MLIR bytecode of {producer}, expected a portable artifact, which other versions read too\n\
         hint: write it with stablehlo.serialize_portable_artifact, or as text"
    )]
    Bytecode {
        /// Who wrote it.
        producer: String,
    },
    /// It has a version that is not known yet.
    #[error(
        "StableHLO {found}, expected at most {}.{}\n\
         hint: write it for an older version: serialize_portable_artifact takes target_version", LAST_VERSION.major, LAST_VERSION.minor
    )]
    Newer {
        /// Its version.
        found: String,
    },
    /// It ends too early.
    #[error("{found} bytes of a portable artifact, expected {expected}\nhint: copy the file again")]
    CutOff {
        /// The bytes that are there.
        found: usize,
        /// Those that the file says it has.
        expected: usize,
    },
}

/// Returns the form of a file, and the bytes in it that are the program.
pub(crate) fn detect(bytes: &[u8]) -> Result<(Form, &[u8]), FormError> {
    if bytes.is_empty() {
        return Err(FormError::Empty);
    }
    if bytes.starts_with(BYTECODE) {
        return Ok((Form::Portable(portable_version(bytes)?), bytes));
    }
    if let Some((length, rest)) = exported_module(bytes) {
        let found = rest.len();
        let program = rest.get(..length).ok_or(FormError::CutOff { found, expected: length })?;
        return Ok((Form::JaxExport(portable_version(program)?), program));
    }
    let is_text =
        std::str::from_utf8(bytes).is_ok_and(|text| text.contains("func.func") || text.contains("module"));
    if is_text { Ok((Form::Text, bytes)) } else { Err(FormError::Unknown) }
}

/// Returns the version of StableHLO that bytecode is portable for.
fn portable_version(bytes: &[u8]) -> Result<Version, FormError> {
    // The version of the bytecode, a byte while it is below 128, then the producer with a zero after it.
    let producer = bytes.get(BYTECODE.len() + 1..).unwrap_or_default();
    let end = producer.iter().take(PRODUCER_MAX).position(|&byte| byte == 0);
    let producer = String::from_utf8_lossy(producer.get(..end.unwrap_or(0)).unwrap_or_default());
    let version = producer.strip_prefix(PORTABLE_PRODUCER).and_then(Version::parse);
    let Some(version) = version else {
        let shown = if producer.is_empty() { "an unknown program" } else { &producer };
        return Err(FormError::Bytecode { producer: shown.escape_debug().to_string() });
    };
    if version > LAST_VERSION {
        return Err(FormError::Newer { found: version.to_string() });
    }
    Ok(version)
}

/// Returns the length of the module of a `jax.export` file, and the bytes from its first on. `None` for other files.
///
/// Such a file is a flatbuffer. It has the modules of gradients beside the program's, and before it, so that a search for
/// bytecode would find one of those.
fn exported_module(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let short = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let table = word(0)? as usize;
    // A table begins with the distance back to the list of its fields' places, which may lie behind it.
    let back = i32::from_le_bytes(*bytes.get(table..)?.first_chunk()?);
    let places = usize::try_from(i64::try_from(table).ok()? - i64::from(back)).ok()?;
    // The list begins with its own size and the table's.
    let place = (2 + MODULE_FIELD) * size_of::<u16>();
    if usize::from(short(places)?) < place + size_of::<u16>() {
        return None;
    }
    let field = table + Some(short(places + place)?).filter(|&place| place != 0).map(usize::from)?;
    let vector = field + word(field)? as usize;
    let length = word(vector)? as usize;
    let module = bytes.get(vector + size_of::<u32>()..)?;
    module.starts_with(BYTECODE).then_some((length, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portable(version: &str) -> Vec<u8> {
        [BYTECODE, b"\x0d", PORTABLE_PRODUCER.as_bytes(), version.as_bytes(), b"\0rest"].concat()
    }

    /// Returns a file of `jax.export` with the module of a gradient, which lies before the program's.
    fn export(gradient: &[u8], module: &[u8]) -> Vec<u8> {
        const PLACES: usize = 3 + MODULE_FIELD;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        // The size of this list and of the table, and where in the table the module is.
        let mut places = [0_u16; PLACES];
        places[0] = u16::try_from(size_of_val(&places)).unwrap();
        places[1] = 8;
        places[2 + MODULE_FIELD] = 4;
        let table = u32::from(places[0]) + 4;
        let places: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
        // From the table's field, over itself and the other vector.
        let to_module = 4 + 4 + u32::try_from(gradient.len()).unwrap();
        let mut file = table.to_le_bytes().to_vec();
        file.extend(places);
        file.extend((table - 4).to_le_bytes());
        file.extend(to_module.to_le_bytes());
        for vector in [gradient, module] {
            file.extend(length(vector));
            file.extend(vector);
        }
        file.extend(b"more");
        file
    }

    fn error(bytes: &[u8]) -> String {
        detect(bytes).unwrap_err().to_string().lines().next().unwrap().to_owned()
    }

    #[test]
    fn every_form_is_known_by_its_bytes() {
        let artifact = portable("1.15.0");
        let version = Version { major: 1, minor: 15, patch: 0 };
        assert_eq!(detect(&artifact), Ok((Form::Portable(version), artifact.as_slice())));
        let export = export(&portable("1.14.0"), &artifact);
        assert_eq!(detect(&export), Ok((Form::JaxExport(version), artifact.as_slice())));
        let text = b"module @m {}";
        assert_eq!(detect(text), Ok((Form::Text, text.as_slice())));
        assert_eq!(Form::JaxExport(version).to_string(), "jax.export file of StableHLO 1.15.0");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_was_found() {
        assert_eq!(error(b""), "0 bytes, expected a StableHLO program");
        assert_eq!(error(b"\x7fELF"), "neither text nor MLIR bytecode, expected a StableHLO program");
        assert_eq!(error(b"int main() {}"), "neither text nor MLIR bytecode, expected a StableHLO program");
        let raw = [BYTECODE, b"\x0dMLIR22.1.0\0rest"].concat();
        let portable_wanted = "expected a portable artifact, which other versions read too";
        assert_eq!(error(&raw), format!("MLIR bytecode of MLIR22.1.0, {portable_wanted}"));
        assert_eq!(error(BYTECODE), format!("MLIR bytecode of an unknown program, {portable_wanted}"));
        assert_eq!(error(&portable("1.x")), format!("MLIR bytecode of StableHLO_v1.x, {portable_wanted}"));
        assert_eq!(error(&portable("1.22.0")), "StableHLO 1.22.0, expected at most 1.21");
        let (gradient, program) = (portable("1.14.0"), portable("1.15.0"));
        let export = export(&gradient, &program);
        let (found, expected) = (program.len() - 1, program.len());
        let cut = &export[..export.len() - "more".len() - 1];
        assert_eq!(error(cut), format!("{found} bytes of a portable artifact, expected {expected}"));
        // Bytecode in a file of another kind.
        let other = [b"flat".as_slice(), &program].concat();
        assert_eq!(error(&other), "neither text nor MLIR bytecode, expected a StableHLO program");
    }

    #[test]
    fn a_damaged_export_is_no_panic() {
        let (gradient, program) = (portable("1.14.0"), portable("1.15.0"));
        let whole = export(&gradient, &program);
        for length in 0..whole.len() - "more".len() {
            assert!(detect(&whole[..length]).is_err(), "{length} bytes");
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                _ = detect(&damaged);
                // The highest bytes of a distance lead furthest.
                damaged[at.saturating_sub(3)..at].fill(byte);
                _ = detect(&damaged);
            }
        }
    }
}
