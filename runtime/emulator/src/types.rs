//! Types of instructions, and where addresses are.

/// The type of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Predicate,
    /// Bits, and whether they are a signed number.
    Integer {
        bits: u32,
        signed: bool,
    },
    F16,
    Bf16,
    F32,
    F64,
    /// Two numbers of 16 bits.
    F16x2,
    Bf16x2,
}

impl Type {
    /// Returns the type with a name such as `u32`. Bits without a type count as an unsigned number.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Predicate,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "f16x2" => Self::F16x2,
            "bf16x2" => Self::Bf16x2,
            _ => {
                let signed = name.starts_with('s');
                let bits = name.strip_prefix(['s', 'u', 'b'])?.parse().ok()?;
                [8, 16, 32, 64].contains(&bits).then_some(Self::Integer { bits, signed })?
            }
        })
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Predicate => 1,
            Self::Integer { bits, .. } => bits as usize / 8,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::F16x2 | Self::Bf16x2 => 4,
            Self::F64 => 8,
        }
    }
}

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Parameter,
}

impl Space {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "global" | "const" => Self::Global,
            "shared" | "shared::cta" => Self::Shared,
            "local" => Self::Local,
            "param" => Self::Parameter,
            _ => return None,
        })
    }
}

/// Where shared memory is among generic addresses. No process has memory there.
pub(crate) const SHARED_WINDOW: u64 = 1 << 60;
/// Where local memory is among generic addresses.
pub(crate) const LOCAL_WINDOW: u64 = 1 << 61;
/// Where dynamic shared memory begins among the addresses of shared memory.
pub(crate) const DYNAMIC_SHARED: u64 = 1 << 20;
