//! Pages that requests share, and pages behind a window.

use super::*;
use crate::{engine::PoolUsage, model::ModelRunner};

/// Runs a prompt, compares the answer with a fresh engine's, and returns the prompt tokens cached and run.
fn cached(engine: &mut Engine<ScriptedModel>, text: &[u32], max_tokens: usize) -> (usize, usize) {
    let limits = engine.runner().limits();
    let pools = limits.pools.iter().map(|pool| PoolLimits { pages: 64, ..*pool }).collect();
    let fresh = ModelLimits { pools, ..limits.clone() };
    let found = generate(engine, request(text, max_tokens)).unwrap();
    engine.check();
    let expected = generate(&mut super::engine(model(fresh)), request(text, max_tokens)).unwrap();
    assert_eq!(found.tokens, expected.tokens);
    (found.timings.cached_tokens, found.timings.prompt_tokens)
}

#[test]
fn a_prompt_reads_the_pages_of_an_earlier_one() {
    let mut engine = engine(model(limits(512, &[(None, 16)], &[ragged(32, 4, 8)])));
    let text = prompt(150, 1);
    assert_eq!(cached(&mut engine, &text, 5), (0, 150));
    assert_eq!(cached(&mut engine, &text, 5), (128, 22));
    // The last token is always run.
    assert_eq!(cached(&mut engine, &text[..128], 1), (64, 64));
    assert_eq!(cached(&mut engine, &text[..129], 1), (128, 1));
    // Another token early on.
    let mut other = text.clone();
    other[70] = (other[70] + 1) % 12;
    assert_eq!(cached(&mut engine, &other, 1), (64, 86));
}

#[test]
fn a_page_after_other_tokens_is_another_page() {
    let mut engine = engine(model(limits(512, &[(None, 16)], &[ragged(32, 4, 8)])));
    let text = prompt(200, 1);
    let mut other = text.clone();
    other[70] = (other[70] + 1) % 12;
    cached(&mut engine, &text, 5);
    assert_eq!(cached(&mut engine, &other, 5).0, 64);
    assert_eq!(cached(&mut engine, &other, 5).0, 192);
    assert_eq!(cached(&mut engine, &text, 5).0, 192);
}

#[test]
fn an_answer_is_read_by_the_next_turn() {
    let mut engine = engine(model(limits(512, &[(None, 16)], &[ragged(32, 4, 8)])));
    let mut text = prompt(60, 1);
    text.extend(generate(&mut engine, request(&text, 80)).unwrap().tokens);
    text.extend([1, 2, 3]);
    assert_eq!(cached(&mut engine, &text, 4), (128, 15));
}

#[test]
fn pages_that_were_not_used_for_long_go_first() {
    let mut engine = engine(model(limits(512, &[(None, 5)], &[ragged(32, 4, 8)])));
    let texts = [prompt(130, 1), prompt(70, 2), prompt(250, 3)];
    cached(&mut engine, &texts[0], 1);
    cached(&mut engine, &texts[1], 1);
    assert_eq!(engine.usage().pools[0], PoolUsage { pages: 5, free: 2, cached: 3 });
    assert_eq!(cached(&mut engine, &texts[0], 1).0, 128);
    // Four pages: two free ones, then that of the second text, then the end of the first.
    cached(&mut engine, &texts[2], 1);
    assert_eq!(cached(&mut engine, &texts[0], 1).0, 64);
    assert_eq!(cached(&mut engine, &texts[1], 1).0, 0);
}

#[test]
fn the_cache_can_be_off() {
    let limits = limits(512, &[(None, 16)], &[ragged(32, 4, 8)]);
    let settings = EngineSettings { prefix_cache: false, ..EngineSettings::default() };
    let mut engine = engine_with(model(limits), settings);
    let text = prompt(150, 1);
    cached(&mut engine, &text, 1);
    assert_eq!(cached(&mut engine, &text, 1).0, 0);
    assert_eq!(engine.usage().pools[0].free, 16);
}

#[test]
fn shared_pages_count_once() {
    let mut engine = engine(model(limits(512, &[(None, 4)], &[ragged(32, 4, 8)])));
    let text = prompt(130, 1);
    generate(&mut engine, request(&text, 1)).unwrap();
    // Each needs three pages, two of which both read.
    engine.submit(request(&text, 4)).unwrap();
    engine.submit(request(&text, 4)).unwrap();
    engine.step();
    engine.check();
    assert_eq!((engine.usage().running, engine.usage().waiting), (2, 0));
    finish(&mut engine);
}

#[test]
fn pages_behind_a_window_are_given_back() {
    let limits = limits(512, &[(Some(64), 3)], &[ragged(31, 4, 8)]);
    let settings = EngineSettings { prefix_cache: false, ..EngineSettings::default() };
    let mut engine = engine_with(model(limits), settings);
    let id = engine.submit(request(&prompt(300, 1), 200)).unwrap();
    let mut least = usize::MAX;
    while engine.step() {
        engine.check();
        least = least.min(engine.usage().pools[0].free);
    }
    // 500 positions are eight pages. Between steps the window touches two, and a step's rows can touch a third.
    assert_eq!((answer(&mut engine, id).tokens.len(), least), (200, 1));
    assert_eq!(engine.usage().pools[0].free, 3);
}

#[test]
fn a_small_window_pool_cuts_chunks() {
    // 64 * 2 - 62 - 40 = 26 rows at a time.
    let limits = limits(512, &[(Some(40), 2)], &[ragged(512, 4, 8)]);
    let mut engine = engine(model(limits));
    cached(&mut engine, &prompt(200, 1), 30);
    assert!(engine.runner().calls().iter().all(|(_, rows)| *rows <= 26));
}

#[test]
fn a_hit_needs_the_pages_within_the_window() {
    let limits = limits(512, &[(None, 16), (Some(100), 5)], &[ragged(32, 4, 8)]);
    let mut engine = engine(model(limits));
    let text = prompt(300, 1);
    cached(&mut engine, &text, 1);
    assert_eq!(cached(&mut engine, &text, 1), (256, 44));
    // Another text takes the pool with a window: what the full pool has is not enough.
    cached(&mut engine, &prompt(300, 2), 1);
    cached(&mut engine, &prompt(300, 3), 1);
    assert_eq!(cached(&mut engine, &text, 1).0, 0);
}
