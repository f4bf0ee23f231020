//! Masks of tokens, computed while a step runs.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, sync_channel},
    },
};

use llguidance::{Matcher, toktrie::SimpleVob};
use rayon::ThreadPool;

use super::problem::{one_line, refuse};
use crate::{
    engine::{Grammar, GrammarState},
    error::Error,
};

/// A grammar that was compiled for the tokens of a model.
pub(super) struct TokenGrammar {
    /// At the start of an answer.
    start: Mutex<Matcher>,
    threads: Arc<ThreadPool>,
}

/// An answer under construction.
struct TokenGrammarState {
    place: Place,
    threads: Arc<ThreadPool>,
}

/// Where the matcher is, and how far its mask.
enum Place {
    /// Here, without a mask.
    Here(Box<Matcher>),
    /// Here, with the mask of what may follow.
    Masked(Box<Matcher>, SimpleVob),
    /// On another thread, which computes the mask.
    Away(Receiver<Computed>),
    /// Nowhere, after an error.
    Lost,
}

type Computed = (Box<Matcher>, Result<SimpleVob, String>);

impl TokenGrammar {
    pub(super) fn new(start: Matcher, threads: Arc<ThreadPool>) -> Self {
        Self { start: Mutex::new(start), threads }
    }
}

impl Grammar for TokenGrammar {
    fn begin(&self) -> Result<Box<dyn GrammarState>, Error> {
        // Answers share nothing, so that none waits for another one or sees what it did.
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner).deep_clone();
        let place = Place::Here(Box::new(start));
        Ok(Box::new(TokenGrammarState { place, threads: self.threads.clone() }))
    }
}

impl fmt::Debug for TokenGrammar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenGrammar").finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenGrammarState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenGrammarState").finish_non_exhaustive()
    }
}

fn compute(mut matcher: Box<Matcher>) -> Computed {
    // At the end of the answer only an end of text may follow.
    let mask = matcher.compute_mask_or_eos().map_err(one_line);
    (matcher, mask)
}

impl TokenGrammarState {
    /// Takes the matcher and its mask, which is computed unless it is there.
    fn masked(&mut self) -> Result<(Box<Matcher>, SimpleVob), Error> {
        let (matcher, mask) = match std::mem::replace(&mut self.place, Place::Lost) {
            Place::Here(matcher) => compute(matcher),
            Place::Masked(matcher, mask) => (matcher, Ok(mask)),
            Place::Away(computed) => computed.recv().map_err(|_| refuse("its mask was not computed"))?,
            Place::Lost => return Err(refuse("it failed before")),
        };
        Ok((matcher, mask.map_err(refuse)?))
    }
}

impl GrammarState for TokenGrammarState {
    fn prepare(&mut self) {
        self.place = match std::mem::replace(&mut self.place, Place::Lost) {
            Place::Here(matcher) => {
                let (sender, computed) = sync_channel(1);
                // Nobody waits for the mask of a request that was cancelled.
                self.threads.spawn(move || _ = sender.send(compute(matcher)));
                Place::Away(computed)
            }
            other => other,
        };
    }

    fn allowed(&mut self) -> Result<&[u32], Error> {
        let (matcher, mask) = self.masked()?;
        self.place = Place::Masked(matcher, mask);
        match &self.place {
            Place::Masked(_, mask) => Ok(mask.as_slice()),
            _ => Ok(&[]),
        }
    }

    fn accept(&mut self, token: u32) -> Result<bool, Error> {
        let mut matcher = match std::mem::replace(&mut self.place, Place::Lost) {
            Place::Here(matcher) | Place::Masked(matcher, _) => matcher,
            Place::Away(computed) => computed.recv().map_err(|_| refuse("its mask was not computed"))?.0,
            Place::Lost => return Err(refuse("it failed before")),
        };
        matcher.consume_token(token).map_err(|error| refuse(one_line(error)))?;
        let is_complete = matcher.is_stopped();
        self.place = Place::Here(matcher);
        Ok(is_complete)
    }
}
