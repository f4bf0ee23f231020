// out = a * w^T with weights in E4M3; float_codes.h documents the arguments.

#include "e4m3.h"

#define INPUTS 1
#define INPUT_BYTES NR
#define WEIGHT_UNIT E4M3_UNIT

typedef struct {
} codes;
typedef e4m3_codes stored_codes;

#define load_codes load_e4m3

INLINE void numbers_of(const codes *codes, const stored_codes *stored, int part,
                       lanes numbers[INPUTS]) {
  (void)codes;
  numbers[0] = e4m3_numbers(stored, part);
}

#include "float_codes_f32.h"

void matmul_e4m3(const uint8_t *w, const uint8_t *w_scale, const float *a,
                 const int32_t *lengths, float *out, index batch, index tokens,
                 index n, index k, GROUPS_SIZES, index begin, index end) {
  const product whole = WHOLE(a, n, k, {});
  multiply_rows(&whole, lengths, batch, tokens, begin, end);
}

void matmul_e4m3_experts(const uint8_t *w, const uint8_t *w_scale,
                         const float *a, const int32_t *experts,
                         const int32_t *begins, float *out, index n, index k,
                         GROUPS_SIZES, index begin, index end) {
  const product whole = WHOLE(a, n, k, {});
  multiply_experts(&whole, experts, begins, begin, end);
}

void gather_e4m3(const uint8_t *w, const uint8_t *w_scale, GATHER_ROWS,
                 GROUPS_SIZES, GATHER_RANGE) {
  const product x = WHOLE(NULL, 0, width, {});
  gather(&x, ids, count, begin, end);
}
