// Calls a program that JAX exported, with buffers of this program: its weights stay on the device.
//
//   cc train.c $(pkg-config --cflags --libs mlxcel) -o train
//   ./train adam.bundle

#include <mlxcel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(struct mlxcel_error* error) {
  if (!error) return;
  const char* hint = mlxcel_error_hint(error);
  fprintf(stderr, "error: %s\n", mlxcel_error_message(error));
  if (hint) fprintf(stderr, "hint: %s\n", hint);
  mlxcel_error_free(error);
  exit(1);
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: train BUNDLE\n");
    return 2;
  }
  struct mlxcel_bundle* bundle = NULL;
  check(mlxcel_bundle_open(arguments[1], NULL, &bundle));
  struct mlxcel_program* program = NULL;
  check(mlxcel_program_load(bundle, NULL, &program));
  struct mlxcel_function* step = NULL;
  check(mlxcel_program_function(program, NULL, &step));

  // States begin as zeros, inputs as some numbers.
  size_t argument_count = 0, result_count = 0;
  check(mlxcel_function_counts(step, &argument_count, &result_count));
  for (size_t i = 0; i < argument_count; ++i) {
    struct mlxcel_tensor_type type;
    check(mlxcel_function_argument(step, i, &type));
    if (type.dtype != MLXCEL_DTYPE_F32) {
      fprintf(stderr, "%s is not of floats\n", type.name);
      return 1;
    }
    float* data = calloc(1, type.bytes);
    for (size_t j = 0; !type.is_state && j < type.bytes / sizeof(float); ++j) data[j] = (float)(j % 7) / 7;
    check(mlxcel_function_set(step, type.name, type.dtype, type.dims, type.rank, data, type.bytes));
    free(data);
  }

  struct mlxcel_tensor_type loss;
  check(mlxcel_function_result(step, result_count - 1, &loss));
  float first = 0, last = 0;
  for (int i = 0; i < 200; ++i) {
    check(mlxcel_function_call(step));
    check(mlxcel_function_read(step, loss.name, &last, sizeof(last)));
    if (i == 0) first = last;
  }
  printf("loss %.4f, after 200 steps %.4f\n", first, last);

  check(mlxcel_function_close(step));
  check(mlxcel_program_close(program));
  mlxcel_bundle_close(bundle);
  return 0;
}
