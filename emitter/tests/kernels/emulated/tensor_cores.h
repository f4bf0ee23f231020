// Emulation of cuda/tensor_cores.h on a CPU.
#ifndef TESTS_EMULATED_TENSOR_CORES_H
#define TESTS_EMULATED_TENSOR_CORES_H

#include <string.h>

typedef uintptr_t shared_address;

enum { TENSOR_OPERANDS = 6, TENSOR_COPIES = 256 };

typedef struct {
  shared_address to;
  const void *from;
  int bytes;
} tensor_copy;

static struct {
  // What a thread passed to its last two loads or products, as in `gpu.shuffled`: the
  // address of a row, or elements.
  shared_address rows[GPU_MAX_THREADS][2];
  float elements[GPU_MAX_THREADS][2][2 * TENSOR_OPERANDS];
  unsigned exchanges[GPU_MAX_THREADS];
  // Copies that no one has waited for, in a ring, and where groups of them end.
  tensor_copy copies[GPU_MAX_THREADS][TENSOR_COPIES];
  unsigned begun[GPU_MAX_THREADS], done[GPU_MAX_THREADS];
  unsigned ends[GPU_MAX_THREADS][TENSOR_COPIES], groups[GPU_MAX_THREADS];
} tensor;

#define ADDRESS_OF(array) ((shared_address)(array))

INLINE float reciprocal_approx(float x) { return 1.0f / x; }
INLINE float max_number(float a, float b) { return fmaxf(a, b); }

// Returns where a thread puts what it passes next.
static inline unsigned tensor_exchange(void) {
  return tensor.exchanges[gpu.thread]++ % 2;
}

// Passes the address of a row to the warp. Returns where it is.
static inline unsigned tensor_pass_row(shared_address row) {
  const unsigned at = tensor_exchange();
  tensor.rows[gpu.thread][at] = row;
  gpu_yield();
  return at;
}

static inline uint16_t tensor_number(index lane, unsigned at, int matrix,
                                     index column) {
  uint16_t x;
  const shared_address row =
      tensor.rows[gpu.thread / 32 * 32 + matrix * 8 + lane][at];
  if (row % 16 != 0)
    abort();
  memcpy(&x, (const char *)row + column * 2, sizeof x);
  return x;
}

static inline void ldmatrix_x4(uint32_t x[4], shared_address row) {
  const unsigned at = tensor_pass_row(row);
  const index lane = gpu.thread % 32;
  for (int m = 0; m < 4; ++m)
    x[m] = tensor_number(lane / 4, at, m, lane % 4 * 2) |
           (uint32_t)tensor_number(lane / 4, at, m, lane % 4 * 2 + 1) << 16;
}

static inline void ldmatrix_x4_trans(uint32_t x[4], shared_address row) {
  const unsigned at = tensor_pass_row(row);
  const index lane = gpu.thread % 32;
  for (int m = 0; m < 4; ++m)
    x[m] = tensor_number(lane % 4 * 2, at, m, lane / 4) |
           (uint32_t)tensor_number(lane % 4 * 2 + 1, at, m, lane / 4) << 16;
}

static inline float tensor_element(int is_bf16, uint32_t pair, int is_high) {
  const uint16_t bits = (uint16_t)(is_high ? pair >> 16 : pair);
  return is_bf16 ? float_from_bf16(bits) : float_from_f16_portable(bits);
}

static inline void tensor_mma(int is_bf16, float sums[4], const uint32_t a[4],
                              const uint32_t b[2]) {
  const uint32_t operands[TENSOR_OPERANDS] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const index thread = gpu.thread, lane = thread % 32, warp = thread - lane;
  const unsigned at = tensor_exchange();
  for (int i = 0; i < 2 * TENSOR_OPERANDS; ++i)
    tensor.elements[thread][at][i] =
        tensor_element(is_bf16, operands[i / 2], i % 2);
  gpu_yield();
  // Two k are in the same register of a lane among four.
  double all[4] = {0, 0, 0, 0};
  for (int k = 0; k < 16; k += 2) {
    const index of_k = warp + k % 8 / 2;
    const float *row = tensor.elements[of_k + lane / 4 * 4][at] + k / 8 * 4;
    const float *even = tensor.elements[of_k + lane % 4 * 8][at] + 8 + k / 8 * 2;
    const float *odd = tensor.elements[of_k + lane % 4 * 8 + 4][at] + 8 + k / 8 * 2;
    for (int i = 0; i < 2; ++i) {
      all[0] += (double)row[i] * even[i];
      all[1] += (double)row[i] * odd[i];
      all[2] += (double)row[2 + i] * even[i];
      all[3] += (double)row[2 + i] * odd[i];
    }
  }
  for (int i = 0; i < 4; ++i)
    sums[i] = (float)(sums[i] + all[i]);
}

