// Scatters and gathers with indices outside of the tensor and with batch dimensions, as the specification says.
// ----- own/scatter
func.func public @add_outside() {
  %a0 = stablehlo.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 1.0e1, 1.1e1]]> : tensor<4x3xf32>
  %a1 = stablehlo.constant dense<[[2], [-1], [4], [2], [-7]]> : tensor<5x1xi32>
  %a2 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0e1, 1.1e1, 1.2e1], [1.3e1, 1.4e1, 1.5e1]]> : tensor<5x3xf32>
  %r0 = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4x3xf32>, tensor<5x1xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %e0 = stablehlo.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [1.7e1, 2.0e1, 2.3e1], [9.0, 1.0e1, 1.1e1]]> : tensor<4x3xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  return
}
func.func public @set_outside() {
  %a0 = stablehlo.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 1.0e1, 1.1e1]]> : tensor<4x3xf32>
  %a1 = stablehlo.constant dense<[[2], [-1], [4], [2], [-7]]> : tensor<5x1xi32>
  %a2 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0e1, 1.1e1, 1.2e1], [1.3e1, 1.4e1, 1.5e1]]> : tensor<5x3xf32>
  %r0 = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4x3xf32>, tensor<5x1xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %e0 = stablehlo.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [1.0e1, 1.1e1, 1.2e1], [9.0, 1.0e1, 1.1e1]]> : tensor<4x3xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  return
}
func.func public @set_far_outside() {
  %a0 = stablehlo.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 1.0e1, 1.1e1]]> : tensor<4x3xf32>
  %a1 = stablehlo.constant dense<[[1], [1099511627776], [-1099511627775]]> : tensor<3x1xi64>
  %a2 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]> : tensor<3x3xf32>
  %r0 = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4x3xf32>, tensor<3x1xi64>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %e0 = stablehlo.constant dense<[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [6.0, 7.0, 8.0], [9.0, 1.0e1, 1.1e1]]> : tensor<4x3xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  return
}
func.func public @add_in_batches() {
  %a0 = stablehlo.constant dense<[[0, 0, 0], [0, 0, 0]]> : tensor<2x3xi32>
  %a1 = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %a2 = stablehlo.constant dense<[5, 7]> : tensor<2xi32>
  %r0 = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %s = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x3xi32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  %e0 = stablehlo.constant dense<[[0, 5, 0], [0, 0, 7]]> : tensor<2x3xi32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x3xi32>, tensor<2x3xi32>) -> ()
  return
}
func.func public @gather_in_batches() {
  %a0 = stablehlo.constant dense<[[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0]]> : tensor<2x5xf32>
  %a1 = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi32>
  %r0 = "stablehlo.gather"(%a0, %a1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>} : (tensor<2x5xf32>, tensor<2x1xi32>) -> tensor<2x2xf32>
  %e0 = stablehlo.constant dense<[[1.0, 2.0], [8.0, 9.0]]> : tensor<2x2xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x2xf32>, tensor<2x2xf32>) -> ()
  return
}
