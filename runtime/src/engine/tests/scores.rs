//! Logits of known texts.

use super::*;
use crate::error::EngineError;

#[test]
fn a_text_has_the_same_logits_in_pieces() {
    for prefix_cache in [true, false] {
        let settings = EngineSettings { prefix_cache, ..EngineSettings::default() };
        let mut engine = engine_with(model(plain()), settings);
        let text = prompt(200, 3);
        let whole = engine.score(&text, 0).unwrap();
        assert_eq!(whole.len(), 200);
        let pieces: Vec<Vec<f32>> = (0..200)
            .step_by(64)
            .flat_map(|from| engine.score(&text[..(from + 64).min(200)], from).unwrap())
            .collect();
        assert_eq!(pieces, whole);
        engine.check();
        // The token after the text is what a request gets.
        let next = generate(&mut engine, request(&text, 1)).unwrap().tokens[0] as usize;
        let last = &whole[199];
        assert!(last.iter().all(|logit| *logit <= last[next]));
    }
}

#[test]
fn scores_of_what_is_not_there_are_refused() {
    let mut engine = engine(counting(limits(256, &[(None, 2)], &[ragged(8, 4, 8)])));
    assert!(matches!(engine.score(&[], 0), Err(Error::NoTokens)));
    assert!(matches!(engine.score(&[1, 2], 2), Err(Error::NoTokens)));
    assert!(matches!(engine.score(&[12], 0), Err(Error::TokenOutOfRange { .. })));
    let never = engine.score(&[1; 129], 0).unwrap_err();
    assert!(matches!(never, Error::Engine(EngineError::NeverFits { needed: 3, pages: 2, .. })));
    let id = engine.submit(request(&prompt(20, 1), 100)).unwrap();
    engine.step();
    let error = engine.score(&[1; 70], 0).unwrap_err().to_string();
    assert!(error.starts_with("1 requests run and have the pages that the text needs"), "{error}");
    engine.cancel(id);
    assert_eq!(engine.score(&[1; 70], 69).unwrap().len(), 1);
    engine.check();
}
