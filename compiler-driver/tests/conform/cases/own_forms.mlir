// Windows, constants and sorts that iree-compile reads in its own way, and ops that say what others say.
// ----- own/a_convolution_with_one_window
func.func @main() {
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]]> : tensor<1x8x1xf32>
  %k = stablehlo.constant dense<[[[1.0]], [[10.0]], [[100.0]]]> : tensor<3x1x1xf32>
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [7], pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x1xf32>, tensor<3x1x1xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %r, dense<210.0> : tensor<1x1x1xf32>
  func.return
}
// ----- own/a_convolution_with_one_window_of_a_dilated_input
func.func @main() {
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0]]]> : tensor<1x3x1xf32>
  %k = stablehlo.constant dense<[[[1.0]], [[10.0]], [[100.0]]]> : tensor<3x1x1xf32>
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [7], pad = [[0, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x1xf32>, tensor<3x1x1xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %r, dense<201.0> : tensor<1x1x1xf32>
  func.return
}
// ----- own/a_large_constant_of_booleans
func.func @main() {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %m = stablehlo.constant dense<[[true, false, false, true, true, true, false, false, true, true, false, true, false, true, true, false], [true, false, false, true, true, false, false, true, true, true, true, true, true, true, true, true], [true, true, true, true, false, false, false, true, false, false, true, true, false, false, false, true], [false, false, true, false, false, false, false, false, true, true, false, true, true, false, false, false], [true, true, false, false, false, true, true, true, true, false, false, false, true, true, false, false], [false, false, false, true, false, false, false, true, true, false, false, true, false, false, false, false], [false, false, false, true, true, false, false, true, false, true, true, true, false, false, false, true], [true, true, true, false, false, false, false, false, true, false, false, true, true, true, false, true]]> : tensor<8x16xi1>
  %i = stablehlo.convert %m : (tensor<8x16xi1>) -> tensor<8x16xi32>
  %r = stablehlo.reduce(%i init: %z) applies stablehlo.add across dimensions = [1] : (tensor<8x16xi32>, tensor<i32>) -> tensor<8xi32>
  check.expect_eq_const %r, dense<[9, 12, 8, 5, 8, 4, 7, 8]> : tensor<8xi32>
  func.return
}
// ----- own/a_stable_sort_by_magnitudes
func.func @main() {
  %x = stablehlo.constant dense<[2.0, -1.0, 1.0, -2.0, -1.0, 2.0, 1.0, -2.0]> : tensor<8xf32>
  %r = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.abs %a : tensor<f32>
      %q = stablehlo.abs %b : tensor<f32>
      %c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<8xf32>) -> tensor<8xf32>
  check.expect_eq_const %r, dense<[-1.0, 1.0, -1.0, 1.0, 2.0, -2.0, 2.0, -2.0]> : tensor<8xf32>
  func.return
}
// ----- own/products_and_sums_that_broadcast
func.func @main() {
  %x = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %y = stablehlo.constant dense<[1.0e1, 2.0e1, 3.0e1]> : tensor<3xf32>
  %z = stablehlo.constant dense<[100.0, 200.0]> : tensor<2xf32>
  %sum = chlo.broadcast_add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %columns = chlo.broadcast_subtract %x, %z {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  %product = stablehlo.dot %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  check.expect_eq_const %sum, dense<[[11.0, 22.0, 33.0], [14.0, 25.0, 36.0]]> : tensor<2x3xf32>
  check.expect_eq_const %columns, dense<[[-99.0, -98.0, -97.0], [-196.0, -195.0, -194.0]]> : tensor<2x3xf32>
  check.expect_eq_const %product, dense<[140.0, 320.0]> : tensor<2xf32>
  func.return
}
