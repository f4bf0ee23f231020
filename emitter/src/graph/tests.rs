//! Tests of errors, scopes and poisoned values.

use super::*;

#[test]
fn finish_returns_the_first_error_with_its_scope() {
    let mut g = Graph::new();
    let (two, three) = (g.argument(Dtype::F32, &[2]), g.argument(Dtype::F32, &[3]));
    let sum = g.scope("layer.3", |g| g.scope("attention", |g| g.scope("q_proj", |g| g.add(two, three))));
    let after = g.scope("mlp", |g| g.multiply(sum, two));
    g.scope("head", |g| g.not(two));
    assert_eq!(
        g.finish("f", &[after]).unwrap_err().to_string(),
        "layer.3.attention.q_proj: stablehlo.add: found tensor<2xf32> and tensor<3xf32>, expected two of one type"
    );
}

#[test]
fn a_scope_ends_after_its_body() {
    let mut g = Graph::new();
    let x = g.scope("layer.0", |g| g.argument(Dtype::F32, &[2]));
    g.not(x);
    assert_eq!(
        g.finish("f", &[]).unwrap_err().to_string(),
        "graph: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
    );
}

#[test]
fn poisoned_operands_add_no_ops() {
    let mut g = Graph::new();
    let x = g.argument(Dtype::F32, &[2]);
    let poisoned = g.not(x);
    assert_eq!(poisoned, POISON);
    assert_eq!(g.type_of(poisoned), TensorType::new(Dtype::F32, []));
    assert_eq!(g.add(x, poisoned), POISON);
    assert_eq!(g.if_else(poisoned, |_| vec![x, x], |_| vec![x, x]), [POISON; 2]);
    assert_eq!(g.sort(&[x, poisoned], 0, true, |g, values| g.lt(values[0], values[1])), [POISON; 2]);
    assert!(g.regions[0].ops.is_empty());
}

#[test]
fn an_error_in_a_region_poisons_the_op_around_it() {
    let mut g = Graph::new();
    let x = g.argument(Dtype::F32, &[2]);
    let end = g.host_argument();
    let state = g.scope("loop", |g| g.for_loop(end, 1, &[x], |g, _, state| vec![g.not(state[0])]));
    assert_eq!(state, [POISON]);
    assert_eq!(
        g.finish("f", &state).unwrap_err().to_string(),
        "loop: stablehlo.not: found tensor<2xf32>, expected an integer or boolean type"
    );
}
