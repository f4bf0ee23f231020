// What functions take stays what it is.
// ----- own/an_argument_that_is_updated
func.func @main() {
  %x = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %u = stablehlo.constant dense<[70]> : tensor<1xi64>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %r = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<4xi64>, tensor<1xi64>, tensor<i32>) -> tensor<4xi64>
  check.expect_eq_const %r, dense<[0, 1, 70, 3]> : tensor<4xi64>
  check.expect_eq_const %x, dense<[0, 1, 2, 3]> : tensor<4xi64>
  func.return
}
// ----- own/an_argument_that_is_sorted
func.func @main() {
  %x = stablehlo.constant dense<[3.0, 1.0, 2.0]> : tensor<3xf32>
  %r = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq_const %r, dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  check.expect_eq_const %x, dense<[3.0, 1.0, 2.0]> : tensor<3xf32>
  func.return
}
// ----- own/a_value_that_every_turn_of_a_loop_updates
func.func @main() {
  %x = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %n = stablehlo.constant dense<[3]> : tensor<1xi32>
  %end = stablehlo.reshape %n : (tensor<1xi32>) -> tensor<i32>
  %xx = stablehlo.add %x, %x : tensor<4xi64>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zeros = stablehlo.constant dense<0> : tensor<4xi64>
  %u = stablehlo.constant dense<[70]> : tensor<1xi64>
  %w:2 = "stablehlo.while"(%first, %zeros) ({
    ^bb0(%i: tensor<i32>, %y: tensor<4xi64>):
      %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }, {
    ^bb0(%i: tensor<i32>, %y: tensor<4xi64>):
      %j = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.dynamic_update_slice %xx, %u, %i : (tensor<4xi64>, tensor<1xi64>, tensor<i32>) -> tensor<4xi64>
      %s = stablehlo.add %z, %y : tensor<4xi64>
      stablehlo.return %j, %s : tensor<i32>, tensor<4xi64>
  }) : (tensor<i32>, tensor<4xi64>) -> (tensor<i32>, tensor<4xi64>)
  check.expect_eq_const %w#1, dense<[70, 74, 78, 18]> : tensor<4xi64>
  func.return
}
// ----- own/an_argument_that_is_updated_with_a_dimension_more
func.func @main() {
  %x = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %u = stablehlo.constant dense<[[70]]> : tensor<1x1xi64>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xi64>) -> tensor<1x4xi64>
  %r = stablehlo.dynamic_update_slice %y, %u, %zero, %i : (tensor<1x4xi64>, tensor<1x1xi64>, tensor<i32>, tensor<i32>) -> tensor<1x4xi64>
  check.expect_eq_const %r, dense<[[0, 1, 70, 3]]> : tensor<1x4xi64>
  check.expect_eq_const %x, dense<[0, 1, 2, 3]> : tensor<4xi64>
  func.return
}
// ----- own/an_argument_that_is_transposed_twice_and_updated
func.func @main() {
  %x = stablehlo.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
  %u = stablehlo.constant dense<[[70]]> : tensor<1x1xi64>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x2xi64>) -> tensor<2x2xi64>
  %y = stablehlo.transpose %t, dims = [1, 0] : (tensor<2x2xi64>) -> tensor<2x2xi64>
  %r = stablehlo.dynamic_update_slice %y, %u, %one, %zero : (tensor<2x2xi64>, tensor<1x1xi64>, tensor<i32>, tensor<i32>) -> tensor<2x2xi64>
  check.expect_eq_const %r, dense<[[0, 1], [70, 3]]> : tensor<2x2xi64>
  check.expect_eq_const %x, dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
  func.return
}
// ----- own/an_argument_with_nothing_added_that_is_updated
func.func @main() {
  %x = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %u = stablehlo.constant dense<[70]> : tensor<1xi64>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %nothing = stablehlo.constant dense<0> : tensor<i64>
  %zeros = stablehlo.broadcast_in_dim %nothing, dims = [] : (tensor<i64>) -> tensor<4xi64>
  %y = stablehlo.add %x, %zeros : tensor<4xi64>
  %r = stablehlo.dynamic_update_slice %y, %u, %i : (tensor<4xi64>, tensor<1xi64>, tensor<i32>) -> tensor<4xi64>
  check.expect_eq_const %r, dense<[0, 1, 70, 3]> : tensor<4xi64>
  check.expect_eq_const %x, dense<[0, 1, 2, 3]> : tensor<4xi64>
  func.return
}
// ----- own/an_argument_that_is_negated_twice_and_updated
func.func @main() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %u = stablehlo.constant dense<[7.0]> : tensor<1xf32>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %n = stablehlo.negate %x : tensor<4xf32>
  %y = stablehlo.negate %n : tensor<4xf32>
  %r = stablehlo.dynamic_update_slice %y, %u, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
  check.expect_eq_const %r, dense<[1.0, 2.0, 7.0, 4.0]> : tensor<4xf32>
  check.expect_eq_const %x, dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  func.return
}
// ----- own/an_argument_of_which_a_slice_of_everything_is_updated
func.func @main() {
  %x = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %u = stablehlo.constant dense<[70]> : tensor<1xi64>
  %from = stablehlo.constant dense<[3]> : tensor<1xi32>
  %at = stablehlo.reshape %from : (tensor<1xi32>) -> tensor<i32>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %y = stablehlo.dynamic_slice %x, %at, sizes = [4] : (tensor<4xi64>, tensor<i32>) -> tensor<4xi64>
  %r = stablehlo.dynamic_update_slice %y, %u, %i : (tensor<4xi64>, tensor<1xi64>, tensor<i32>) -> tensor<4xi64>
  check.expect_eq_const %r, dense<[0, 1, 70, 3]> : tensor<4xi64>
  check.expect_eq_const %x, dense<[0, 1, 2, 3]> : tensor<4xi64>
  func.return
}
// ----- own/an_argument_of_another_type_and_back_that_is_updated
func.func @main() {
  %x = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %u = stablehlo.constant dense<[70]> : tensor<1xi32>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %wide = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi64>
  %y = stablehlo.convert %wide : (tensor<4xi64>) -> tensor<4xi32>
  %r = stablehlo.dynamic_update_slice %y, %u, %i : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
  check.expect_eq_const %r, dense<[0, 1, 70, 3]> : tensor<4xi32>
  check.expect_eq_const %x, dense<[0, 1, 2, 3]> : tensor<4xi32>
  func.return
}
