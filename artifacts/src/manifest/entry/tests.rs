use super::*;
use crate::tensor::type_text;

#[test]
fn entries_by_role() {
    let part = |dtype, width| PagePart { dtype, shape: vec![4, 8, PAGE, width] };
    let pools = [
        Pool { window: None, parts: vec![part(Dtype::I8, 64), part(Dtype::F16, 2)] },
        Pool { window: Some(100), parts: vec![part(Dtype::BF16, 64)] },
    ];
    let text = |role, pools: &[Pool]| {
        let entry = Entry::new(role, &Interface { context: 1000, width: 50, pools });
        let arguments =
            entry.arguments.iter().map(|a| format!("{} {}", a.kind, type_text(a.dtype, &a.shape)));
        let results = entry.results.iter().map(|r| format!("{} {}", r.kind, type_text(r.dtype, &r.shape)));
        format!(
            "{}: {} -> {}",
            entry.name,
            arguments.collect::<Vec<_>>().join(", "),
            results.collect::<Vec<_>>().join(", ")
        )
    };
    let sizes = |uniform| CallSizes { rows: 32, sequences: 2, selected: 3, uniform, in_place: false };
    assert_eq!(
        text(Role::Step(sizes(false)), &pools),
        "step_32: tokens i32[32], positions i32[32], begins i32[3], starts i32[2], rows i32[1], \
         pages of pool 0 i32[2,16], pages of pool 1 i32[2,16], selected i32[3], selected_count i32[1], \
         cache 0.0 i8[0,4,8,64,64], cache 0.1 f16[0,4,8,64,2], cache 1.0 bf16[0,4,8,64,64] \
         -> next_token i32[3], logits f32[3,50], cache 0.0 i8[0,4,8,64,64], cache 0.1 f16[0,4,8,64,2], \
         cache 1.0 bf16[0,4,8,64,64]"
    );
    assert_eq!(
        text(Role::Step(sizes(true)), &pools[1..]),
        "step_32: tokens i32[32], positions i32[32], end i32[], pages of pool 0 i32[2,3], \
         first pages of pool 0 i32[2], slots of pool 0 i32[32], selected i32[3], \
         cache 0.0 bf16[0,4,8,64,64] -> next_token i32[3], logits f32[3,50], cache 0.0 bf16[0,4,8,64,64]"
    );
    assert_eq!(
        text(Role::Embed(sizes(false)), &[]),
        "embed_32: tokens i32[32], positions i32[32], begins i32[3], starts i32[2], rows i32[1], \
         pages of pool 0 i32[2,16] -> embedding f32[2,50]"
    );
    assert_eq!(
        text(Role::Embed(sizes(true)), &[]),
        "embed_32: tokens i32[32], positions i32[32], lengths i32[2] -> embedding f32[2,50]"
    );
    assert_eq!(
        text(Role::Best { rows: 3 }, &pools),
        "best_3: logits f32[3,50], selected_count i32[1] \
         -> best_tokens i32[3,50], best_logits f32[3,50], log_sum_exp f32[3]"
    );
    assert_eq!(
        text(Role::Prefill { tokens: 128 }, &[]),
        "prefill_128: tokens i32[1,128], positions i32[1] -> next_token i32[1], logits f32[1,50]"
    );
}
