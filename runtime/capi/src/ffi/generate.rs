//! `mlxcel_engine_generate`.

use std::{ffi::c_void, time::Duration};

use mlxcel_runtime::{AnswerPiece, Next};

use super::{
    engine::{Engine, model},
    pointers::{Error, guard},
    requests,
    stream::{Answer, HeldPiece, hold},
    types::{OnPiece, Request},
};
use crate::errors::Problem;

/// How long a wait for a piece goes on before it is begun anew.
const WAIT: Duration = Duration::from_secs(3600);

/// Answers a request, and waits for the whole answer. `on_piece`, which may be NULL, gets every piece on this thread. Any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxcel_engine_generate(
    engine: *const Engine,
    request: *const Request,
    on_piece: OnPiece,
    user: *mut c_void,
    answer: *mut *mut Answer,
) -> *mut Error {
    guard(|| {
        let model = model(engine)?;
        let stream = model.submit(requests::read(&model, request)?)?;
        loop {
            match stream.next(WAIT)? {
                Next::Nothing => {}
                Next::End => break,
                Next::Piece(piece) => {
                    if !deliver(on_piece, user, &piece) {
                        stream.cancel();
                    }
                }
            }
        }
        let whole = stream.answer().ok_or(Problem::Internal)?;
        hold(whole, answer)
    })
}

/// Gives a piece to the caller. Returns whether more is wanted.
fn deliver(on_piece: OnPiece, user: *mut c_void, piece: &AnswerPiece) -> bool {
    let Some(on_piece) = on_piece else { return true };
    let mut held = HeldPiece::default();
    // SAFETY: the caller gave the function for this, and the piece and what it points to live until it returns.
    unsafe { on_piece(user, &held.fill(piece)) }
}
