// Routing of a mixture of experts: which experts compute which tokens, and their
// weights.
//
//   logits           [batch][tokens][experts]
//   lengths          [batch]; tokens from lengths[b] on are padding
//   weights          [batch][tokens][active]: softmax weights of the token's
//                    `active` largest logits, largest first; the softmax is over
//                    those if `normalized`, otherwise over all; 0 for padding
//   slots            [batch][tokens][active]: the row of each token and expert
//   row_tokens       [rows], with rows = batch * tokens * active: the token of a row
//   row_experts      [rows]: the expert of a row
//   segment_experts  [segments]: the expert of a segment of consecutive rows
//   segment_begins   [segments + 1]
//
// A single token has a segment for each of its experts. Several tokens have one
// for every expert, which may be empty. There is a single item, because routing
// takes little time beside the products.

#include "kernels.h"

// Chooses the `active` largest logits of a row; of equal ones, the first.
static void choose(const float *logits, index experts, index active,
                   float *values, int32_t *chosen) {
  for (index e = 0; e < experts; ++e) {
    index at = e < active ? e : active - 1;
    if (e >= active && !(logits[e] > values[at]))
      continue;
    for (; at > 0 && logits[e] > values[at - 1]; --at) {
      values[at] = values[at - 1];
      chosen[at] = chosen[at - 1];
    }
    values[at] = logits[e];
    chosen[at] = (int32_t)e;
  }
}

static void weigh(const float *logits, index experts, index active,
                  index normalized, float *values) {
  const float max = values[0];
  float sum = 0.0f;
  if (!normalized)
    for (index e = 0; e < experts; ++e)
      sum += exp2_poly((logits[e] - max) * LOG2_E);
  for (index j = 0; j < active; ++j) {
    values[j] = exp2_poly((values[j] - max) * LOG2_E);
    sum += normalized ? values[j] : 0.0f;
  }
  for (index j = 0; j < active; ++j)
    values[j] /= sum;
}

static void fill(int32_t *x, index count, int32_t value) {
#pragma clang loop vectorize(disable) unroll(disable)
  for (index i = 0; i < count; ++i)
    x[i] = value;
}

void route(const float *logits, const int32_t *lengths, float *weights,
           int32_t *slots, int32_t *row_tokens, int32_t *row_experts,
           int32_t *segment_experts, int32_t *segment_begins, index batch,
           index tokens, index experts, index active, index normalized,
           index begin, index end) {
  const index all = batch * tokens, rows = all * active;
  if (begin >= end)
    return;
  fill(row_tokens, rows, 0);
  fill(row_experts, rows, 0);
  for (index t = 0; t < all; ++t) {
    float *values = weights + t * active;
    int32_t *chosen = slots + t * active;
    if (t % tokens >= real_rows(lengths, t / tokens, tokens)) {
      fill(chosen, active, -1);
      for (index j = 0; j < active; ++j)
        values[j] = 0.0f;
      continue;
    }
    choose(logits + t * experts, experts, active, values, chosen);
    weigh(logits + t * experts, experts, active, normalized, values);
  }
  if (all == 1) {
    for (index j = 0; j < active; ++j) {
      segment_experts[j] = row_experts[j] = slots[j];
      segment_begins[j] = slots[j] = (int32_t)j;
    }
    segment_begins[active] = (int32_t)active;
    return;
  }
  fill(segment_begins, experts + 1, 0);
  for (index i = 0; i < rows; ++i)
    if (slots[i] >= 0)
      ++segment_begins[slots[i] + 1];
  for (index e = 0; e < experts; ++e) {
    segment_begins[e + 1] += segment_begins[e];
    segment_experts[e] = segment_begins[e]; // the next free row
  }
  for (index i = 0; i < rows; ++i) {
    const int32_t expert = slots[i];
    // Any row that exists, because padding has the weight 0.
    slots[i] = 0;
    if (expert < 0)
      continue;
    slots[i] = segment_experts[expert]++;
    row_tokens[slots[i]] = (int32_t)(i / active);
    row_experts[slots[i]] = expert;
  }
  for (index e = 0; e < experts; ++e)
    segment_experts[e] = (int32_t)e;
}
