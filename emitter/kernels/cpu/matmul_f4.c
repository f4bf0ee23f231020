// out = a * w^T with weights that are numbers of a list of 16; float_codes.h documents
// the arguments, and f4.h their codes. `list` is a number_list.

#include "f4.h"
#include "float_codes_f32.h"

void matmul_f4(const uint8_t *w, const uint8_t *w_scale, const float *a,
               const int32_t *lengths, float *out, index batch, index tokens,
               index n, index k, GROUPS_SIZES, index list, index begin,
               index end) {
  const product whole = WHOLE(a, n, k, codes_of((number_list)list));
  multiply_rows(&whole, lengths, batch, tokens, begin, end);
}

void matmul_f4_experts(const uint8_t *w, const uint8_t *w_scale, const float *a,
                       const int32_t *experts, const int32_t *begins,
                       float *out, index n, index k, GROUPS_SIZES, index list,
                       index begin, index end) {
  const product whole = WHOLE(a, n, k, codes_of((number_list)list));
  multiply_experts(&whole, experts, begins, begin, end);
}

void gather_f4(const uint8_t *w, const uint8_t *w_scale, GATHER_ROWS,
               GROUPS_SIZES, index list, GATHER_RANGE) {
  const product x = WHOLE(NULL, 0, width, codes_of((number_list)list));
  gather(&x, ids, count, begin, end);
}
