// Reductions to the largest and smallest of integers, with as many threads as a GPU has for a row.
// ----- own/reduce/largest_of_negative_i32
func.func @main() {
  %base = stablehlo.constant dense<-3> : tensor<1024xi32>
  %n = stablehlo.iota dim = 0 : tensor<1024xi32>
  %x = stablehlo.subtract %base, %n : tensor<1024xi32>
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %r = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<1024xi32>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %r, dense<-3> : tensor<i32>
  func.return
}
// ----- own/reduce/smallest_of_positive_i32
func.func @main() {
  %base = stablehlo.constant dense<5> : tensor<1024xi32>
  %n = stablehlo.iota dim = 0 : tensor<1024xi32>
  %x = stablehlo.add %base, %n : tensor<1024xi32>
  %largest = stablehlo.constant dense<2147483647> : tensor<i32>
  %r = stablehlo.reduce(%x init: %largest) applies stablehlo.minimum across dimensions = [0] : (tensor<1024xi32>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %r, dense<5> : tensor<i32>
  func.return
}
// ----- own/reduce/both_of_mixed_i32
func.func @main() {
  %base = stablehlo.constant dense<[[-512], [-2000], [1000]]> : tensor<3x1xi32>
  %all = stablehlo.broadcast_in_dim %base, dims = [0, 1] : (tensor<3x1xi32>) -> tensor<3x1024xi32>
  %n = stablehlo.iota dim = 1 : tensor<3x1024xi32>
  %x = stablehlo.add %all, %n : tensor<3x1024xi32>
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %largest = stablehlo.constant dense<2147483647> : tensor<i32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<3x1024xi32>, tensor<i32>) -> tensor<3xi32>
  %min = stablehlo.reduce(%x init: %largest) applies stablehlo.minimum across dimensions = [1] : (tensor<3x1024xi32>, tensor<i32>) -> tensor<3xi32>
  check.expect_eq_const %max, dense<[511, -977, 2023]> : tensor<3xi32>
  check.expect_eq_const %min, dense<[-512, -2000, 1000]> : tensor<3xi32>
  func.return
}
// ----- own/reduce/an_initial_value_that_wins
func.func @main() {
  %x = stablehlo.constant dense<-7> : tensor<1024xi32>
  %initial = stablehlo.constant dense<-4> : tensor<i32>
  %r = stablehlo.reduce(%x init: %initial) applies stablehlo.maximum across dimensions = [0] : (tensor<1024xi32>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %r, dense<-4> : tensor<i32>
  func.return
}
// ----- own/reduce/largest_of_negative_i64
func.func @main() {
  %base = stablehlo.constant dense<-9000000000> : tensor<1000xi64>
  %n = stablehlo.iota dim = 0 : tensor<1000xi64>
  %x = stablehlo.subtract %base, %n : tensor<1000xi64>
  %least = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
  %r = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<1000xi64>, tensor<i64>) -> tensor<i64>
  check.expect_eq_const %r, dense<-9000000000> : tensor<i64>
  func.return
}
// ----- own/reduce/smallest_of_positive_i64
func.func @main() {
  %base = stablehlo.constant dense<9000000000> : tensor<1000xi64>
  %n = stablehlo.iota dim = 0 : tensor<1000xi64>
  %x = stablehlo.add %base, %n : tensor<1000xi64>
  %largest = stablehlo.constant dense<9223372036854775807> : tensor<i64>
  %r = stablehlo.reduce(%x init: %largest) applies stablehlo.minimum across dimensions = [0] : (tensor<1000xi64>, tensor<i64>) -> tensor<i64>
  check.expect_eq_const %r, dense<9000000000> : tensor<i64>
  func.return
}
