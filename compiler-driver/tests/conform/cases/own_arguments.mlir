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
