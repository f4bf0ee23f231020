//! Flags that change iree-compile's time and not its code.

/// Every pass looks at all operations that the compiler knows, so that inputs are left out that no module is.
const ALWAYS: [&str; 4] =
    ["--verify=false", "--mlir-disable-threading", "--iree-plugin=-input_torch", "--iree-plugin=-input_tosa"];

/// The flag that names the device of a target.
const DEVICE: &str = "--iree-hal-target-device=";

/// The plugins of GPUs, each after the device that needs it.
const OF_GPUS: [(&str, &str); 4] = [
    ("cuda", "hal_target_cuda"),
    ("hip", "hal_target_rocm"),
    ("metal", "hal_target_metal_spirv"),
    ("vulkan", "hal_target_vulkan_spirv"),
];

/// Returns the flags for a compiler that has those of a target.
pub(super) fn flags(of_target: &[String]) -> Vec<String> {
    let devices: Vec<_> = of_target.iter().filter_map(|flag| flag.strip_prefix(DEVICE)).collect();
    let others = OF_GPUS.into_iter().filter(|(device, _)| !devices.contains(device));
    let without: Vec<_> = others.map(|(_, plugin)| format!("--iree-plugin=-{plugin}")).collect();
    ALWAYS.into_iter().map(str::to_owned).chain(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn a_target_has_the_plugin_of_its_device() {
        for target in Target::all().unwrap() {
            let device = target.flags.iter().find_map(|flag| flag.strip_prefix(DEVICE)).unwrap();
            let left_out = flags(&target.flags);
            let has = |plugin: &str| left_out.contains(&format!("--iree-plugin=-{plugin}"));
            let kept: Vec<_> = OF_GPUS.iter().filter(|(_, plugin)| !has(plugin)).map(|of| of.0).collect();
            let expected: &[&str] = if device == "local" { &[] } else { &[device] };
            assert_eq!(kept, expected, "{}", target.name);
        }
    }
}
