//! `mlxcel_bundle_*`.

use std::{
    ffi::{CString, c_char},
    path::Path,
    ptr,
};

use mlxcel_artifacts::{Bundle as Opened, BundleKind, Error as BundleError, PublicKey, Store};
use mlxcel_runtime::OriginRules;

use super::{
    pointers::{Error, guard, guard_or, need_text, number, options, put, text, to_handle},
    types::BundleOptions,
};
use crate::{
    errors::Problem,
    handles::{Object as _, object},
};

/// A bundle that was opened and may run.
#[derive(Debug)]
pub struct Bundle {
    _private: [u8; 0],
}

/// A bundle, with its texts for C.
#[derive(Debug)]
pub(crate) struct HeldBundle {
    pub(crate) bundle: Opened,
    digest: CString,
    model: CString,
    note: Option<CString>,
}

object!(HeldBundle, 2, "a bundle");

/// Opens a bundle, a folder or a name in the store, and verifies all but its weights, which are verified when they are loaded.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_bundle_open(
    path: *const c_char,
    bundle_options: *const BundleOptions,
    bundle: *mut *mut Bundle,
) -> *mut Error {
    guard(|| {
        let path = need_text("path", path)?;
        let BundleOptions { size: _, store, require_signature } = options("options", bundle_options)?;
        let key = text("require_signature", require_signature)?.map(PublicKey::find).transpose()?;
        let store = match Store::from_env(text("store", store)?.map(Path::new)) {
            // A folder needs no store.
            Err(BundleError::NoStore) => None,
            store => Some(store?),
        };
        let rules = OriginRules { store, require_signature: key, ..OriginRules::default() };
        let opened = rules.open(Path::new(path))?;
        rules.check(&opened)?;
        let held = |text: String| CString::new(text).unwrap_or_default();
        let note = rules.note(&opened)?.map(held);
        let (digest, model) = (held(opened.digest().to_string()), held(opened.manifest().model.clone()));
        let handle = HeldBundle::table().add(HeldBundle { bundle: opened, digest, model, note });
        put("bundle", bundle, to_handle(handle)).inspect_err(|_| drop(HeldBundle::table().remove(handle)))
    })
}

/// Returns the digest of the manifest, which names all files; NULL for a bad handle. Valid until it is closed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_bundle_digest(bundle: *const Bundle) -> *const c_char {
    guard_or(ptr::null(), || Ok(HeldBundle::table().get(number(bundle))?.digest.as_ptr()))
}

/// Returns the model's name; NULL for a bad handle. Valid until it is closed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_bundle_model(bundle: *const Bundle) -> *const c_char {
    guard_or(ptr::null(), || Ok(HeldBundle::table().get(number(bundle))?.model.as_ptr()))
}

/// Returns a note if the bundle's code was neither compiled here nor signed as required: it runs with your rights. NULL if
/// there is none. Valid until it is closed. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_bundle_note(bundle: *const Bundle) -> *const c_char {
    guard_or(ptr::null(), || {
        let held = HeldBundle::table().get(number(bundle))?;
        Ok(held.note.as_ref().map_or(ptr::null(), |note| note.as_ptr()))
    })
}

/// Returns whether the bundle is a program, not a model; false for a bad handle. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_bundle_is_program(bundle: *const Bundle) -> bool {
    guard_or(false, || {
        Ok(HeldBundle::table().get(number(bundle))?.bundle.manifest().kind == BundleKind::Program)
    })
}

/// Closes a bundle. What was loaded of it stays. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mlxcel_bundle_close(bundle: *mut Bundle) {
    drop(HeldBundle::table().remove(number(bundle)));
}

/// Returns the bundle of a handle.
pub(crate) fn opened(bundle: *const Bundle) -> Result<Opened, Problem> {
    Ok(HeldBundle::table().get(number(bundle))?.bundle.clone())
}
