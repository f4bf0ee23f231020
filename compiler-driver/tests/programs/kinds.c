// Takes every kind of tensor and of attribute.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// sums[i] adds up what it takes, odd[i] and next[i] are of u32[i], and swapped[i] has the parts of c64[i] the other way round.
void kinds(const bool *b, const int8_t *i8, const uint16_t *u16, const uint32_t *u32, const int64_t *i64,
           const double *f64, const _Float16 *f16, const __bf16 *bf16, const float *c64, double *sums, bool *odd,
           uint32_t *next, float *swapped, double by, bool flag, float scale, int64_t shift, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const double integers = (double)i8[i] + u16[i] + u32[i] + (double)i64[i];
    const double floats = f64[i] + (double)f16[i] + (double)(float)bf16[i];
    sums[i] = scale * (b[i] + integers + floats) + by + flag + (double)shift;
    odd[i] = u32[i] & 1;
    next[i] = u32[i] + 1;
    swapped[2 * i] = c64[2 * i + 1];
    swapped[2 * i + 1] = c64[2 * i];
  }
}
