//! Weights in groups as `groups.h` numbers and `matmul_groups.h` names their forms.

use mlxcel_models::FloatCodes;
use safetensors::Dtype;

use super::{
    arguments::{Argument, Arguments, KernelFunction, arguments},
    numbers::element_number,
};
use crate::group_form::{GroupForm, Groups, List, Scales};

arguments! {
    /// Inputs of weights in groups that share scales, and the scales' type as C numbers it.
    struct GroupSizes {
        group: usize,
        scale_type: usize,
    }

    /// How weights are stored in groups.
    struct GroupFormat {
        bits: usize,
        form: usize,
        sizes: GroupSizes,
    }
}

impl From<GroupForm> for GroupSizes {
    fn from(form: GroupForm) -> Self {
        let (size, dtype) = match form.scales {
            Scales::Symmetric(groups)
            | Scales::Zeros(groups)
            | Scales::Minima(groups)
            | Scales::Floats(_, groups)
            | Scales::Listed(_, groups) => {
                let Groups { size, dtype } = groups;
                (size, dtype)
            }
            // Their kernels know the types.
            Scales::Superblocks
            | Scales::Halves
            | Scales::HalfMinima
            | Scales::ListedBlocks
            | Scales::ListedHalves => (form.run(), Dtype::F16),
        };
        Self { group: size, scale_type: element_number(dtype) }
    }
}

impl From<GroupForm> for GroupFormat {
    fn from(form: GroupForm) -> Self {
        let number = match form.scales {
            // Codes that are floats have the scales of symmetric ones, and kernels of their own.
            Scales::Symmetric(_) | Scales::Floats(..) => 0,
            Scales::Zeros(_) => 1,
            Scales::Minima(_) => 2,
            Scales::Superblocks => 3,
            Scales::Halves => 4,
            Scales::Listed(List::E2m1, _) => 5,
            Scales::Listed(List::Iq4, _) => 6,
            Scales::ListedBlocks => 7,
            Scales::HalfMinima => 8,
            Scales::ListedHalves => 9,
        };
        Self { bits: form.bits, form: number, sizes: form.into() }
    }
}

/// How weights are stored whose codes are floating-point numbers.
#[derive(Debug, Clone)]
pub(crate) struct FloatFormat {
    sizes: GroupSizes,
    /// What codes of 4 bits stand for: `number_list` of `group_form.h`. The kernels of 8 bits are not told.
    pub(super) list: Option<usize>,
}

impl From<GroupForm> for FloatFormat {
    fn from(form: GroupForm) -> Self {
        let list = match form.scales {
            Scales::Floats(FloatCodes::E2m1, _) => Some(0),
            Scales::Floats(FloatCodes::Nf4, _) => Some(1),
            Scales::Floats(FloatCodes::Fp4, _) => Some(2),
            _ => None,
        };
        Self { sizes: form.into(), list }
    }
}

impl Argument for FloatFormat {
    fn add_to(self, arguments: &mut Arguments, name: &'static str) {
        self.sizes.add_to(arguments, name);
        if let Some(list) = self.list {
            list.add_to(arguments, "list");
        }
    }
}

/// Declares the functions of every form that there is a kernel for, each for plain rows and for rows of experts.
macro_rules! products {
    ($($bits:literal $scales:pat => $file:literal, $name:literal;)*) => {
        /// Returns the functions that multiply by weights in a form, for plain rows and for rows of experts.
        pub(super) fn products(form: GroupForm) -> [KernelFunction; 2] {
            let (file, names) = match (form.bits, form.scales) {
                $(($bits, $scales) => ($file, [$name, concat!($name, "_experts")]),)*
                // `Scales::widths` has no others. The test of prototypes would miss this name.
                _ => ("matmul_groups_4", ["matmul_unknown_form"; 2]),
            };
            names.map(|name| KernelFunction { file, name })
        }
    };
}

products! {
    2 Scales::Zeros(_) => "matmul_groups_2", "matmul_q2_zeros";
    2 Scales::Minima(_) => "matmul_groups_2", "matmul_q2_minima";
    2 Scales::HalfMinima => "matmul_groups_2", "matmul_q2_half_minima";
    3 Scales::Zeros(_) => "matmul_groups_3", "matmul_q3_zeros";
    3 Scales::Minima(_) => "matmul_groups_3", "matmul_q3_minima";
    3 Scales::Halves => "matmul_groups_3", "matmul_q3_halves";
    4 Scales::Symmetric(_) => "matmul_groups_4", "matmul_q4_symmetric";
    4 Scales::Zeros(_) => "matmul_groups_4", "matmul_q4_zeros";
    4 Scales::Minima(_) => "matmul_groups_4", "matmul_q4_minima";
    4 Scales::Superblocks => "matmul_groups_4", "matmul_q4_superblocks";
    4 Scales::Listed(List::E2m1, _) => "matmul_groups_4", "matmul_q4_e2m1";
    4 Scales::Listed(List::Iq4, _) => "matmul_groups_4", "matmul_q4_iq4";
    4 Scales::ListedBlocks => "matmul_groups_4", "matmul_q4_iq4_blocks";
    4 Scales::ListedHalves => "matmul_groups_4", "matmul_q4_e2m1_halves";
    5 Scales::Symmetric(_) => "matmul_groups_5", "matmul_q5_symmetric";
    5 Scales::Minima(_) => "matmul_groups_5", "matmul_q5_minima";
    5 Scales::Superblocks => "matmul_groups_5", "matmul_q5_superblocks";
    6 Scales::Minima(_) => "matmul_groups_6", "matmul_q6_minima";
    6 Scales::Halves => "matmul_groups_6", "matmul_q6_halves";
    4 Scales::Floats(..) => "matmul_f4", "matmul_f4";
    8 Scales::Floats(..) => "matmul_e4m3", "matmul_e4m3";
    8 Scales::Symmetric(_) => "matmul_groups_8", "matmul_q8_symmetric";
    8 Scales::Zeros(_) => "matmul_groups_8", "matmul_q8_zeros";
    8 Scales::Minima(_) => "matmul_groups_8", "matmul_q8_minima";
}
