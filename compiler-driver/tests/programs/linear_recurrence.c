// A linear recurrence for CPUs: h[t] = a[t] · h[t - 1] + scale · x[t], for each channel.

#include <stddef.h>
#include <stdint.h>

void linear_recurrence(const float *restrict a, const float *restrict x, float *restrict h, int64_t channels,
                       float scale, int64_t steps, size_t begin, size_t end) {
  for (size_t c = begin; c < end; ++c) h[c] = scale * x[c];
  for (int64_t t = 1; t < steps; ++t) {
    a += channels, x += channels, h += channels;
    for (size_t c = begin; c < end; ++c) h[c] = a[c] * h[c - channels] + scale * x[c];
  }
}
