// Decompositions of small matrices, with the values of NumPy, and of one with 40 rows, whose factors are ones.
// ----- own/linear_algebra
func.func public @cholesky_lower() {
  %a0 = stablehlo.constant dense<[[[1.041, 3.4e-2, 1.34e-1], [3.4e-2, 1.496, -4.4e-2], [1.34e-1, -4.4e-2, 1.511]], [[1.188, -1.33e-1, -3.13e-1], [-1.33e-1, 1.219, 3.34e-1], [-3.13e-1, 3.34e-1, 1.625]]]> : tensor<2x3x3xf32>
  %r0 = "stablehlo.cholesky"(%a0) {lower = true} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %e0 = stablehlo.constant dense<[[[1.0202941, 0.0, 0.0], [3.3323728e-2, 1.2226567, 0.0], [1.3133469e-1, -3.9566755e-2, 1.2215506]], [[1.0899541, 0.0, 0.0], [-1.22023486e-1, 1.0973196, 0.0], [-2.8716806e-1, 2.7244455e-1, 1.2117378]]]> : tensor<2x3x3xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> ()
  return
}
func.func public @cholesky_upper() {
  %a0 = stablehlo.constant dense<[[[1.0410000085830688, 3.400000184774399e-2, 1.340000033378601e-1], [3.400000184774399e-2, 1.496000051498413, -4.399999976158142e-2], [1.340000033378601e-1, -4.399999976158142e-2, 1.5110000371932983]], [[1.187999963760376, -1.3300000131130219e-1, -3.1299999356269836e-1], [-1.3300000131130219e-1, 1.218999981880188, 3.3399999141693115e-1], [-3.1299999356269836e-1, 3.3399999141693115e-1, 1.625]]]> : tensor<2x3x3xf64>
  %r0 = "stablehlo.cholesky"(%a0) {lower = false} : (tensor<2x3x3xf64>) -> tensor<2x3x3xf64>
  %e0 = stablehlo.constant dense<[[[1.0202940794609507, 3.332372747444258e-2, 1.3133468676859908e-1], [0.0, 1.2226567714144563, -3.9566755120845606e-2], [0.0, 0.0, 1.221550534826087]], [[1.0899541108507165, -1.2202348703239882e-1, -2.8716804721108835e-1], [0.0, 1.097319575371114, 2.7244455639173454e-1], [0.0, 0.0, 1.2117377919143568]]]> : tensor<2x3x3xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x3x3xf64>, tensor<2x3x3xf64>) -> ()
  return
}
func.func public @cholesky_of_40_rows() {
  %c = stablehlo.constant dense<[1.0]> : tensor<1xf32>
  %s = stablehlo.reshape %c : (tensor<1xf32>) -> tensor<f32>
  %one = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<40x40xf32>
  %zero = stablehlo.subtract %one, %one : tensor<40x40xf32>
  %i = stablehlo.iota dim = 0 : tensor<40x40xf32>
  %j = stablehlo.iota dim = 1 : tensor<40x40xf32>
  %low = stablehlo.compare GE, %i, %j : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xi1>
  %min = stablehlo.minimum %i, %j : tensor<40x40xf32>
  %m = stablehlo.add %min, %one : tensor<40x40xf32>
  %e0 = stablehlo.select %low, %one, %zero : tensor<40x40xi1>, tensor<40x40xf32>
  %r0 = "stablehlo.cholesky"(%m) {lower = true} : (tensor<40x40xf32>) -> tensor<40x40xf32>
  
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<40x40xf32>, tensor<40x40xf32>) -> ()
  return
}
func.func public @triangular_solve_of_40_rows() {
  %c = stablehlo.constant dense<[1.0]> : tensor<1xf32>
  %s = stablehlo.reshape %c : (tensor<1xf32>) -> tensor<f32>
  %one = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<40x40xf32>
  %zero = stablehlo.subtract %one, %one : tensor<40x40xf32>
  %i = stablehlo.iota dim = 0 : tensor<40x40xf32>
  %j = stablehlo.iota dim = 1 : tensor<40x40xf32>
  %low = stablehlo.compare GE, %i, %j : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xi1>
  %min = stablehlo.minimum %i, %j : tensor<40x40xf32>
  %m = stablehlo.add %min, %one : tensor<40x40xf32>
  %e0 = stablehlo.select %low, %one, %zero : tensor<40x40xi1>, tensor<40x40xf32>
  %x = "stablehlo.triangular_solve"(%m, %m) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xf32>
  %l = stablehlo.select %low, %m, %zero : tensor<40x40xi1>, tensor<40x40xf32>
  %p = stablehlo.dot_general %l, %x, contracting_dims = [1] x [0] : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xf32>
  %d = stablehlo.subtract %p, %m : tensor<40x40xf32>
  %r0 = stablehlo.add %d, %one : tensor<40x40xf32>
  %ee = stablehlo.add %zero, %one : tensor<40x40xf32>
  stablehlo.custom_call @check.expect_close(%r0, %ee) {has_side_effect = true} : (tensor<40x40xf32>, tensor<40x40xf32>) -> ()
  return
}
func.func public @triangular_solve_left_lower() {
  %a0 = stablehlo.constant dense<[[9.9e-2, -1.29, -1.842], [-2.35e-1, 7.33e-1, 2.71e-1], [1.57e-1, -1.87e-1, -5.17e-1]]> : tensor<3x3xf32>
  %a1 = stablehlo.constant dense<[[-5.39e-1, -4.9e-2], [1.13e-1, -1.53], [-4.78e-1, -9.79e-1]]> : tensor<3x2xf32>
  %r0 = "stablehlo.triangular_solve"(%a0, %a1) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %e0 = stablehlo.constant dense<[[-5.444444, -4.949495e-1], [-1.5913293, -2.2459934], [-1.5318991e-1, 2.5556936]]> : tensor<3x2xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<3x2xf32>, tensor<3x2xf32>) -> ()
  return
}
func.func public @triangular_solve_left_upper_transposed() {
  %a0 = stablehlo.constant dense<[[1.1909999999999998, 1.061, -8.08e-1], [-3.3e-2, 2.884, -5.84e-1], [-1.12e-1, 1.1e-1, 2.064]]> : tensor<3x3xf64>
  %a1 = stablehlo.constant dense<[[-1.225, 7.6e-2], [1.359, -1.547], [8.59e-1, 1.19e-1]]> : tensor<3x2xf64>
  %r0 = "stablehlo.triangular_solve"(%a0, %a1) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %e0 = stablehlo.constant dense<[[-1.0285474391267844, 6.381192275398825e-2], [8.496147132155056e-1, -5.598836511934748e-1], [2.539286151663824e-1, -7.578101681771647e-2]]> : tensor<3x2xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<3x2xf64>, tensor<3x2xf64>) -> ()
  return
}
func.func public @triangular_solve_right_lower_unit() {
  %a0 = stablehlo.constant dense<[[1.359, 2.0, 7.62e-1], [-1.199, 2.075, 5.77e-1], [-1.89e-1, 6.83e-1, 1.933]]> : tensor<3x3xf32>
  %a1 = stablehlo.constant dense<[[6.67e-1, 1.439, -6.76e-1], [2.03e-1, -4.63e-1, 1.27e-1]]> : tensor<2x3xf32>
  %r0 = "stablehlo.triangular_solve"(%a0, %a1) {left_side = false, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e0 = stablehlo.constant dense<[[2.8181849, 1.9007081, -6.76e-1], [-4.3213648e-1, -5.49741e-1, 1.27e-1]]> : tensor<2x3xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  return
}
func.func public @triangular_solve_right_upper_adjoint() {
  %a0 = stablehlo.constant dense<[[(8.13e-1, -4.63e-1), (-5.79e-1, -9.7e-2), (-1.96e-1, 1.257)], [(8.99e-1, 6.89e-1), (3.145, -3.27e-1), (-1.324, -3.69e-1)], [(-7.95e-1, -2.5e-1), (6.47e-1, 1.524), (8.0e-3, -4.28e-1)]]> : tensor<3x3xcomplex<f32>>
  %a1 = stablehlo.constant dense<[[(-3.04e-1, 0.0), (3.53e-1, 0.0), (-1.21e-1, 0.0)], [(-1.97e-1, 0.0), (-1.114, 0.0), (-1.2e-2, 0.0)]]> : tensor<2x3xcomplex<f32>>
  %r0 = "stablehlo.triangular_solve"(%a0, %a1) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<3x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
  %e0 = stablehlo.constant dense<[[(-4.7152308e-1, 3.8390154e-1), (1.5394695e-1, 1.0358863e-1), (-5.282459e-3, 2.8261155e-1)], [(-3.6266083e-1, 2.8786284e-1), (-3.4616956e-1, 4.785351e-2), (-5.2388024e-4, 2.802759e-2)]]> : tensor<2x3xcomplex<f32>>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) -> ()
  return
}
func.func public @lu() {
  %a0 = stablehlo.constant dense<[[-4.44e-1, 1.166, 6.53e-1, -2.4e-2], [6.68e-1, -3.4e-1, 1.052, -5.0e-3], [5.83e-1, -1.291, 3.47e-1, -1.688], [-2.035, -3.04e-1, -9.0e-1, 1.64e-1]]> : tensor<4x4xf64>
  %r0, %r1, %r2 = stablehlo.custom_call @lapack_dgetrf_ffi(%a0) {mhlo.backend_config = {}} : (tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4xi32>, tensor<i32>)
  %e0 = stablehlo.constant dense<[[-2.035, -3.04e-1, -9.0e-1, 1.64e-1], [-2.8648648648648645e-1, -1.3780918918918919, 8.916216216216216e-2, -1.641016216216216], [2.1818181818181817e-1, -8.942272137132246e-1, 9.290948682025533e-1, -1.5272231768670634], [-3.2825552825552823e-1, 3.191294304662966e-1, 7.836828933827807e-1, 1.7693891551893675]]> : tensor<4x4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4x4xf64>, tensor<4x4xf64>) -> ()
  %e1 = stablehlo.constant dense<[4, 3, 4, 4]> : tensor<4xi32>
  stablehlo.custom_call @check.expect_close(%r1, %e1) {has_side_effect = true} : (tensor<4xi32>, tensor<4xi32>) -> ()
  %e2 = stablehlo.constant dense<0> : tensor<i32>
  stablehlo.custom_call @check.expect_close(%r2, %e2) {has_side_effect = true} : (tensor<i32>, tensor<i32>) -> ()
  return
}
func.func public @no_cholesky() {
  %a0 = stablehlo.constant dense<[[1.0, 2.0], [2.0, 1.0]]> : tensor<2x2xf32>
  %f, %r0 = stablehlo.custom_call @lapack_spotrf_ffi(%a0) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  %e0 = stablehlo.constant dense<2> : tensor<i32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<i32>, tensor<i32>) -> ()
  return
}
