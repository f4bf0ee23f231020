//! Errors of IREE.

use super::raw;

/// Errors after which no call on a device succeeds, as drivers name them. What CUDA calls unknown is a GPU that fell off its bus.
const LOST: [&str; 15] = [
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_CONTAINED",
    "CUDA_ERROR_UNKNOWN",
    "VK_ERROR_DEVICE_LOST",
];

/// An error of IREE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {message}")]
pub(crate) struct Error {
    status: String,
    message: String,
}

impl Error {
    /// Makes an error of arguments that this module refuses.
    pub(super) fn invalid(message: String) -> Self {
        Self { status: "invalid argument".into(), message }
    }

    /// Returns whether there was not enough memory.
    pub(crate) fn is_of_memory(&self) -> bool {
        self.status == "resource exhausted"
    }

    /// Returns whether the device is lost.
    pub(crate) fn is_of_lost_device(&self) -> bool {
        LOST.iter().any(|name| self.message.contains(name))
    }
}

/// Turns an error of the shim into a result, and frees it.
pub(super) fn check(error: *mut raw::Error) -> Result<(), Error> {
    // SAFETY: the shim returns null or an error that lives until it is freed.
    let Some(found) = (unsafe { error.as_ref() }) else { return Ok(()) };
    // SAFETY: its strings live as long as it does.
    let (code, text) = unsafe { (found.status.to_string(), found.message.to_string()) };
    // SAFETY: the error is freed once, and `found` is not used afterwards.
    unsafe { raw::shim_error_free(error) };
    Err(Error { status: code.to_lowercase().replace('_', " "), message: message(&code, &text) })
}

/// Returns `message` of `file.c:12: CODE; message; while doing something\n[ 0] in some frame`.
fn message(code: &str, text: &str) -> String {
    let start = text.find(code).map_or(0, |at| at + code.len());
    let text = text[start..].trim_start_matches([';', ' ']);
    let end = text.find("; while ").unwrap_or(text.len());
    text[..end].lines().map(str::trim).collect::<Vec<_>>().join(" ").trim_end_matches('.').to_string()
}