static inline void mma_bf16(float sums[4], const uint32_t a[4],
                            const uint32_t b[2]) {
  tensor_mma(1, sums, a, b);
}

static inline void mma_f16(float sums[4], const uint32_t a[4],
                           const uint32_t b[2]) {
  tensor_mma(0, sums, a, b);
}

// Copies are made when they are waited for. Before, there are NaNs, so that a kernel that
// does not wait for them, or overwrites what is still read, finds these.
static inline void cp_async_16(shared_address to, const void *from, int bytes) {
  const index thread = gpu.thread;
  if (to % 16 != 0 || tensor.begun[thread] - tensor.done[thread] == TENSOR_COPIES)
    abort();
  // No one can have read what an earlier copy has not even written.
  for (unsigned i = tensor.done[thread]; i != tensor.begun[thread]; ++i)
    if (tensor.copies[thread][i % TENSOR_COPIES].to == to)
      abort();
  memset((void *)to, 0xff, 16);
  tensor.copies[thread][tensor.begun[thread]++ % TENSOR_COPIES] =
      (tensor_copy){to, from, bytes};
}

static inline void cp_async_16_of_128(shared_address to, const void *from, int bytes) {
  cp_async_16(to, from, bytes);
}

static inline void cp_async_16_of_128_all(shared_address to, const void *from) {
  cp_async_16(to, from, 16);
}

static inline void cp_async_commit(void) {
  const index thread = gpu.thread;
  tensor.ends[thread][tensor.groups[thread]++ % TENSOR_COPIES] =
      tensor.begun[thread];
}

static inline void cp_async_wait(unsigned groups) {
  const index thread = gpu.thread;
  if (tensor.groups[thread] <= groups)
    return;
  const unsigned last = tensor.groups[thread] - groups - 1;
  const unsigned end = tensor.ends[thread][last % TENSOR_COPIES];
  for (; (int)(end - tensor.done[thread]) > 0; ++tensor.done[thread]) {
    const tensor_copy *c =
        &tensor.copies[thread][tensor.done[thread] % TENSOR_COPIES];
    memset((void *)c->to, 0, 16);
    if (c->bytes)
      memcpy((void *)c->to, c->from, (size_t)c->bytes);
  }
}

static inline uint32_t load_shared_4(shared_address from) {
  uint32_t x;
  memcpy(&x, (const void *)from, sizeof x);
  return x;
}

static inline uint2_t load_shared_8(shared_address from) {
  uint2_t x;
  memcpy(&x, (const void *)from, sizeof x);
  return x;
}

static inline uint4_t load_shared_16(shared_address from) {
  uint4_t x;
  memcpy(&x, (const void *)from, sizeof x);
  return x;
}

static inline void store_shared_4(shared_address to, uint32_t x) {
  memcpy((void *)to, &x, sizeof x);
}

INLINE uint32_t subtract_f16x2(uint32_t a, uint32_t b) {
  return pack_f16(tensor_element(0, a, 0) - tensor_element(0, b, 0),
                  tensor_element(0, a, 1) - tensor_element(0, b, 1));
}

INLINE uint32_t multiply_f16x2(uint32_t a, uint32_t b) {
  return pack_f16(tensor_element(0, a, 0) * tensor_element(0, b, 0),
                  tensor_element(0, a, 1) * tensor_element(0, b, 1));
}

INLINE uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  float x[2];
  for (int i = 0; i < 2; ++i)
    x[i] = tensor_element(1, a, i) * tensor_element(1, b, i) + tensor_element(1, c, i);
  return pack_bf16(x[0], x[1]);
}

#endif
