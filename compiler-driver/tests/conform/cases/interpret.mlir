// The interpreter's tests.
// Tests of openxla/stablehlo (stablehlo/tests/interpret), Apache License 2.0 with LLVM exceptions.
// Each follows a line with its name.
// ----- interpret/abs#0
func.func @abs_op_test_si64() {
  %operand = stablehlo.constant dense<[-2, 0, 2]> : tensor<3xi64>
  %result = stablehlo.abs %operand : tensor<3xi64>
  check.expect_eq_const %result, dense<[2, 0, 2]> : tensor<3xi64>
  func.return
}
// ----- interpret/abs#1
func.func @abs_op_test_f64() {
  %operand = stablehlo.constant dense<[23.1, -23.1, -0.0]> : tensor<3xf64>
  %result = stablehlo.abs %operand : tensor<3xf64>
  check.expect_almost_eq_const %result, dense<[2.310000e+01, 2.310000e+01, 0.000000e+00]> : tensor<3xf64>
  func.return
}
// ----- interpret/add#0
func.func @add_op_test_si2() {
  %0 = stablehlo.constant dense<[1, 0, -1, -2]> : tensor<4xi2>
  %1 = stablehlo.constant dense<[-1, 1, 1, 1]> : tensor<4xi2>
  %2 = stablehlo.add %0, %1 : tensor<4xi2>
  check.expect_eq_const %2, dense<[0, 1, 0, -1]> : tensor<4xi2>
  func.return
}
// ----- interpret/add#1
func.func @add_op_test_ui2() {
  %0 = stablehlo.constant dense<[0, 2]> : tensor<2xui2>
  %1 = stablehlo.constant dense<[1, 1]> : tensor<2xui2>
  %2 = stablehlo.add %0, %1 : tensor<2xui2>
  check.expect_eq_const %2, dense<[1, 3]> : tensor<2xui2>
  func.return
}
// ----- interpret/add#2
func.func @add_op_test_si4() {
  %0 = stablehlo.constant dense<[0, 1, 2, -3, 0]> : tensor<5xi4>
  %1 = stablehlo.constant dense<[-8, -1, 2, -3, 7]> : tensor<5xi4>
  %2 = stablehlo.add %0, %1 : tensor<5xi4>
  check.expect_eq_const %2, dense<[-8, 0, 4, -6, 7]> : tensor<5xi4>
  func.return
}
// ----- interpret/add#3
func.func @add_op_test_ui4() {
  %0 = stablehlo.constant dense<[0, 2]> : tensor<2xui4>
  %1 = stablehlo.constant dense<[15, 3]> : tensor<2xui4>
  %2 = stablehlo.add %0, %1 : tensor<2xui4>
  check.expect_eq_const %2, dense<[15, 5]> : tensor<2xui4>
  func.return
}
// ----- interpret/add#4
func.func @add_op_test_si8() {
  %0 = stablehlo.constant dense<[0, 1, 8, -9, 0]> : tensor<5xi8>
  %1 = stablehlo.constant dense<[-128, -1, 8, -9, 127]> : tensor<5xi8>
  %2 = stablehlo.add %0, %1 : tensor<5xi8>
  check.expect_eq_const %2, dense<[-128, 0, 16, -18, 127]> : tensor<5xi8>
  func.return
}
// ----- interpret/add#5
func.func @add_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16]> : tensor<2xui8>
  %1 = stablehlo.constant dense<[255, 16]> : tensor<2xui8>
  %2 = stablehlo.add %0, %1 : tensor<2xui8>
  check.expect_eq_const %2, dense<[255, 32]> : tensor<2xui8>
  func.return
}
// ----- interpret/add#6
func.func @add_op_test_si16() {
  %0 = stablehlo.constant dense<[0, 1, 128, -129, 0]> : tensor<5xi16>
  %1 = stablehlo.constant dense<[-32768, -1, 128, -129, 32767]> : tensor<5xi16>
  %2 = stablehlo.add %0, %1 : tensor<5xi16>
  check.expect_eq_const %2, dense<[-32768, 0, 256, -258, 32767]> : tensor<5xi16>
  func.return
}
// ----- interpret/add#7
func.func @add_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256]> : tensor<2xui16>
  %1 = stablehlo.constant dense<[65535, 256]> : tensor<2xui16>
  %2 = stablehlo.add %0, %1 : tensor<2xui16>
  check.expect_eq_const %2, dense<[65535, 512]> : tensor<2xui16>
  func.return
}
// ----- interpret/add#8
func.func @add_op_test_si32() {
  %0 = stablehlo.constant dense<[0, 1, 32768, -32769, 0]> : tensor<5xi32>
  %1 = stablehlo.constant dense<[-2147483648, -1, 32768, -32769, 2147483647]> : tensor<5xi32>
  %2 = stablehlo.add %0, %1 : tensor<5xi32>
  check.expect_eq_const %2, dense<[-2147483648, 0, 65536, -65538, 2147483647]> : tensor<5xi32>
  func.return
}
// ----- interpret/add#9
func.func @add_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536]> : tensor<2xui32>
  %1 = stablehlo.constant dense<[4294967295, 65536]> : tensor<2xui32>
  %2 = stablehlo.add %0, %1 : tensor<2xui32>
  check.expect_eq_const %2, dense<[4294967295, 131072]> : tensor<2xui32>
  func.return
}
// ----- interpret/add#10
func.func @add_op_test_si64() {
  %0 = stablehlo.constant dense<[0, 1, 2147483648, -2147483649, 0]> : tensor<5xi64>
  %1 = stablehlo.constant dense<[-9223372036854775808, -1, 2147483648, -2147483649, 9223372036854775807]> : tensor<5xi64>
  %2 = stablehlo.add %0, %1 : tensor<5xi64>
  check.expect_eq_const %2, dense<[-9223372036854775808, 0, 4294967296, -4294967298, 9223372036854775807]> : tensor<5xi64>
  func.return
}
// ----- interpret/add#11
func.func @add_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296]> : tensor<2xui64>
  %1 = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %2 = stablehlo.add %0, %1 : tensor<2xui64>
  check.expect_eq_const %2, dense<[18446744073709551615, 8589934592]> : tensor<2xui64>
  func.return
}
// ----- interpret/add#12
func.func @add_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.add %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, true, true, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/add#13
func.func @add_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140625, 0x7F80, 0x7F80, 0xFF80, 0x7F80, 0x0001]> : tensor<11xbf16>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.140625, 0.0, 0x7F80, 0xFF80, 0xFF80, 0x8001]> : tensor<11xbf16>
  %2 = stablehlo.add %0, %1 : tensor<11xbf16>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, -0.000000e+00, 8.000000e+00, 8.750000e-01, 4.003910e-01, 6.281250e+00, 0x7F80, 0x7F80, 0xFF80, 0x7FC0, 0.000000e+00]> : tensor<11xbf16>
  func.return
}
// ----- interpret/add#14
func.func @add_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.141, 0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x0001]> : tensor<11xf16>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.141, 0.0, 0x7C00, 0xFC00, 0xFC00, 0x8001]> : tensor<11xf16>
  %2 = stablehlo.add %0, %1 : tensor<11xf16>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, -0.000000e+00, 8.000000e+00, 8.750000e-01, 3.999020e-01, 6.281250e+00, 0x7C00, 0x7C00, 0xFC00, 0x7E00, 0.000000e+00]> : tensor<11xf16>
  func.return
}
// ----- interpret/add#15
func.func @add_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159265, 0x7F800000, 0x7F800000, 0xFF800000, 0x7F800000, 0x00000001]> : tensor<11xf32>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.14159265, 0.0, 0x7F800000, 0xFF800000, 0xFF800000, 0x80000001]> : tensor<11xf32>
  %2 = stablehlo.add %0, %1 : tensor<11xf32>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, -0.000000e+00, 8.000000e+00, 8.750000e-01, 4.000000e-01, 6.28318548, 0x7F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0.000000e+00]> : tensor<11xf32>
  func.return
}
// ----- interpret/add#16
func.func @add_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159265358979323846, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000, 0x0000000000000001]> : tensor<11xf64>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.14159265358979323846, 0.0, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0x8000000000000001]> : tensor<11xf64>
  %2 = stablehlo.add %0, %1 : tensor<11xf64>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, -0.000000e+00, 8.000000e+00, 8.750000e-01, 4.000000e-01, 6.2831853071795862, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0.000000e+00]> : tensor<11xf64>
  func.return
}
// ----- interpret/add#17
func.func @add_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f32>>
  %2 = stablehlo.add %0, %1 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %2, dense<[(3.000000e+00, 5.000000e+00), (1.500000e+01, 1.100000e+01)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/add#18
func.func @add_op_test_c128() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f64>>
  %1 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f64>>
  %2 = stablehlo.add %0, %1 : tensor<2xcomplex<f64>>
  check.expect_almost_eq_const %2, dense<[(3.000000e+00, 5.000000e+00), (1.500000e+01, 1.100000e+01)]> : tensor<2xcomplex<f64>>
  func.return
}
// ----- interpret/add#19
func.func @add_op_scalar() {
  %0 = stablehlo.constant dense<2> : tensor<i4>
  %1 = stablehlo.constant dense<3> : tensor<i4>
  %2 = stablehlo.add %0, %1 : tensor<i4>
  check.expect_eq_const %2, dense<5> : tensor<i4>
  func.return
}
// ----- interpret/add#20
func.func @add_op_tensor_shape_with_zero_dim_size() {
  %0 = stablehlo.constant dense<2> : tensor<2x0x3xi4>
  %1 = stablehlo.constant dense<3> : tensor<2x0x3xi4>
  %2 = stablehlo.add %0, %1 : tensor<2x0x3xi4>
  check.expect_eq_const %2, dense<> : tensor<2x0x3xi4>
  func.return
}
// ----- interpret/after_all#0
func.func @after_all_op_test() {
  %input0 = stablehlo.after_all : !stablehlo.token
  %input1 = stablehlo.after_all : !stablehlo.token
  %result = stablehlo.after_all %input0, %input1 : !stablehlo.token
  func.return
}
// ----- interpret/and#2
func.func @and_op_test_si8() {
  %0 = stablehlo.constant dense<[127, -128, -128]> : tensor<3xi8>
  %1 = stablehlo.constant dense<[0, 127, -128]> : tensor<3xi8>
  %2 = stablehlo.and %0, %1 : tensor<3xi8>
  check.expect_eq_const %2, dense<[0, 0, -128]> : tensor<3xi8>
  func.return
}
// ----- interpret/and#3
func.func @and_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 127, 255]> : tensor<3xui8>
  %1 = stablehlo.constant dense<255> : tensor<3xui8>
  %2 = stablehlo.and %0, %1 : tensor<3xui8>
  check.expect_eq_const %2, dense<[0, 127, 255]> : tensor<3xui8>
  func.return
}
// ----- interpret/and#4
func.func @and_op_test_si16() {
  %0 = stablehlo.constant dense<[32767, -32768, -32768]> : tensor<3xi16>
  %1 = stablehlo.constant dense<[0, 32767, -32768]> : tensor<3xi16>
  %2 = stablehlo.and %0, %1 : tensor<3xi16>
  check.expect_eq_const %2, dense<[0, 0, -32768]> : tensor<3xi16>
  func.return
}
// ----- interpret/and#5
func.func @and_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 32767, 65535]> : tensor<3xui16>
  %1 = stablehlo.constant dense<65535> : tensor<3xui16>
  %2 = stablehlo.and %0, %1 : tensor<3xui16>
  check.expect_eq_const %2, dense<[0, 32767, 65535]> : tensor<3xui16>
  func.return
}
// ----- interpret/and#6
func.func @and_op_test_si32() {
  %0 = stablehlo.constant dense<[2147483647, -2147483648, -2147483648]> : tensor<3xi32>
  %1 = stablehlo.constant dense<[0, 2147483647, -2147483648]> : tensor<3xi32>
  %2 = stablehlo.and %0, %1 : tensor<3xi32>
  check.expect_eq_const %2, dense<[0, 0, -2147483648]> : tensor<3xi32>
  func.return
}
// ----- interpret/and#7
func.func @and_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 2147483647, 4294967295]> : tensor<3xui32>
  %1 = stablehlo.constant dense<4294967295> : tensor<3xui32>
  %2 = stablehlo.and %0, %1 : tensor<3xui32>
  check.expect_eq_const %2, dense<[0, 2147483647, 4294967295]> : tensor<3xui32>
  func.return
}
// ----- interpret/and#8
func.func @and_op_test_si64() {
  %0 = stablehlo.constant dense<[9223372036854775807, -9223372036854775808, -9223372036854775808]> : tensor<3xi64>
  %1 = stablehlo.constant dense<[0, 9223372036854775807, -9223372036854775808]> : tensor<3xi64>
  %2 = stablehlo.and %0, %1 : tensor<3xi64>
  check.expect_eq_const %2, dense<[0, 0, -9223372036854775808]> : tensor<3xi64>
  func.return
}
// ----- interpret/and#9
func.func @and_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 9223372036854775807, 18446744073709551615]> : tensor<3xui64>
  %1 = stablehlo.constant dense<18446744073709551615> : tensor<3xui64>
  %2 = stablehlo.and %0, %1 : tensor<3xui64>
  check.expect_eq_const %2, dense<[0, 9223372036854775807, 18446744073709551615]> : tensor<3xui64>
  func.return
}
// ----- interpret/and#10
func.func @and_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.and %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, false, false, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/and#11
func.func @and_op_test_i1_splat_false() {
  %0 = stablehlo.constant dense<false> : tensor<2xi1>
  %1 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.and %0, %1 : tensor<2xi1>
  check.expect_eq_const %2, dense<[false, false]> : tensor<2xi1>
  func.return
}
// ----- interpret/and#12
func.func @and_op_test_i1_splat_true() {
  %0 = stablehlo.constant dense<true> : tensor<2xi1>
  %1 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.and %0, %1 : tensor<2xi1>
  check.expect_eq_const %2, dense<[false, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/atan2#0
func.func @atan2_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, 1.0, -1.0]> : tensor<3xf64>
  %1 = stablehlo.constant dense<[0.0, 0.0, 0.0]> : tensor<3xf64>
  %2 = stablehlo.atan2 %0, %1 : tensor<3xf64>
  check.expect_almost_eq_const %2, dense<[0.0, 1.5707963267948966, -1.5707963267948966]> : tensor<3xf64>
  func.return
}
// ----- interpret/bitcast_convert#0
func.func @bitcast_convert_op_test_i1_to_i64() {
  %operand = stablehlo.constant dense<[true, true, true, true,
                                       false, true, true, true,
                                       true, false, true, true,
                                       false, false, true, true,
                                       true, true, false, true,
                                       false, true, false, true,
                                       true, false, false, true,
                                       false, false, false, true,
                                       true, true, true, false,
                                       false, true, true, false,
                                       true, false, true, false,
                                       false, false, true, false,
                                       true, true, false, false,
                                       false, true, false, false,
                                       true, false, false, false,
                                       false, false, false, false]> : tensor<64xi1>
  %result = stablehlo.bitcast_convert %operand : (tensor<64xi1>) -> tensor<i64>
  check.expect_eq_const %result, dense<0x0123456789ABCDEF> : tensor<i64>
  func.return
}
// ----- interpret/bitcast_convert#1
func.func @bitcast_convert_op_test_i64_to_f64() {
  %operand = stablehlo.constant dense<0x0123456789ABCDEF> : tensor<i64>
  %result = stablehlo.bitcast_convert %operand : (tensor<i64>) -> tensor<f64>
  check.expect_almost_eq_const %result, dense<0x0123456789ABCDEF> : tensor<f64>
  func.return
}
// ----- interpret/bitcast_convert#2
func.func @bitcast_convert_op_test_f64_to_i1() {
  %operand = stablehlo.constant dense<0x0123456789ABCDEF> : tensor<f64>
  %result = stablehlo.bitcast_convert %operand : (tensor<f64>) -> tensor<64xi1>
  check.expect_eq_const %result, dense<[true, true, true, true,
                                        false, true, true, true,
                                        true, false, true, true,
                                        false, false, true, true,
                                        true, true, false, true,
                                        false, true, false, true,
                                        true, false, false, true,
                                        false, false, false, true,
                                        true, true, true, false,
                                        false, true, true, false,
                                        true, false, true, false,
                                        false, false, true, false,
                                        true, true, false, false,
                                        false, true, false, false,
                                        true, false, false, false,
                                        false, false, false, false]> : tensor<64xi1>
  func.return
}
// ----- interpret/broadcast_in_dim#0
func.func @broadcast_in_dim() {
  %operand = stablehlo.constant dense<[[1], [2], [3]]> : tensor<3x1xi64>
  %result = "stablehlo.broadcast_in_dim"(%operand) {
    broadcast_dimensions = array<i64: 0, 2>
  } : (tensor<3x1xi64>) -> tensor<3x2x2xi64>
  check.expect_eq_const %result, dense<[[[1, 1], [1, 1]], [[2, 2], [2, 2]], [[3, 3], [3, 3]]]> : tensor<3x2x2xi64>
  func.return
}
// ----- interpret/call#0
func.func @add_2(%arg0: tensor<i64>) -> tensor<i64> {
  %0 = stablehlo.constant dense<2> : tensor<i64>
  %1 = stablehlo.add %arg0, %0 : tensor<i64>
  func.return %1 : tensor<i64>
}
func.func @main() {
  %0 = stablehlo.constant dense<1> : tensor<i64>
  %1 = func.call @add_2(%0) : (tensor<i64>) -> tensor<i64>
  check.expect_eq_const %1, dense<3> : tensor<i64>
  func.return
}
// ----- interpret/case#0
func.func @case_negative_index_default() {
  %index = stablehlo.constant dense<-1> : tensor<i32>
  %result_branch0 = stablehlo.constant dense<0> : tensor<2xi64>
  %result_branch1 = stablehlo.constant dense<1> : tensor<2xi64>
  %result0, %result1 = "stablehlo.case"(%index) ({
    stablehlo.return %result_branch0, %result_branch0 : tensor<2xi64>, tensor<2xi64>
  }, {
    stablehlo.return %result_branch1, %result_branch1 : tensor<2xi64>, tensor<2xi64>
  }) : (tensor<i32>) -> (tensor<2xi64>, tensor<2xi64>)
  check.expect_eq_const %result0, dense<[1, 1]> : tensor<2xi64>
  check.expect_eq_const %result1, dense<[1, 1]> : tensor<2xi64>
  func.return
}
// ----- interpret/case#1
func.func @case_in_bound_index() {
  %index = stablehlo.constant dense<0> : tensor<i32>
  %result_branch0 = stablehlo.constant dense<0> : tensor<2xi64>
  %result_branch1 = stablehlo.constant dense<1> : tensor<2xi64>
  %result0, %result1 = "stablehlo.case"(%index) ({
    stablehlo.return %result_branch0, %result_branch0 : tensor<2xi64>, tensor<2xi64>
  }, {
    stablehlo.return %result_branch1, %result_branch1 : tensor<2xi64>, tensor<2xi64>
  }) : (tensor<i32>) -> (tensor<2xi64>, tensor<2xi64>)
  check.expect_eq_const %result0, dense<[0, 0]> : tensor<2xi64>
  check.expect_eq_const %result1, dense<[0, 0]> : tensor<2xi64>
  func.return
}
// ----- interpret/case#2
func.func @case_out_of_bound_index_default() {
  %index = stablehlo.constant dense<2> : tensor<i32>
  %result_branch0 = stablehlo.constant dense<0> : tensor<2xi64>
  %result_branch1 = stablehlo.constant dense<1> : tensor<2xi64>
  %result0, %result1 = "stablehlo.case"(%index) ({
    stablehlo.return %result_branch0, %result_branch0 : tensor<2xi64>, tensor<2xi64>
  }, {
    stablehlo.return %result_branch1, %result_branch1 : tensor<2xi64>, tensor<2xi64>
  }) : (tensor<i32>) -> (tensor<2xi64>, tensor<2xi64>)
  check.expect_eq_const %result0, dense<[1, 1]> : tensor<2xi64>
  check.expect_eq_const %result1, dense<[1, 1]> : tensor<2xi64>
  func.return
}
// ----- interpret/cbrt#0
func.func @cbrt_op_test_f64() {
  %operand = stablehlo.constant dense<[0.0, 1.0, 8.0, 27.0]> : tensor<4xf64>
  %result = stablehlo.cbrt %operand : tensor<4xf64>
  check.expect_almost_eq_const %result, dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf64>
  func.return
}
// ----- interpret/ceil#0
func.func @ceil_op_test_bf16() {
  %0 = stablehlo.constant dense<[0xFF80, -2.5, 0x8001, -0.0, 0.0, 0x0001, 2.5, 0x7F80, 0x7FC0]> : tensor<9xbf16>
  %1 = stablehlo.ceil %0 : tensor<9xbf16>
  check.expect_almost_eq_const %1, dense<[0xFF80, -2.000000e+00, -0.000000e+00, -0.000000e+00, 0.000000e+00, 1.000000e+00, 3.000000e+00, 0x7F80, 0x7FC0]> : tensor<9xbf16>
  func.return
}
// ----- interpret/ceil#1
func.func @ceil_op_test_f16() {
  %0 = stablehlo.constant dense<[0xFC00, -2.5, 0x8001, -0.0, 0.0, 0x0001, 2.5, 0x7C00, 0x7E00]> : tensor<9xf16>
  %1 = stablehlo.ceil %0 : tensor<9xf16>
  check.expect_almost_eq_const %1, dense<[0xFC00, -2.000000e+00, -0.000000e+00, -0.000000e+00, 0.000000e+00, 1.000000e+00, 3.000000e+00, 0x7C00, 0x7E00]> : tensor<9xf16>
  func.return
}
// ----- interpret/ceil#2
func.func @ceil_op_test_f32() {
  %0 = stablehlo.constant dense<[0xFF800000, -2.5, 0x80000001, -0.0, 0.0, 0x00000001, 2.5, 0x7F800000, 0x7FC00000]> : tensor<9xf32>
  %1 = stablehlo.ceil %0 : tensor<9xf32>
  check.expect_almost_eq_const %1, dense<[0xFF800000, -2.000000e+00, -0.000000e+00, -0.000000e+00, 0.000000e+00, 1.000000e+00, 3.000000e+00, 0x7F800000, 0x7FC00000]> : tensor<9xf32>
  func.return
}
// ----- interpret/ceil#3
func.func @ceil_op_test_f64() {
  %0 = stablehlo.constant dense<[0xFFF0000000000000, -2.5, 0x8000000000000001, -0.0, 0.0, 0x0000000000000001, 2.5, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<9xf64>
  %1 = stablehlo.ceil %0 : tensor<9xf64>
  check.expect_almost_eq_const %1, dense<[0xFFF0000000000000, -2.000000e+00, -0.000000e+00, -0.000000e+00, 0.000000e+00, 1.000000e+00, 3.000000e+00, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<9xf64>
  func.return
}
// ----- interpret/clamp#0
func.func @clamp_op_test_si64() {
  %min = stablehlo.constant dense<[1, 5, -5]> : tensor<3xi64>
  %operand = stablehlo.constant dense<[2, 3, -1]> : tensor<3xi64>
  %max = stablehlo.constant dense<[3, 7, -3]> : tensor<3xi64>
  %result = stablehlo.clamp %min, %operand, %max : (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[2, 5, -3]> : tensor<3xi64>
  func.return
}
// ----- interpret/clamp#1
func.func @clamp_op_test_si64_min_scalar() {
  %min = stablehlo.constant dense<[0, 0, -2]> : tensor<3xi64>
  %operand = stablehlo.constant dense<[2, 3, -1]> : tensor<3xi64>
  %max = stablehlo.constant dense<1> : tensor<i64>
  %result = stablehlo.clamp %min, %operand, %max : (tensor<3xi64>, tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[1, 1, -1]> : tensor<3xi64>
  func.return
}
// ----- interpret/clamp#2
func.func @clamp_op_test_si64_max_scalar() {
  %min = stablehlo.constant dense<0> : tensor<i64>
  %operand = stablehlo.constant dense<[2, 3, -1]> : tensor<3xi64>
  %max = stablehlo.constant dense<[1, 1, 4]> : tensor<3xi64>
  %result = stablehlo.clamp %min, %operand, %max : (tensor<i64>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[1, 1, 0]> : tensor<3xi64>
  func.return
}
// ----- interpret/clamp#3
func.func @clamp_op_test_si64_min_max_both_scalar() {
  %min = stablehlo.constant dense<0> : tensor<i64>
  %operand = stablehlo.constant dense<[2, 3, -1]> : tensor<3xi64>
  %max = stablehlo.constant dense<1> : tensor<i64>
  %result = stablehlo.clamp %min, %operand, %max : (tensor<i64>, tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[1, 1, 0]> : tensor<3xi64>
  func.return
}
// ----- interpret/compare#0
func.func @compare_op_test_si64_default() {
  %lhs = stablehlo.constant dense<-2> : tensor<i64>
  %rhs = stablehlo.constant dense<-2> : tensor<i64>
  %result = stablehlo.compare EQ, %lhs, %rhs : (tensor<i64>, tensor<i64>) -> tensor<i1>
  check.expect_eq_const %result, dense<true> : tensor<i1>
  func.return
}
// ----- interpret/compare#1
func.func @compare_op_test_si64() {
  %lhs = stablehlo.constant dense<[-2, -1, 0, 2, 2]> : tensor<5xi64>
  %rhs = stablehlo.constant dense<[-2, -2, 0, 1, 2]> : tensor<5xi64>
  %result = stablehlo.compare EQ, %lhs, %rhs, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
  check.expect_eq_const %result, dense<[true, false, true, false, true]> : tensor<5xi1>
  func.return
}
// ----- interpret/compare#2
func.func @compare_op_test_si64() {
  %lhs = stablehlo.constant dense<[-2, -1, 0, 2, 2]> : tensor<5xi64>
  %rhs = stablehlo.constant dense<[-2, -2, 0, 1, 2]> : tensor<5xi64>
  %result = stablehlo.compare NE, %lhs, %rhs, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
  check.expect_eq_const %result, dense<[false, true, false, true, false]> : tensor<5xi1>
  func.return
}
// ----- interpret/compare#3
func.func @compare_op_test_si64() {
  %lhs = stablehlo.constant dense<[-2, -1, 0, 2, 2]> : tensor<5xi64>
  %rhs = stablehlo.constant dense<[-2, -2, 0, 1, 2]> : tensor<5xi64>
  %result = stablehlo.compare GE, %lhs, %rhs, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
  check.expect_eq_const %result, dense<[true, true, true, true, true]> : tensor<5xi1>
  func.return
}
// ----- interpret/compare#4
func.func @compare_op_test_si64() {
  %lhs = stablehlo.constant dense<[-2, -1, 0, 2, 2]> : tensor<5xi64>
  %rhs = stablehlo.constant dense<[-2, -2, 0, 1, 2]> : tensor<5xi64>
  %result = stablehlo.compare GT, %lhs, %rhs, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
  check.expect_eq_const %result, dense<[false, true, false, true, false]> : tensor<5xi1>
  func.return
}
// ----- interpret/compare#5
func.func @compare_op_test_si64() {
  %lhs = stablehlo.constant dense<[-2, -1, 0, 2, 2]> : tensor<5xi64>
  %rhs = stablehlo.constant dense<[-2, -2, 0, 1, 2]> : tensor<5xi64>
  %result = stablehlo.compare LE, %lhs, %rhs, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
  check.expect_eq_const %result, dense<[true, false, true, false, true]> : tensor<5xi1>
  func.return
}
// ----- interpret/compare#6
func.func @compare_op_test_si64() {
  %lhs = stablehlo.constant dense<[-2, -1, 0, 2, 2]> : tensor<5xi64>
  %rhs = stablehlo.constant dense<[-2, -2, 0, 1, 2]> : tensor<5xi64>
  %result = stablehlo.compare LT, %lhs, %rhs, SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
  check.expect_eq_const %result, dense<[false, false, false, false, false]> : tensor<5xi1>
  func.return
}
// ----- interpret/compare#7
func.func @compare_op_test_ui64_default() {
  %lhs = stablehlo.constant dense<0> : tensor<ui64>
  %rhs = stablehlo.constant dense<0> : tensor<ui64>
  %result = stablehlo.compare EQ, %lhs, %rhs : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
  check.expect_eq_const %result, dense<true> : tensor<i1>
  func.return
}
// ----- interpret/compare#8
func.func @compare_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %rhs = stablehlo.constant dense<[0, 0]> : tensor<2xui64>
  %result = stablehlo.compare EQ, %lhs, %rhs, UNSIGNED : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[true, false]> : tensor<2xi1>
  func.return
}
// ----- interpret/compare#9
func.func @compare_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %rhs = stablehlo.constant dense<[0, 0]> : tensor<2xui64>
  %result = stablehlo.compare NE, %lhs, %rhs, UNSIGNED : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[false, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/compare#10
func.func @compare_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %rhs = stablehlo.constant dense<[0, 0]> : tensor<2xui64>
  %result = stablehlo.compare GE, %lhs, %rhs, UNSIGNED : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[true, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/compare#11
func.func @compare_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %rhs = stablehlo.constant dense<[0, 0]> : tensor<2xui64>
  %result = stablehlo.compare GT, %lhs, %rhs, UNSIGNED : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[false, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/compare#12
func.func @compare_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %rhs = stablehlo.constant dense<[0, 0]> : tensor<2xui64>
  %result = stablehlo.compare LE, %lhs, %rhs, UNSIGNED : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[true, false]> : tensor<2xi1>
  func.return
}
// ----- interpret/compare#13
func.func @compare_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %rhs = stablehlo.constant dense<[0, 0]> : tensor<2xui64>
  %result = stablehlo.compare LT, %lhs, %rhs, UNSIGNED : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[false, false]> : tensor<2xi1>
  func.return
}
// ----- interpret/compare#14
func.func @compare_op_test_i1_default() {
  %lhs = stablehlo.constant dense<true> : tensor<i1>
  %rhs = stablehlo.constant dense<true> : tensor<i1>
  %result = stablehlo.compare EQ, %lhs, %rhs : (tensor<i1>, tensor<i1>) -> tensor<i1>
  check.expect_eq_const %result, dense<true> : tensor<i1>
  func.return
}
// ----- interpret/compare#15
func.func @compare_op_test_i1() {
  %lhs = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %rhs = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %result = stablehlo.compare EQ, %lhs, %rhs, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %result, dense<[true, false, false, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/compare#16
func.func @compare_op_test_i1() {
  %lhs = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %rhs = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %result = stablehlo.compare NE, %lhs, %rhs, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %result, dense<[false, true, true, false]> : tensor<4xi1>
  func.return
}
// ----- interpret/compare#17
func.func @compare_op_test_i1() {
  %lhs = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %rhs = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %result = stablehlo.compare GE, %lhs, %rhs, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %result, dense<[true, true, false, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/compare#18
func.func @compare_op_test_i1() {
  %lhs = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %rhs = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %result = stablehlo.compare GT, %lhs, %rhs, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %result, dense<[false, true, false, false]> : tensor<4xi1>
  func.return
}
// ----- interpret/compare#19
func.func @compare_op_test_i1() {
  %lhs = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %rhs = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %result = stablehlo.compare LE, %lhs, %rhs, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %result, dense<[true, false, true, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/compare#20
func.func @compare_op_test_i1() {
  %lhs = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %rhs = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %result = stablehlo.compare LT, %lhs, %rhs, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %result, dense<[false, false, true, false]> : tensor<4xi1>
  func.return
}
// ----- interpret/compare#21
func.func @compare_op_test_f64_default() {
  // -NaN
  // -NaN
  %lhs = stablehlo.constant dense<0xFFF0000000000001> : tensor<f64>
  %rhs = stablehlo.constant dense<0xFFF0000000000001> : tensor<f64>
  %result = stablehlo.compare EQ, %lhs, %rhs : (tensor<f64>, tensor<f64>) -> tensor<i1>
  check.expect_eq_const %result, dense<false> : tensor<i1>
  func.return
}
// ----- interpret/compare#22
func.func @compare_op_test_f64() {
  // -NaN, -NaN, -Inf, -Inf, -2.0, -2.0, -0.0, -0.0, +0.0, 1.0, 2.0, +Inf, +NaN, +minNaN
  // -NaN, +NaN, -Inf, +Inf, -2.0, -1.0, -0.0, +0.0, +0.0, 2.0, 2.0, +Inf, +NaN, +maxNaN
  %lhs = stablehlo.constant dense<[0xFFF0000000000001, 0xFFF0000000000001, 0xFFF0000000000000, 0xFFF0000000000000, -2.0, -2.0, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000, 1.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF0000000000001]> : tensor<14xf64>
  %rhs = stablehlo.constant dense<[0xFFF0000000000001, 0x7FF0000000000001, 0xFFF0000000000000, 0x7FF0000000000000, -2.0, -1.0, 0x8000000000000000, 0x0000000000000000, 0x0000000000000000, 2.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]> : tensor<14xf64>
  %result = stablehlo.compare EQ, %lhs, %rhs, FLOAT : (tensor<14xf64>, tensor<14xf64>) -> tensor<14xi1>
  check.expect_eq_const %result, dense<[false, false, true, false, true, false, true, true, true, false, true, true, false, false]> : tensor<14xi1>
  func.return
}
// ----- interpret/compare#23
func.func @compare_op_test_f64() {
  // -NaN, -NaN, -Inf, -Inf, -2.0, -2.0, -0.0, -0.0, +0.0, 1.0, 2.0, +Inf, +NaN, +minNaN
  // -NaN, +NaN, -Inf, +Inf, -2.0, -1.0, -0.0, +0.0, +0.0, 2.0, 2.0, +Inf, +NaN, +maxNaN
  %lhs = stablehlo.constant dense<[0xFFF0000000000001, 0xFFF0000000000001, 0xFFF0000000000000, 0xFFF0000000000000, -2.0, -2.0, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000, 1.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF0000000000001]> : tensor<14xf64>
  %rhs = stablehlo.constant dense<[0xFFF0000000000001, 0x7FF0000000000001, 0xFFF0000000000000, 0x7FF0000000000000, -2.0, -1.0, 0x8000000000000000, 0x0000000000000000, 0x0000000000000000, 2.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]> : tensor<14xf64>
  %result = stablehlo.compare NE, %lhs, %rhs, FLOAT : (tensor<14xf64>, tensor<14xf64>) -> tensor<14xi1>
  check.expect_eq_const %result, dense<[true, true, false, true, false, true, false, false, false, true, false, false, true, true]> : tensor<14xi1>
  func.return
}
// ----- interpret/compare#24
func.func @compare_op_test_f64() {
  // -NaN, -NaN, -Inf, -Inf, -2.0, -2.0, -0.0, -0.0, +0.0, 1.0, 2.0, +Inf, +NaN, +minNaN
  // -NaN, +NaN, -Inf, +Inf, -2.0, -1.0, -0.0, +0.0, +0.0, 2.0, 2.0, +Inf, +NaN, +maxNaN
  %lhs = stablehlo.constant dense<[0xFFF0000000000001, 0xFFF0000000000001, 0xFFF0000000000000, 0xFFF0000000000000, -2.0, -2.0, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000, 1.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF0000000000001]> : tensor<14xf64>
  %rhs = stablehlo.constant dense<[0xFFF0000000000001, 0x7FF0000000000001, 0xFFF0000000000000, 0x7FF0000000000000, -2.0, -1.0, 0x8000000000000000, 0x0000000000000000, 0x0000000000000000, 2.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]> : tensor<14xf64>
  %result = stablehlo.compare GE, %lhs, %rhs, FLOAT : (tensor<14xf64>, tensor<14xf64>) -> tensor<14xi1>
  check.expect_eq_const %result, dense<[false, false, true, false, true, false, true, true, true, false, true, true, false, false]> : tensor<14xi1>
  func.return
}
// ----- interpret/compare#25
func.func @compare_op_test_f64() {
  // -NaN, -NaN, -Inf, -Inf, -2.0, -2.0, -0.0, -0.0, +0.0, 1.0, 2.0, +Inf, +NaN, +minNaN
  // -NaN, +NaN, -Inf, +Inf, -2.0, -1.0, -0.0, +0.0, +0.0, 2.0, 2.0, +Inf, +NaN, +maxNaN
  %lhs = stablehlo.constant dense<[0xFFF0000000000001, 0xFFF0000000000001, 0xFFF0000000000000, 0xFFF0000000000000, -2.0, -2.0, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000, 1.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF0000000000001]> : tensor<14xf64>
  %rhs = stablehlo.constant dense<[0xFFF0000000000001, 0x7FF0000000000001, 0xFFF0000000000000, 0x7FF0000000000000, -2.0, -1.0, 0x8000000000000000, 0x0000000000000000, 0x0000000000000000, 2.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]> : tensor<14xf64>
  %result = stablehlo.compare GT, %lhs, %rhs, FLOAT : (tensor<14xf64>, tensor<14xf64>) -> tensor<14xi1>
  check.expect_eq_const %result, dense<[false, false, false, false, false, false, false, false, false, false, false, false, false, false]> : tensor<14xi1>
  func.return
}
// ----- interpret/compare#26
func.func @compare_op_test_f64() {
  // -NaN, -NaN, -Inf, -Inf, -2.0, -2.0, -0.0, -0.0, +0.0, 1.0, 2.0, +Inf, +NaN, +minNaN
  // -NaN, +NaN, -Inf, +Inf, -2.0, -1.0, -0.0, +0.0, +0.0, 2.0, 2.0, +Inf, +NaN, +maxNaN
  %lhs = stablehlo.constant dense<[0xFFF0000000000001, 0xFFF0000000000001, 0xFFF0000000000000, 0xFFF0000000000000, -2.0, -2.0, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000, 1.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF0000000000001]> : tensor<14xf64>
  %rhs = stablehlo.constant dense<[0xFFF0000000000001, 0x7FF0000000000001, 0xFFF0000000000000, 0x7FF0000000000000, -2.0, -1.0, 0x8000000000000000, 0x0000000000000000, 0x0000000000000000, 2.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]> : tensor<14xf64>
  %result = stablehlo.compare LE, %lhs, %rhs, FLOAT : (tensor<14xf64>, tensor<14xf64>) -> tensor<14xi1>
  check.expect_eq_const %result, dense<[false, false, true, true, true, true, true, true, true, true, true, true, false, false]> : tensor<14xi1>
  func.return
}
// ----- interpret/compare#27
func.func @compare_op_test_f64() {
  // -NaN, -NaN, -Inf, -Inf, -2.0, -2.0, -0.0, -0.0, +0.0, 1.0, 2.0, +Inf, +NaN, +minNaN
  // -NaN, +NaN, -Inf, +Inf, -2.0, -1.0, -0.0, +0.0, +0.0, 2.0, 2.0, +Inf, +NaN, +maxNaN
  %lhs = stablehlo.constant dense<[0xFFF0000000000001, 0xFFF0000000000001, 0xFFF0000000000000, 0xFFF0000000000000, -2.0, -2.0, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000, 1.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF0000000000001]> : tensor<14xf64>
  %rhs = stablehlo.constant dense<[0xFFF0000000000001, 0x7FF0000000000001, 0xFFF0000000000000, 0x7FF0000000000000, -2.0, -1.0, 0x8000000000000000, 0x0000000000000000, 0x0000000000000000, 2.0, 2.0, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]> : tensor<14xf64>
  %result = stablehlo.compare LT, %lhs, %rhs, FLOAT : (tensor<14xf64>, tensor<14xf64>) -> tensor<14xi1>
  check.expect_eq_const %result, dense<[false, false, false, true, false, true, false, false, false, true, false, false, false, false]> : tensor<14xi1>
  func.return
}
// ----- interpret/composite#0
func.func @add_n.impl(%arg0: tensor<i64>) -> tensor<i64> {
  %0 = stablehlo.constant dense<2> : tensor<i64>
  %1 = stablehlo.add %arg0, %0 : tensor<i64>
  func.return %1 : tensor<i64>
}
func.func @main() {
  %0 = stablehlo.constant dense<1> : tensor<i64>
  %1 = stablehlo.composite "stablehlo.add_n" %0 {
    composite_attributes = { n = 2 : i64 },
    decomposition = @add_n.impl
  } : (tensor<i64>) -> tensor<i64>
  check.expect_eq_const %1, dense<3> : tensor<i64>
  func.return
}
// ----- interpret/concatenate#0
func.func @concatenate() {
  %input0 = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  %input1 = stablehlo.constant dense<[[7, 8]]> : tensor<1x2xi64>
  %result = stablehlo.concatenate %input0, %input1, dim = 0 : (tensor<3x2xi64>, tensor<1x2xi64>) -> tensor<4x2xi64>
  check.expect_eq_const %result, dense<[[1, 2], [3, 4] , [5, 6], [7, 8]]> : tensor<4x2xi64>
  func.return
}
// ----- interpret/constant#4
func.func @constant_op_test_si8() {
  %0 = stablehlo.constant dense<[-128, -9, 0, 8, 127]> : tensor<5xi8>
  check.expect_eq_const %0, dense<[-128, -9, 0, 8, 127]> : tensor<5xi8>
  func.return
}
// ----- interpret/constant#5
func.func @constant_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16, 255]> : tensor<3xui8>
  check.expect_eq_const %0, dense<[0, 16, 255]> : tensor<3xui8>
  func.return
}
// ----- interpret/constant#6
func.func @constant_op_test_si16() {
  %0 = stablehlo.constant dense<[-32768, -129, 0, 128, 32767]> : tensor<5xi16>
  check.expect_eq_const %0, dense<[-32768, -129, 0, 128, 32767]> : tensor<5xi16>
  func.return
}
// ----- interpret/constant#7
func.func @constant_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256, 65535]> : tensor<3xui16>
  check.expect_eq_const %0, dense<[0, 256, 65535]> : tensor<3xui16>
  func.return
}
// ----- interpret/constant#8
func.func @constant_op_test_si32() {
  %0 = stablehlo.constant dense<[-2147483648, -65537, 0, 65536, 2147483647]> : tensor<5xi32>
  check.expect_eq_const %0, dense<[-2147483648, -65537, 0, 65536, 2147483647]> : tensor<5xi32>
  func.return
}
// ----- interpret/constant#9
func.func @constant_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536, 4294967295]> : tensor<3xui32>
  check.expect_eq_const %0, dense<[0, 65536, 4294967295]> : tensor<3xui32>
  func.return
}
// ----- interpret/constant#10
func.func @constant_op_test_si64() {
  %0 = stablehlo.constant dense<[-9223372036854775808, -2147483649, 0, 2147483648, 9223372036854775807]> : tensor<5xi64>
  check.expect_eq_const %0, dense<[-9223372036854775808, -2147483649, 0, 2147483648, 9223372036854775807]> : tensor<5xi64>
  func.return
}
// ----- interpret/constant#11
func.func @constant_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296, 18446744073709551615]> : tensor<3xui64>
  check.expect_eq_const %0, dense<[0, 4294967296, 18446744073709551615]> : tensor<3xui64>
  func.return
}
// ----- interpret/constant#24
func.func @constant_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7F80, 0xFF80, 0x7FFF, 0x0001, 0x8001]> : tensor<11xbf16>
  check.expect_almost_eq_const %0, dense<[0.000000e+00, -0.000000e+00, 1.000000e+00, 1.250000e-01, 1.000980e-01, 3.140630e+00, 0x7F80, 0xFF80, 0x7FFF, 9.183550e-41, -9.183550e-41]> : tensor<11xbf16>
  func.return
}
// ----- interpret/constant#25
func.func @constant_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7C00, 0xFC00, 0x7FFF, 0x0001, 0x8001]> : tensor<11xf16>
  check.expect_almost_eq_const %0, dense<[0.000000e+00, -0.000000e+00, 1.000000e+00, 1.250000e-01, 9.997550e-02, 3.140630e+00, 0x7C00, 0xFC00, 0x7FFF, 5.960460e-08, -5.960460e-08]> : tensor<11xf16>
  func.return
}
// ----- interpret/constant#26
func.func @constant_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159274, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x00000001, 0x80000001]> : tensor<11xf32>
  check.expect_almost_eq_const %0, dense<[0.000000e+00, -0.000000e+00, 1.000000e+00, 1.250000e-01, 1.000000e-01, 3.14159274, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 1.401300e-45, -1.401300e-45]> : tensor<11xf32>
  func.return
}
// ----- interpret/constant#27
func.func @constant_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.1415926535897931, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FFFFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001]> : tensor<11xf64>
  check.expect_almost_eq_const %0, dense<[0.000000e+00, -0.000000e+00, 1.000000e+00, 1.250000e-01, 1.000000e-01, 3.1415926535897931, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FFFFFFFFFFFFFFF, 4.940660e-324, -4.940660e-324]> : tensor<11xf64>
  func.return
}
// ----- interpret/constant#28
func.func @constant_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (3.5, 4.5)]> : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %0, dense<[(1.500000e+00, 2.500000e+00), (3.500000e+00, 4.500000e+00)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/convert#0
func.func @convert_op_test_i1_to_i1() {
  %operand = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %result = stablehlo.convert %operand : (tensor<2xi1>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[true, false]> : tensor<2xi1>
  func.return
}
// ----- interpret/convert#1
func.func @convert_op_test_i1_to_si64() {
  %operand = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %result = stablehlo.convert %operand : (tensor<2xi1>) -> tensor<2xi64>
  check.expect_eq_const %result, dense<[1, 0]> : tensor<2xi64>
  func.return
}
// ----- interpret/convert#2
func.func @convert_op_test_i1_to_ui64() {
  %operand = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %result = stablehlo.convert %operand : (tensor<2xi1>) -> tensor<2xui64>
  check.expect_eq_const %result, dense<[1, 0]> : tensor<2xui64>
  func.return
}
// ----- interpret/convert#3
func.func @convert_op_test_i1_to_f64() {
  %operand = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %result = stablehlo.convert %operand : (tensor<2xi1>) -> tensor<2xf64>
  check.expect_almost_eq_const %result, dense<[1.0, 0.0]> : tensor<2xf64>
  func.return
}
// ----- interpret/convert#5
func.func @convert_op_test_si64_to_i1() {
  %operand = stablehlo.constant dense<[-1, 0, 1]> : tensor<3xi64>
  %result = stablehlo.convert %operand : (tensor<3xi64>) -> tensor<3xi1>
  check.expect_eq_const %result, dense<[true, false, true]> : tensor<3xi1>
  func.return
}
// ----- interpret/convert#6
func.func @convert_op_test_si64_to_si64() {
  %operand = stablehlo.constant dense<[-1, 0, 1]> : tensor<3xi64>
  %result = stablehlo.convert %operand : (tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[-1, 0, 1]> : tensor<3xi64>
  func.return
}
// ----- interpret/convert#8
func.func @convert_op_test_si64_to_f64() {
  %operand = stablehlo.constant dense<[-1, 0, 1]> : tensor<3xi64>
  %result = stablehlo.convert %operand : (tensor<3xi64>) -> tensor<3xf64>
  check.expect_almost_eq_const %result, dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>
  func.return
}
// ----- interpret/convert#10
func.func @convert_op_test_ui64_to_i1() {
  %operand = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %result = stablehlo.convert %operand : (tensor<2xui64>) -> tensor<2xi1>
  check.expect_eq_const %result, dense<[false, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/convert#11
func.func @convert_op_test_ui64_to_si64() {
  %operand = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %result = stablehlo.convert %operand : (tensor<2xui64>) -> tensor<2xi64>
  check.expect_eq_const %result, dense<[0, 1]> : tensor<2xi64>
  func.return
}
// ----- interpret/convert#13
func.func @convert_op_test_ui64_to_f64() {
  %operand = stablehlo.constant dense<[0, 1]> : tensor<2xui64>
  %result = stablehlo.convert %operand : (tensor<2xui64>) -> tensor<2xf64>
  check.expect_almost_eq_const %result, dense<[0.0, 1.0]> : tensor<2xf64>
  func.return
}
// ----- interpret/convert#15
func.func @convert_op_test_f64_to_i1() {
  %operand = stablehlo.constant dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>
  %result = stablehlo.convert %operand : (tensor<3xf64>) -> tensor<3xi1>
  check.expect_eq_const %result, dense<[true, false, true]> : tensor<3xi1>
  func.return
}
// ----- interpret/convert#16
func.func @convert_op_test_f64_to_si64() {
  %operand = stablehlo.constant dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>
  %result = stablehlo.convert %operand : (tensor<3xf64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[-1, 0, 1]> : tensor<3xi64>
  func.return
}
// ----- interpret/convert#17
func.func @convert_op_test_f64_to_ui64() {
  %operand = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf64>
  %result = stablehlo.convert %operand : (tensor<2xf64>) -> tensor<2xui64>
  check.expect_eq_const %result, dense<[0, 1]> : tensor<2xui64>
  func.return
}
// ----- interpret/convert#18
func.func @convert_op_test_f64_to_f64() {
  %operand = stablehlo.constant dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>
  %result = stablehlo.convert %operand : (tensor<3xf64>) -> tensor<3xf64>
  check.expect_almost_eq_const %result, dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>
  func.return
}
// ----- interpret/convolution#0
func.func @convolution_op_test_si64() {
  %lhs = stablehlo.constant dense<[[
                                    [[1], [2], [5], [6]],
                                    [[3], [4], [7], [8]],
                                    [[10], [11], [14], [15]],
                                    [[12], [13], [16], [17]]
                                  ]]> : tensor<1x4x4x1xi64>
  %rhs = stablehlo.constant dense<1> : tensor<3x3x1x1xi64>
  %result = stablehlo.convolution(%lhs, %rhs)
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {
      stride = [4, 4],
      lhs_dilate = [2, 2]
    } {
      batch_group_count = 1 : i64,
      feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    }
  : (tensor<1x4x4x1xi64>, tensor<3x3x1x1xi64>) -> tensor<1x2x2x1xi64>
  check.expect_eq_const %result, dense<[[
                                         [[10], [26]],
                                         [[46], [62]]
                                        ]]> : tensor<1x2x2x1xi64>
  func.return
}
// ----- interpret/convolution#1
func.func @convolution_op_test_si8() {
  %lhs = stablehlo.constant dense<[[
                                    [[1], [2], [5], [6]],
                                    [[3], [4], [7], [8]],
                                    [[10], [11], [14], [15]],
                                    [[12], [13], [16], [17]]
                                  ]]> : tensor<1x4x4x1xi8>
  %rhs = stablehlo.constant dense<10> : tensor<3x3x1x1xi8>
  %result = stablehlo.convolution(%lhs, %rhs)
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {
      stride = [4, 4],
      lhs_dilate = [2, 2]
    } {
      batch_group_count = 1 : i64,
      feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    }
  : (tensor<1x4x4x1xi8>, tensor<3x3x1x1xi8>) -> tensor<1x2x2x1xi32>
  check.expect_eq_const %result, dense<[[
                                         [[100], [260]],
                                         [[460], [620]]
                                        ]]> : tensor<1x2x2x1xi32>
  func.return
}
// ----- interpret/convolution#2
func.func @convolution_op_test_padding() {
  %lhs = stablehlo.constant dense<[[
                                    [[1], [2], [5], [6]],
                                    [[3], [4], [7], [8]],
                                    [[10], [11], [14], [15]],
                                    [[12], [13], [16], [17]]
                                  ]]> : tensor<1x4x4x1xi64>
  %rhs = stablehlo.constant dense<1> : tensor<3x3x1x1xi64>
  %result = stablehlo.convolution(%lhs, %rhs)
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {
      stride = [4, 4],
      pad = [[1, 1], [1, 1]],
      lhs_dilate = [2, 2]
    } {
      batch_group_count = 1 : i64,
      feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    }
  : (tensor<1x4x4x1xi64>, tensor<3x3x1x1xi64>) -> tensor<1x2x2x1xi64>
  check.expect_eq_const %result, dense<[[
                                         [[1], [5]],
                                         [[10], [14]]
                                        ]]> : tensor<1x2x2x1xi64>
  func.return
}
// ----- interpret/convolution#3
func.func @convolution_batch_group_count_4() {
  %lhs = stablehlo.constant dense<[[
                                    [[1], [2], [5], [6]],
                                    [[3], [4], [7], [8]],
                                    [[10], [11], [14], [15]],
                                    [[12], [13], [16], [17]]
                                  ]]> : tensor<1x4x4x1xi64>
  %rhs = stablehlo.constant dense<1> : tensor<1x2x1x4xi64>
  %result = stablehlo.convolution(%lhs, %rhs)
    dim_numbers = [0, b, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {
      stride = [4, 4],
      lhs_dilate = [2, 2]
    } {
      batch_group_count = 4 : i64,
      feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    }
  : (tensor<1x4x4x1xi64>, tensor<1x2x1x4xi64>) -> tensor<1x1x2x4xi64>
  check.expect_eq_const %result, dense<[[[[1, 3, 10, 12],
                                          [5, 7, 14, 16]]]]> : tensor<1x1x2x4xi64>
  func.return
}
// ----- interpret/convolution#4
func.func @convolution_feature_group_count_2() {
  %lhs = stablehlo.constant dense<[[
                                    [[1], [2], [5], [6]],
                                    [[3], [4], [7], [8]],
                                    [[10], [11], [14], [15]],
                                    [[12], [13], [16], [17]]
                                  ]]> : tensor<1x4x4x1xi64>
  %rhs = stablehlo.constant dense<1> : tensor<1x2x1x4xi64>
  %result = stablehlo.convolution(%lhs, %rhs)
    dim_numbers = [b, 0, f, 1]x[0, i, 1, o]->[b, 0, 1, f],
    window = {
      stride = [4, 4],
      lhs_dilate = [2, 2]
    } {
      batch_group_count = 1 : i64,
      feature_group_count = 2 : i64,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    }
  : (tensor<1x4x4x1xi64>, tensor<1x2x1x4xi64>) -> tensor<1x2x1x4xi64>
  check.expect_eq_const %result, dense<[[[[3, 3, 11, 11]],
                                         [[21, 21, 29, 29]]]]> : tensor<1x2x1x4xi64>
  func.return
}
// ----- interpret/cosine#0
func.func @cosine_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7F80, 0xFF80, 0x7FFF, 0x0001, 0x8001]> : tensor<11xbf16>
  %1 = stablehlo.cosine %0 : tensor<11xbf16>
  check.expect_almost_eq_const %1, dense<[1.000000e+00, 1.000000e+00, 5.390630e-01, 9.921870e-01, 9.960930e-01, -1.000000e+00, 0xFFC0, 0xFFC0, 0x7FFF, 1.000000e+00, 1.000000e+00]> : tensor<11xbf16>
  func.return
}
// ----- interpret/cosine#1
func.func @cosine_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7C00, 0xFC00, 0x7FFF, 0x0001, 0x8001]> : tensor<11xf16>
  %1 = stablehlo.cosine %0 : tensor<11xf16>
  check.expect_almost_eq_const %1, dense<[1.000000e+00, 1.000000e+00, 5.405270e-01, 9.921870e-01, 9.951170e-01, -1.000000e+00, 0xFE00, 0xFE00, 0x7FFF, 1.000000e+00, 1.000000e+00]> : tensor<11xf16>
  func.return
}
// ----- interpret/cosine#2
func.func @cosine_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159274, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x00000001, 0x80000001]> : tensor<11xf32>
  %1 = stablehlo.cosine %0 : tensor<11xf32>
  check.expect_almost_eq_const %1, dense<[1.000000e+00, 1.000000e+00, 0.540302277, 0.992197692, 0.995004177, -1.000000e+00, 0xFFC00000, 0xFFC00000, 0x7FFFFFFF, 1.000000e+00, 1.000000e+00]> : tensor<11xf32>
  func.return
}
// ----- interpret/cosine#3
func.func @cosine_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.1415926535897931, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FFFFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001]> : tensor<11xf64>
  %1 = stablehlo.cosine %0 : tensor<11xf64>
  check.expect_almost_eq_const %1, dense<[1.000000e+00, 1.000000e+00, 0.54030230586813977, 0.992197667229329, 0.99500416527802582, -1.000000e+00, 0xFFF8000000000000, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF, 1.000000e+00, 1.000000e+00]> : tensor<11xf64>
  func.return
}
// ----- interpret/cosine#4
func.func @cosine_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (3.5, 4.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.cosine %0 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %1, dense<[(4.337810e-01, -6.03504848), (-42.1537743, 15.7863016)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/count_leading_zeros#0
func.func @count_leading_zeros_op_test_si64() {
  %operand = stablehlo.constant dense<[[0, 1], [128, -1]]> : tensor<2x2xi64>
  %result = stablehlo.count_leading_zeros %operand : tensor<2x2xi64>
  check.expect_eq_const %result, dense<[[64, 63], [56, 0]]> : tensor<2x2xi64>
  func.return
}
// ----- interpret/divide#0
func.func @divide_op_test_si64() {
  %lhs = stablehlo.constant dense<[17, -17, 17, -17]> : tensor<4xi64>
  %rhs = stablehlo.constant dense<[3, 3, -3, -3]> : tensor<4xi64>
  %result = stablehlo.divide %lhs, %rhs : tensor<4xi64>
  check.expect_eq_const %result, dense<[5, -5, -5, 5]> : tensor<4xi64>
  func.return
}
// ----- interpret/divide#1
func.func @divide_op_test_ui64() {
  %lhs = stablehlo.constant dense<[17, 18, 19, 20]> : tensor<4xui64>
  %rhs = stablehlo.constant dense<[3, 4, 5, 7]> : tensor<4xui64>
  %result = stablehlo.divide %lhs, %rhs : tensor<4xui64>
  check.expect_eq_const %result, dense<[5, 4, 3, 2]> : tensor<4xui64>
  func.return
}
// ----- interpret/divide#2
func.func @divide_op_test_f64() {
  %lhs = stablehlo.constant dense<[17.1, -17.1, 17.1, -17.1]> : tensor<4xf64>
  %rhs = stablehlo.constant dense<[3.0, 3.0, -3.0, -3.0]> : tensor<4xf64>
  %result = stablehlo.divide %lhs, %rhs : tensor<4xf64>
  check.expect_almost_eq_const %result, dense<[5.700000e+00, -5.700000e+00, -5.700000e+00, 5.700000e+00]> : tensor<4xf64>
  func.return
}
// ----- interpret/dot_general#0
func.func @dot_general_op_test_si64() {
  %lhs = stablehlo.constant dense<[[[1, 2], [3, 4]],
                                   [[5, 6], [7, 8]]]> : tensor<2x2x2xi64>
  %rhs = stablehlo.constant dense<[[[1, 0], [0, 1]],
                                   [[1, 0], [0, 1]]]> : tensor<2x2x2xi64>
  %result = stablehlo.dot_general %lhs, %rhs,
    batching_dims = [0] x [0],
    contracting_dims = [2] x [1],
    precision = [DEFAULT, DEFAULT]
    : (tensor<2x2x2xi64>, tensor<2x2x2xi64>) -> tensor<2x2x2xi64>
  check.expect_eq_const %result, dense<[[[1, 2], [3, 4]],
                                        [[5, 6], [7, 8]]]> : tensor<2x2x2xi64>
  func.return
}
// ----- interpret/dot_general#1
func.func @dot_general_op_test_algorithm() {
  %lhs = stablehlo.constant dense<[[[1, 2], [3, 4]],
                                   [[5, 6], [7, 8]]]> : tensor<2x2x2xi64>
  %rhs = stablehlo.constant dense<[[[1, 0], [0, 1]],
                                   [[1, 0], [0, 1]]]> : tensor<2x2x2xi64>
  %result = stablehlo.dot_general %lhs, %rhs,
    batching_dims = [0] x [0],
    contracting_dims = [2] x [1],
    precision = [DEFAULT, DEFAULT],
    algorithm = <
      lhs_precision_type = tf32,
      rhs_precision_type = tf32,
      accumulation_type = f32,
      lhs_component_count = 1,
      rhs_component_count = 1,
      num_primitive_operations = 1,
      allow_imprecise_accumulation = false
    > : (tensor<2x2x2xi64>, tensor<2x2x2xi64>) -> tensor<2x2x2xi64>
  check.expect_eq_const %result, dense<[[[1, 2], [3, 4]],
                                        [[5, 6], [7, 8]]]> : tensor<2x2x2xi64>
  func.return
}
// ----- interpret/dot_general#2
func.func @dot_general_op_test_empty_dims() {
  %lhs = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %rhs = stablehlo.constant dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>
  %result = stablehlo.dot_general %lhs, %rhs,
    batching_dims = [] x [],
    contracting_dims = [] x [],
    precision = [DEFAULT, DEFAULT]
    : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2x2x2xi64>
  check.expect_eq_const %result, dense<[[[[1, 0], [0, 1]],
                                         [[2, 0], [0, 2]]],
                                        [[[3, 0], [0, 3]],
                                         [[4, 0], [0, 4]]]]> : tensor<2x2x2x2xi64>
  func.return
}
// ----- interpret/dot_general#3
func.func @dot_general_op_test_different_operand_and_result_element_types() {
  %lhs = stablehlo.constant dense<[[[1.0, 2.0], [3.0, 4.0]],
                                  [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>
  %rhs = stablehlo.constant dense<[[[1.0, 0.0], [0.0, 1.0]],
                                  [[1.0, 0.0], [0.0, 1.0]]]> : tensor<2x2x2xf32>
  %result = stablehlo.dot_general %lhs, %rhs,
      batching_dims = [0] x [0],
      contracting_dims = [2] x [1]
      : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf64>
  check.expect_eq_const %result, dense<[[[1.0, 2.0], [3.0, 4.0]],
                                        [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf64>
  func.return
}
// ----- interpret/dynamic_broadcast_in_dim#0
func.func @broadcast_in_dim() {
  %operand = stablehlo.constant dense<[[1], [2], [3]]> : tensor<3x1xi64>
  %output_dimensions = stablehlo.constant dense<[3, 2, 2]> : tensor<3xi64>
  %result = "stablehlo.dynamic_broadcast_in_dim"(%operand, %output_dimensions) {
  broadcast_dimensions = array<i64: 0, 2>,
  known_expanding_dimensions = array<i64: 1>,
  known_nonexpanding_dimensions = array<i64: 0>
} : (tensor<3x1xi64>, tensor<3xi64>) -> tensor<3x2x2xi64>
  check.expect_eq_const %result, dense<[
                                        [
                                          [1, 1],
                                          [1, 1]
                                        ],
                                        [
                                          [2, 2],
                                          [2, 2]
                                        ],
                                        [
                                          [3, 3],
                                          [3, 3]
                                        ]
                                        ]> : tensor<3x2x2xi64>
  func.return
}
// ----- interpret/dynamic_conv#0
func.func @dynamic_conv_op_test_si64() {
  %lhs = stablehlo.constant dense<[[
                                    [[1], [2], [5], [6]],
                                    [[3], [4], [7], [8]],
                                    [[10], [11], [14], [15]],
                                    [[12], [13], [16], [17]]
                                  ]]> : tensor<1x4x4x1xi64>
  %rhs = stablehlo.constant dense<1> : tensor<3x3x1x1xi64>
  %padding = stablehlo.constant dense<1> : tensor<2x2xi64>
  %result = "stablehlo.dynamic_conv"(%lhs, %rhs, %padding) {
    window_strides = array<i64: 4, 4>,
    lhs_dilation = array<i64: 2, 2>,
    rhs_dilation = array<i64: 1, 1>,
    window_reversal = array<i1: false, false>,
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
    batch_group_count = 1 : i64,
    feature_group_count = 1 : i64,
    precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
  } : (tensor<1x4x4x1xi64>, tensor<3x3x1x1xi64>, tensor<2x2xi64>) -> tensor<1x2x2x1xi64>
  check.expect_eq_const %result, dense<[[
                                         [[1], [5]],
                                         [[10], [14]]
                                        ]]> : tensor<1x2x2x1xi64>
  func.return
}
// ----- interpret/dynamic_gather#0
func.func @dynamic_gather_op_test() {
  %operand = stablehlo.constant dense<[[[1, 2], [3, 4], [5, 6], [7, 8]],
                                       [[9, 10], [11, 12], [13, 14], [15, 16]],
                                       [[17, 18], [19, 20], [21, 22], [23, 24]]]> : tensor<3x4x2xi64>
  %start_indices = stablehlo.constant dense<[[[0, 0], [1, 0], [2, 1]],
                                             [[0, 1], [1, 1], [0, 9]]]> : tensor<2x3x2xi64>
  %slice_sizes = stablehlo.constant dense<[1, 2, 2]> : tensor<3xi64>
  %result = "stablehlo.dynamic_gather"(%operand, %start_indices, %slice_sizes) {
    dimension_numbers = #stablehlo.gather<
      offset_dims = [2, 3],
      collapsed_slice_dims = [0],
      start_index_map = [1, 0],
      index_vector_dim = 2>,
    indices_are_sorted = false
  } : (tensor<3x4x2xi64>, tensor<2x3x2xi64>, tensor<3xi64>) -> tensor<2x3x2x2xi64>
  check.expect_eq_const %result, dense<[[[[1, 2], [3, 4]],
                                         [[3, 4], [5, 6]],
                                         [[13, 14], [15, 16]]],
                                        [[[9, 10], [11, 12]],
                                         [[11, 12], [13, 14]],
                                         [[17, 18], [19, 20]]]]> : tensor<2x3x2x2xi64>
  func.return
}
// ----- interpret/dynamic_iota#0
func.func @dynamic_iota_op_test_si64_dim_0() {
  %output_shape = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
  %0 = stablehlo.dynamic_iota %output_shape, dim = 0 : (tensor<2xi64>) -> tensor<3x4xi64>
  check.expect_eq_const %0, dense<[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]> : tensor<3x4xi64>
  func.return
}
// ----- interpret/dynamic_iota#1
func.func @dynamic_iota_op_test_si64_dim_1() {
  %output_shape = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
  %0 = stablehlo.dynamic_iota %output_shape, dim = 1 : (tensor<2xi64>) -> tensor<3x4xi64>
  check.expect_eq_const %0, dense<[[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]> : tensor<3x4xi64>
  func.return
}
// ----- interpret/dynamic_pad#0
func.func @dynamic_pad() {
  %operand = stablehlo.constant dense<[[0, 0, 0, 0],
                                       [0, 1, 2, 0],
                                       [0, 3, 4, 0],
                                       [0, 5, 6, 0],
                                       [0, 0, 0, 0]]> : tensor<5x4xi64>
  %padding_value = stablehlo.constant dense<-1> : tensor<i64>
  %low = stablehlo.constant dense<[1, -1]> : tensor<2xi64>
  %high = stablehlo.constant dense<[1, -1]> : tensor<2xi64>
  %interior = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
  %result = stablehlo.dynamic_pad %operand, %padding_value, %low, %high, %interior
    : (tensor<5x4xi64>, tensor<i64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<7x5xi64>
  check.expect_eq_const %result, dense<[
    [-1, -1, -1, -1, -1],
    [-1,  0, -1,  0, -1],
    [-1,  1, -1,  2, -1],
    [-1,  3, -1,  4, -1],
    [-1,  5, -1,  6, -1],
    [-1,  0, -1,  0, -1],
    [-1, -1, -1, -1, -1]]> : tensor<7x5xi64>
  func.return
}
// ----- interpret/dynamic_reshape#0
func.func @dynamic_reshape_op_test_si64() {
  %operand = stablehlo.constant dense<[[1, 2, 3, 4, 5, 6]]> : tensor<1x6xi64>
  %output_shape = stablehlo.constant dense<[6]> : tensor<1xi64>
  %result = stablehlo.dynamic_reshape %operand, %output_shape : (tensor<1x6xi64>, tensor<1xi64>) -> tensor<6xi64>
  check.expect_eq_const %result, dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi64>
  func.return
}
// ----- interpret/dynamic_slice#0
func.func @dynamic_slice() {
  %operand = stablehlo.constant dense<[[1, 1, 1],
                                       [1, 1, 1],
                                       [1, 1, 1]]> : tensor<3x3xi64>
  %start_indices0 = stablehlo.constant dense<3> : tensor<i64>
  %start_indices1 = stablehlo.constant dense<3> : tensor<i64>
  %result = "stablehlo.dynamic_slice"(%operand, %start_indices0, %start_indices1) {
    slice_sizes = array<i64: 3, 3>
  } : (tensor<3x3xi64>, tensor<i64>, tensor<i64>) -> tensor<3x3xi64>
  check.expect_eq_const %result, dense<[[1, 1, 1], [1, 1, 1], [1, 1, 1]]> : tensor<3x3xi64>
  func.return
}
// ----- interpret/dynamic_update_slice#0
func.func @dynamic_update_slice() {
  %operand = stablehlo.constant dense<[[1, 1, 1, 1],
                                       [1, 1, 1, 1],
                                       [1, 2, 2, 2],
                                       [1, 2, 2, 2]]> : tensor<4x4xi64>
  %update = stablehlo.constant dense<[[1, 1, 1],
                                      [1, 1, 1]]> : tensor<2x3xi64>
  %start_indices0 = stablehlo.constant dense<4> : tensor<i64>
  %start_indices1 = stablehlo.constant dense<4> : tensor<i64>
  %result = stablehlo.dynamic_update_slice %operand, %update, %start_indices0, %start_indices1 :
      (tensor<4x4xi64>, tensor<2x3xi64>, tensor<i64>, tensor<i64>) -> tensor<4x4xi64>
  check.expect_eq_const %result, dense<[[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]> : tensor<4x4xi64>
  func.return
}
// ----- interpret/exponential#0
func.func @exponential_op_test_f64() {
  %operand = stablehlo.constant dense<[[0.0, 1.0], [2.0, 3.0]]> : tensor<2x2xf64>
  %result = stablehlo.exponential %operand : tensor<2x2xf64>
  check.expect_almost_eq_const %result, dense<[[1.000000e+00, 2.7182818284590451], [7.3890560989306504, 20.085536923187668]]> : tensor<2x2xf64>
  func.return
}
// ----- interpret/exponential_minus_one#0
func.func @exponential_minus_one_op_test_f64() {
  %operand = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf64>
  %result = stablehlo.exponential_minus_one %operand : tensor<2xf64>
  check.expect_almost_eq_const %result, dense<[0.0, 1.7182818284590451]> : tensor<2xf64>
  func.return
}
// ----- interpret/floor#0
func.func @floor_op_test_bf16() {
  %0 = stablehlo.constant dense<[0xFF80, -2.5, 0x8001, -0.0, 0.0, 0x0001, 2.5, 0x7F80, 0x7FC0]>  : tensor<9xbf16>
  %1 = stablehlo.floor %0 : tensor<9xbf16>
  check.expect_almost_eq_const %1, dense<[0xFF80, -3.000000e+00, -1.000000e+00, -0.000000e+00, 0.000000e+00, 0.000000e+00, 2.000000e+00, 0x7F80, 0x7FC0]> : tensor<9xbf16>
  func.return
}
// ----- interpret/floor#1
func.func @floor_op_test_f16() {
  %0 = stablehlo.constant dense<[0xFC00, -2.5, 0x8001, -0.0, 0.0, 0x0001, 2.5, 0x7C00, 0x7E00]>  : tensor<9xf16>
  %1 = stablehlo.floor %0 : tensor<9xf16>
  check.expect_almost_eq_const %1, dense<[0xFC00, -3.000000e+00, -1.000000e+00, -0.000000e+00, 0.000000e+00, 0.000000e+00, 2.000000e+00, 0x7C00, 0x7E00]> : tensor<9xf16>
  func.return
}
// ----- interpret/floor#2
func.func @floor_op_test_f32() {
  %0 = stablehlo.constant dense<[0xFF800000, -2.5, 0x80000001, -0.0, 0.0, 0x00000001, 2.5, 0x7F800000, 0x7FC00000]>  : tensor<9xf32>
  %1 = stablehlo.floor %0 : tensor<9xf32>
  check.expect_almost_eq_const %1, dense<[0xFF800000, -3.000000e+00, -1.000000e+00, -0.000000e+00, 0.000000e+00, 0.000000e+00, 2.000000e+00, 0x7F800000, 0x7FC00000]> : tensor<9xf32>
  func.return
}
// ----- interpret/floor#3
func.func @floor_op_test_f64() {
  %0 = stablehlo.constant dense<[0xFFF0000000000000, -2.5, 0x8000000000000001, -0.0, 0.0, 0x0000000000000001, 2.5, 0x7FF0000000000000, 0x7FF8000000000000]>  : tensor<9xf64>
  %1 = stablehlo.floor %0 : tensor<9xf64>
  check.expect_almost_eq_const %1, dense<[0xFFF0000000000000, -3.000000e+00, -1.000000e+00, -0.000000e+00, 0.000000e+00, 0.000000e+00, 2.000000e+00, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<9xf64>
  func.return
}
// ----- interpret/gather#0
func.func @gather_op_test() {
  %operand = stablehlo.constant dense<[[[1, 2], [3, 4], [5, 6], [7, 8]],
                                       [[9, 10], [11, 12], [13, 14], [15, 16]],
                                       [[17, 18], [19, 20], [21, 22], [23, 24]]]> : tensor<3x4x2xi64>
  %start_indices = stablehlo.constant dense<[[[0, 0], [1, 0], [2, 1]],
                                             [[0, 1], [1, 1], [0, 9]]]> : tensor<2x3x2xi64>
  %result = "stablehlo.gather"(%operand, %start_indices) {
    dimension_numbers = #stablehlo.gather<
      offset_dims = [2, 3],
      collapsed_slice_dims = [0],
      start_index_map = [1, 0],
      index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 2, 2>,
    indices_are_sorted = false
  } : (tensor<3x4x2xi64>, tensor<2x3x2xi64>) -> tensor<2x3x2x2xi64>
  check.expect_eq_const %result, dense<[[[[1, 2], [3, 4]],
                                         [[3, 4], [5, 6]],
                                         [[13, 14], [15, 16]]],
                                        [[[9, 10], [11, 12]],
                                         [[11, 12], [13, 14]],
                                         [[17, 18], [19, 20]]]]> : tensor<2x3x2x2xi64>
  func.return
}
// ----- interpret/gather#1
func.func @gather_op_with_batching_dim_test() {
  %operand = stablehlo.constant dense<[
      [
        [[1, 2], [3, 4], [5, 6], [7, 8]],
        [[9, 10], [11, 12], [13, 14], [15, 16]],
        [[17, 18], [19, 20], [21, 22], [23, 24]]
      ],
      [
        [[25, 26], [27, 28], [29, 30], [31, 32]],
        [[33, 34], [35, 36], [37, 38], [39, 40]],
        [[41, 42], [43, 44], [45, 46], [47, 48]]
      ]
  ]> : tensor<2x3x4x2xi64>
  %start_indices = stablehlo.constant dense<[
      [
        [[0, 0], [1, 0], [2, 1]],
        [[0, 1], [1, 1], [0, 9]]
      ],
      [
        [[0, 0], [2, 1], [2, 2]],
        [[1, 2], [0, 1], [1, 0]]
      ]
  ]> : tensor<2x2x3x2xi64>
  %result = "stablehlo.gather"(%operand, %start_indices) {
    dimension_numbers = #stablehlo.gather<
      offset_dims = [3, 4],
      collapsed_slice_dims = [1],
      operand_batching_dims = [0],
      start_indices_batching_dims = [1],
      start_index_map = [2, 1],
      index_vector_dim = 3>,
    slice_sizes = array<i64: 1, 1, 2, 2>,
    indices_are_sorted = false
  } : (tensor<2x3x4x2xi64>, tensor<2x2x3x2xi64>) -> tensor<2x2x3x2x2xi64>
  check.expect_eq_const %result, dense<[
      [
        [
          [[1, 2], [3, 4]],
          [[3, 4], [5, 6]],
          [[13, 14], [15, 16]]
        ],
        [
          [[33, 34], [35, 36]],
          [[35, 36], [37, 38]],
          [[41, 42], [43, 44]]
        ]
      ],
      [
        [
          [[1, 2], [3, 4]],
          [[13, 14], [15, 16]],
          [[21, 22], [23, 24]]
        ],
        [
          [[43, 44], [45, 46]],
          [[33, 34], [35, 36]],
          [[27, 28], [29, 30]]
        ]
      ]
  ]> : tensor<2x2x3x2x2xi64>
  func.return
}
// ----- interpret/get_dimension_size#0
func.func @get_dimension_size_op_test_si64() {
  %operand = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %result = stablehlo.get_dimension_size %operand, dim = 1 : (tensor<2x3xi64>) -> tensor<i32>
  check.expect_eq_const %result, dense<3> : tensor<i32>
  func.return
}
// ----- interpret/if#0
func.func @if_ops_true_branch() {
  %pred = stablehlo.constant dense<true> : tensor<i1>
  %result0, %result1 = "stablehlo.if"(%pred) ({
    %0 = stablehlo.constant dense<0> : tensor<2xi64>
    stablehlo.return %0, %0 : tensor<2xi64>, tensor<2xi64>
  }, {
    %1 = stablehlo.constant dense<1> : tensor<2xi64>
    stablehlo.return %1, %1 : tensor<2xi64>, tensor<2xi64>
  }) : (tensor<i1>) -> (tensor<2xi64>, tensor<2xi64>)
  check.expect_eq_const %result0, dense<[0,0]> : tensor<2xi64>
  check.expect_eq_const %result1, dense<[0,0]> : tensor<2xi64>
  func.return
}
// ----- interpret/if#1
func.func @if_ops_false_branch() {
  %pred = stablehlo.constant dense<false> : tensor<i1>
  %result0, %result1 = "stablehlo.if"(%pred) ({
    %0 = stablehlo.constant dense<0> : tensor<2xi64>
    stablehlo.return %0, %0 : tensor<2xi64>, tensor<2xi64>
  }, {
    %1 = stablehlo.constant dense<1> : tensor<2xi64>
    stablehlo.return %1, %1 : tensor<2xi64>, tensor<2xi64>
  }) : (tensor<i1>) -> (tensor<2xi64>, tensor<2xi64>)
  check.expect_eq_const %result0, dense<[1, 1]> : tensor<2xi64>
  check.expect_eq_const %result1, dense<[1, 1]> : tensor<2xi64>
  func.return
}
// ----- interpret/imag#0
func.func @imag_op_test_f64() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %1 = stablehlo.imag %0 : tensor<2xf64>
  check.expect_almost_eq_const %1, dense<[0.0, 0.0]> : tensor<2xf64>
  func.return
}
// ----- interpret/iota#2
func.func @iota_op_test_si8_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xi8>
  check.expect_eq_const %0, dense<[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]> : tensor<3x4xi8>
  func.return
}
// ----- interpret/iota#3
func.func @iota_op_test_si8_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xi8>
  check.expect_eq_const %0, dense<[[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]> : tensor<3x4xi8>
  func.return
}
// ----- interpret/iota#4
func.func @iota_op_test_si16_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xi16>
  check.expect_eq_const %0, dense<[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]> : tensor<3x4xi16>
  func.return
}
// ----- interpret/iota#5
func.func @iota_op_test_si16_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xi16>
  check.expect_eq_const %0, dense<[[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]> : tensor<3x4xi16>
  func.return
}
// ----- interpret/iota#6
func.func @iota_op_test_si32_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xi32>
  check.expect_eq_const %0, dense<[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]> : tensor<3x4xi32>
  func.return
}
// ----- interpret/iota#7
func.func @iota_op_test_si32_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xi32>
  check.expect_eq_const %0, dense<[[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]> : tensor<3x4xi32>
  func.return
}
// ----- interpret/iota#8
func.func @iota_op_test_si64_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xi64>
  check.expect_eq_const %0, dense<[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]> : tensor<3x4xi64>
  func.return
}
// ----- interpret/iota#9
func.func @iota_op_test_si64_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xi64>
  check.expect_eq_const %0, dense<[[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]> : tensor<3x4xi64>
  func.return
}
// ----- interpret/iota#10
func.func @iota_op_test_ui64_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<2x3x2xui64>
  check.expect_eq_const %0, dense<[[[0, 0], [0, 0], [0, 0]], [[1, 1], [1, 1], [1, 1]]]> : tensor<2x3x2xui64>
  func.return
}
// ----- interpret/iota#11
func.func @iota_op_test_ui64_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<2x3x2xui64>
  check.expect_eq_const %0, dense<[[[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1], [2, 2]]]> : tensor<2x3x2xui64>
  func.return
}
// ----- interpret/iota#12
func.func @iota_op_test_ui64_dim_2() {
  %0 = stablehlo.iota dim = 2 : tensor<2x3x2xui64>
  check.expect_eq_const %0, dense<[[[0, 1], [0, 1], [0, 1]], [[0, 1], [0, 1], [0, 1]]]> : tensor<2x3x2xui64>
  func.return
}
// ----- interpret/iota#13
func.func @iota_op_test_bf16_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xbf16>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00], [2.000000e+00, 2.000000e+00, 2.000000e+00, 2.000000e+00]]> : tensor<3x4xbf16>
  func.return
}
// ----- interpret/iota#14
func.func @iota_op_test_bf16_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xbf16>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]]> : tensor<3x4xbf16>
  func.return
}
// ----- interpret/iota#15
func.func @iota_op_test_f16_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xf16>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00], [2.000000e+00, 2.000000e+00, 2.000000e+00, 2.000000e+00]]> : tensor<3x4xf16>
  func.return
}
// ----- interpret/iota#16
func.func @iota_op_test_f16_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xf16>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]]> : tensor<3x4xf16>
  func.return
}
// ----- interpret/iota#17
func.func @iota_op_test_f32_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xf32>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00], [2.000000e+00, 2.000000e+00, 2.000000e+00, 2.000000e+00]]> : tensor<3x4xf32>
  func.return
}
// ----- interpret/iota#18
func.func @iota_op_test_f32_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xf32>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]]> : tensor<3x4xf32>
  func.return
}
// ----- interpret/iota#19
func.func @iota_op_test_f64_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xf64>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00], [2.000000e+00, 2.000000e+00, 2.000000e+00, 2.000000e+00]]> : tensor<3x4xf64>
  func.return
}
// ----- interpret/iota#20
func.func @iota_op_test_f64_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xf64>
  check.expect_almost_eq_const %0, dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]]> : tensor<3x4xf64>
  func.return
}
// ----- interpret/iota#21
func.func @iota_op_test_c64_dim_0() {
  %0 = stablehlo.iota dim = 0 : tensor<3x4xcomplex<f32>>
  check.expect_almost_eq_const %0, dense<[[(0.000000e+00, 0.000000e+00), (0.000000e+00, 0.000000e+00), (0.000000e+00, 0.000000e+00), (0.000000e+00, 0.000000e+00)], [(1.000000e+00, 0.000000e+00), (1.000000e+00, 0.000000e+00), (1.000000e+00, 0.000000e+00), (1.000000e+00, 0.000000e+00)], [(2.000000e+00, 0.000000e+00), (2.000000e+00, 0.000000e+00), (2.000000e+00, 0.000000e+00), (2.000000e+00, 0.000000e+00)]]> : tensor<3x4xcomplex<f32>>
  func.return
}
// ----- interpret/iota#22
func.func @iota_op_test_c64_dim_1() {
  %0 = stablehlo.iota dim = 1 : tensor<3x4xcomplex<f32>>
  check.expect_almost_eq_const %0, dense<[[(0.000000e+00, 0.000000e+00), (1.000000e+00, 0.000000e+00), (2.000000e+00, 0.000000e+00), (3.000000e+00, 0.000000e+00)], [(0.000000e+00, 0.000000e+00), (1.000000e+00, 0.000000e+00), (2.000000e+00, 0.000000e+00), (3.000000e+00, 0.000000e+00)], [(0.000000e+00, 0.000000e+00), (1.000000e+00, 0.000000e+00), (2.000000e+00, 0.000000e+00), (3.000000e+00, 0.000000e+00)]]> : tensor<3x4xcomplex<f32>>
  func.return
}
// ----- interpret/is_finite#0
// CHECK-LABEL: Evaluated results of function: is_finite_op_test_f64
func.func @is_finite_op_test_f64() {
  // -Inf, +Inf, NaN, -10.0, -0.0, 0.0, 10.0
  %operand = stablehlo.constant dense<[0xFFF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, -10.0, -0.0, 0.0, 10.0]> : tensor<7xf64>
  %result = stablehlo.is_finite %operand : (tensor<7xf64>) -> tensor<7xi1>
  check.expect_eq_const %result, dense<[false, false, false, true, true, true, true]> : tensor<7xi1>
  func.return
}
// ----- interpret/log#0
func.func @log_op_test_f64() {
  %operand = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
  %result = stablehlo.log %operand : tensor<2x2xf64>
  check.expect_almost_eq_const %result, dense<[[0.000000e+00, 0.69314718055994529], [1.0986122886681098, 1.3862943611198906]]> : tensor<2x2xf64>
  func.return
}
// ----- interpret/log_plus_one#0
func.func @log_plus_one_op_test_f64() {
  %operand = stablehlo.constant dense<[0.0, -0.999, 7.0, 6.38905621, 15.0]> : tensor<5xf64>
  %result = stablehlo.log_plus_one %operand : tensor<5xf64>
  check.expect_almost_eq_const %result, dense<[0.0, -6.90776825, 2.07944155, 2.0, 2.77258873]> : tensor<5xf64>
  func.return
}
// ----- interpret/logistic#0
func.func @logistic_op_test_f64() {
  %operand = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
  %result = stablehlo.logistic %operand : tensor<2x2xf64>
  check.expect_almost_eq_const %result,
      dense<[[0.73105857863000488, 0.88079707797788244],
             [0.95257412682243322, 0.98201379003790844]]> : tensor<2x2xf64>
  func.return
}
// ----- interpret/map#0
func.func @map_op_test_si64() {
  %input0 = stablehlo.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
  %input1 = stablehlo.constant dense<[[4, 5], [6, 7]]> : tensor<2x2xi64>
  %result = "stablehlo.map"(%input0, %input1) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.multiply %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    dimensions = array<i64: 0, 1>
  } : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
  check.expect_eq_const %result, dense<[[0, 5], [12, 21]]> : tensor<2x2xi64>
  func.return
}
// ----- interpret/maximum#2
func.func @max_op_test_si8() {
  %0 = stablehlo.constant dense<[0, 1, 8, -9, 0]> : tensor<5xi8>
  %1 = stablehlo.constant dense<[-128, -1, 8, -9, 127]> : tensor<5xi8>
  %2 = stablehlo.maximum %0, %1 : tensor<5xi8>
  check.expect_eq_const %2, dense<[0, 1, 8, -9, 127]> : tensor<5xi8>
  func.return
}
// ----- interpret/maximum#3
func.func @max_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16]> : tensor<2xui8>
  %1 = stablehlo.constant dense<[255, 16]> : tensor<2xui8>
  %2 = stablehlo.maximum %0, %1 : tensor<2xui8>
  check.expect_eq_const %2, dense<[255, 16]> : tensor<2xui8>
  func.return
}
// ----- interpret/maximum#4
func.func @max_op_test_si16() {
  %0 = stablehlo.constant dense<[0, 1, 128, -129, 0]> : tensor<5xi16>
  %1 = stablehlo.constant dense<[-32768, -1, 128, -129, 32767]> : tensor<5xi16>
  %2 = stablehlo.maximum %0, %1 : tensor<5xi16>
  check.expect_eq_const %2, dense<[0, 1, 128, -129, 32767]> : tensor<5xi16>
  func.return
}
// ----- interpret/maximum#5
func.func @max_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256]> : tensor<2xui16>
  %1 = stablehlo.constant dense<[65535, 256]> : tensor<2xui16>
  %2 = stablehlo.maximum %0, %1 : tensor<2xui16>
  check.expect_eq_const %2, dense<[65535, 256]> : tensor<2xui16>
  func.return
}
// ----- interpret/maximum#6
func.func @max_op_test_si32() {
  %0 = stablehlo.constant dense<[0, 1, 32768, -32769, 0]> : tensor<5xi32>
  %1 = stablehlo.constant dense<[-2147483648, -1, 32768, -32769, 2147483647]> : tensor<5xi32>
  %2 = stablehlo.maximum %0, %1 : tensor<5xi32>
  check.expect_eq_const %2, dense<[0, 1, 32768, -32769, 2147483647]> : tensor<5xi32>
  func.return
}
// ----- interpret/maximum#7
func.func @max_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536]> : tensor<2xui32>
  %1 = stablehlo.constant dense<[4294967295, 65536]> : tensor<2xui32>
  %2 = stablehlo.maximum %0, %1 : tensor<2xui32>
  check.expect_eq_const %2, dense<[4294967295, 65536]> : tensor<2xui32>
  func.return
}
// ----- interpret/maximum#8
func.func @max_op_test_si64() {
  %0 = stablehlo.constant dense<[0, 1, 2147483648, -2147483649, 0]> : tensor<5xi64>
  %1 = stablehlo.constant dense<[-9223372036854775808, -1, 2147483648, -2147483649, 9223372036854775807]> : tensor<5xi64>
  %2 = stablehlo.maximum %0, %1 : tensor<5xi64>
  check.expect_eq_const %2, dense<[0, 1, 2147483648, -2147483649, 9223372036854775807]> : tensor<5xi64>
  func.return
}
// ----- interpret/maximum#9
func.func @max_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296]> : tensor<2xui64>
  %1 = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %2 = stablehlo.maximum %0, %1 : tensor<2xui64>
  check.expect_eq_const %2, dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  func.return
}
// ----- interpret/maximum#10
func.func @max_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.maximum %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, true, true, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/maximum#11
func.func @max_op_test_bf16() {
  %0 = stablehlo.constant dense<[0xFF80, 0xFF80, -1.0, 0x8001, 0.0, 0.0, 0x0001, 1.0, 0x7F80, 0x7F80, 0x7FC0]>  : tensor<11xbf16>
  %1 = stablehlo.constant dense<[0xFF80, -1.0, 0x8001, -0.0, -0.0, 0x0001, 1.0, 0x7F80, 0x7F80, 0xFF80, 0x7F80]> : tensor<11xbf16>
  %2 = stablehlo.maximum %0, %1 : tensor<11xbf16>
  check.expect_almost_eq_const %2, dense<[0xFF80, -1.000000e+00, -9.183550e-41, -0.000000e+00, 0.000000e+00, 9.183550e-41, 1.000000e+00, 0x7F80, 0x7F80, 0x7F80, 0x7FC0]> : tensor<11xbf16>
  func.return
}
// ----- interpret/maximum#12
func.func @max_op_test_f16() {
  %0 = stablehlo.constant dense<[0xFC00, 0xFC00, -1.0, 0x8001, 0.0, 0.0, 0x0001, 1.0, 0x7C00, 0x7C00, 0x7E00]>  : tensor<11xf16>
  %1 = stablehlo.constant dense<[0xFC00, -1.0, 0x8001, -0.0, -0.0, 0x0001, 1.0, 0x7C00, 0x7C00, 0xFC00, 0x7C00]> : tensor<11xf16>
  %2 = stablehlo.maximum %0, %1 : tensor<11xf16>
  check.expect_almost_eq_const %2, dense<[0xFC00, -1.000000e+00, -5.960460e-08, -0.000000e+00, 0.000000e+00, 5.960460e-08, 1.000000e+00, 0x7C00, 0x7C00, 0x7C00, 0x7E00]> : tensor<11xf16>
  func.return
}
// ----- interpret/maximum#13
func.func @max_op_test_f32() {
  %0 = stablehlo.constant dense<[0xFF800000, 0xFF800000, -1.0, 0x80000001, 0.0, 0.0, 0x00000001, 1.0, 0x7F800000, 0x7F800000, 0x7FC00000]>  : tensor<11xf32>
  %1 = stablehlo.constant dense<[0xFF800000, -1.0, 0x80000001, -0.0, -0.0, 0x00000001, 1.0, 0x7F800000, 0x7F800000, 0xFF800000, 0x7F800000]> : tensor<11xf32>
  %2 = stablehlo.maximum %0, %1 : tensor<11xf32>
  check.expect_almost_eq_const %2, dense<[0xFF800000, -1.000000e+00, -1.401300e-45, -0.000000e+00, 0.000000e+00, 1.401300e-45, 1.000000e+00, 0x7F800000, 0x7F800000, 0x7F800000, 0x7FC00000]> : tensor<11xf32>
  func.return
}
// ----- interpret/maximum#14
func.func @max_op_test_f64() {
  %0 = stablehlo.constant dense<[0xFFF0000000000000, 0xFFF0000000000000, -1.0, 0x8000000000000001, 0.0, 0.0, 0x0000000000000001, 1.0, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]>  : tensor<11xf64>
  %1 = stablehlo.constant dense<[0xFFF0000000000000, -1.0, 0x8000000000000001, -0.0, -0.0, 0x0000000000000001, 1.0, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000]> : tensor<11xf64>
  %2 = stablehlo.maximum %0, %1 : tensor<11xf64>
  check.expect_almost_eq_const %2, dense<[0xFFF0000000000000, -1.000000e+00, -4.940660e-324, -0.000000e+00, 0.000000e+00, 4.940660e-324, 1.000000e+00, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<11xf64>
  func.return
}
// ----- interpret/maximum#15
func.func @max_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (1.5, 7.5), (0.0, 1.5), (0.0, 1.5)]> : tensor<4xcomplex<f32>>
  %1 = stablehlo.constant dense<[(7.5, 1.5), (1.5, 2.5), (-0.0, 2.5), (0.0, 1.5)]> : tensor<4xcomplex<f32>>
  %2 = stablehlo.maximum %0, %1 : tensor<4xcomplex<f32>>
  check.expect_almost_eq_const %2, dense<[(7.500000e+00, 1.500000e+00), (1.500000e+00, 7.500000e+00), (-0.000000e+00, 2.500000e+00), (0.000000e+00, 1.500000e+00)]> : tensor<4xcomplex<f32>>
  func.return
}
// ----- interpret/minimum#2
func.func @min_op_test_si8() {
  %0 = stablehlo.constant dense<[0, 1, 8, -9, 0]> : tensor<5xi8>
  %1 = stablehlo.constant dense<[-128, -1, 8, -9, 127]> : tensor<5xi8>
  %2 = stablehlo.minimum %0, %1 : tensor<5xi8>
  check.expect_eq_const %2, dense<[-128, -1, 8, -9, 0]> : tensor<5xi8>
  func.return
}
// ----- interpret/minimum#3
func.func @min_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16]> : tensor<2xui8>
  %1 = stablehlo.constant dense<[255, 16]> : tensor<2xui8>
  %2 = stablehlo.minimum %0, %1 : tensor<2xui8>
  check.expect_eq_const %2, dense<[0, 16]> : tensor<2xui8>
  func.return
}
// ----- interpret/minimum#4
func.func @min_op_test_si16() {
  %0 = stablehlo.constant dense<[0, 1, 128, -129, 0]> : tensor<5xi16>
  %1 = stablehlo.constant dense<[-32768, -1, 128, -129, 32767]> : tensor<5xi16>
  %2 = stablehlo.minimum %0, %1 : tensor<5xi16>
  check.expect_eq_const %2, dense<[-32768, -1, 128, -129, 0]> : tensor<5xi16>
  func.return
}
// ----- interpret/minimum#5
func.func @min_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256]> : tensor<2xui16>
  %1 = stablehlo.constant dense<[65535, 256]> : tensor<2xui16>
  %2 = stablehlo.minimum %0, %1 : tensor<2xui16>
  check.expect_eq_const %2, dense<[0, 256]> : tensor<2xui16>
  func.return
}
// ----- interpret/minimum#6
func.func @min_op_test_si32() {
  %0 = stablehlo.constant dense<[0, 1, 32768, -32769, 0]> : tensor<5xi32>
  %1 = stablehlo.constant dense<[-2147483648, -1, 32768, -32769, 2147483647]> : tensor<5xi32>
  %2 = stablehlo.minimum %0, %1 : tensor<5xi32>
  check.expect_eq_const %2, dense<[-2147483648, -1, 32768, -32769, 0]> : tensor<5xi32>
  func.return
}
// ----- interpret/minimum#7
func.func @min_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536]> : tensor<2xui32>
  %1 = stablehlo.constant dense<[4294967295, 65536]> : tensor<2xui32>
  %2 = stablehlo.minimum %0, %1 : tensor<2xui32>
  check.expect_eq_const %2, dense<[0, 65536]> : tensor<2xui32>
  func.return
}
// ----- interpret/minimum#8
func.func @min_op_test_si64() {
  %0 = stablehlo.constant dense<[0, 1, 2147483648, -2147483649, 0]> : tensor<5xi64>
  %1 = stablehlo.constant dense<[-9223372036854775808, -1, 2147483648, -2147483649, 9223372036854775807]> : tensor<5xi64>
  %2 = stablehlo.minimum %0, %1 : tensor<5xi64>
  check.expect_eq_const %2, dense<[-9223372036854775808, -1, 2147483648, -2147483649, 0]> : tensor<5xi64>
  func.return
}
// ----- interpret/minimum#9
func.func @min_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296]> : tensor<2xui64>
  %1 = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %2 = stablehlo.minimum %0, %1 : tensor<2xui64>
  check.expect_eq_const %2, dense<[0, 4294967296]> : tensor<2xui64>
  func.return
}
// ----- interpret/minimum#10
func.func @min_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.minimum %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, false, false, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/minimum#11
func.func @min_op_test_bf16() {
  %0 = stablehlo.constant dense<[0xFF80, 0xFF80, -1.0, 0x8001, 0.0, 0.0, 0x0001, 1.0, 0x7F80, 0x7F80, 0x7FC0]>  : tensor<11xbf16>
  %1 = stablehlo.constant dense<[0xFF80, -1.0, 0x8001, -0.0, -0.0, 0x0001, 1.0, 0x7F80, 0x7F80, 0xFF80, 0x7F80]> : tensor<11xbf16>
  %2 = stablehlo.minimum %0, %1 : tensor<11xbf16>
  check.expect_almost_eq_const %2, dense<[0xFF80, 0xFF80, -1.000000e+00, -9.183550e-41, -0.000000e+00, 0.000000e+00, 9.183550e-41, 1.000000e+00, 0x7F80, 0xFF80, 0x7FC0]> : tensor<11xbf16>
  func.return
}
// ----- interpret/minimum#12
func.func @min_op_test_f16() {
  %0 = stablehlo.constant dense<[0xFC00, 0xFC00, -1.0, 0x8001, 0.0, 0.0, 0x0001, 1.0, 0x7C00, 0x7C00, 0x7E00]>  : tensor<11xf16>
  %1 = stablehlo.constant dense<[0xFC00, -1.0, 0x8001, -0.0, -0.0, 0x0001, 1.0, 0x7C00, 0x7C00, 0xFC00, 0x7C00]> : tensor<11xf16>
  %2 = stablehlo.minimum %0, %1 : tensor<11xf16>
  check.expect_almost_eq_const %2, dense<[0xFC00, 0xFC00, -1.000000e+00, -5.960460e-08, -0.000000e+00, 0.000000e+00, 5.960460e-08, 1.000000e+00, 0x7C00, 0xFC00, 0x7E00]> : tensor<11xf16>
  func.return
}
// ----- interpret/minimum#13
func.func @min_op_test_f32() {
  %0 = stablehlo.constant dense<[0xFF800000, 0xFF800000, -1.0, 0x80000001, 0.0, 0.0, 0x00000001, 1.0, 0x7F800000, 0x7F800000, 0x7FC00000]>  : tensor<11xf32>
  %1 = stablehlo.constant dense<[0xFF800000, -1.0, 0x80000001, -0.0, -0.0, 0x00000001, 1.0, 0x7F800000, 0x7F800000, 0xFF800000, 0x7F800000]> : tensor<11xf32>
  %2 = stablehlo.minimum %0, %1 : tensor<11xf32>
  check.expect_almost_eq_const %2, dense<[0xFF800000, 0xFF800000, -1.000000e+00, -1.401300e-45, -0.000000e+00, 0.000000e+00, 1.401300e-45, 1.000000e+00, 0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<11xf32>
  func.return
}
// ----- interpret/minimum#14
func.func @min_op_test_f64() {
  %0 = stablehlo.constant dense<[0xFFF0000000000000, 0xFFF0000000000000, -1.0, 0x8000000000000001, 0.0, 0.0, 0x0000000000000001, 1.0, 0x7FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]>  : tensor<11xf64>
  %1 = stablehlo.constant dense<[0xFFF0000000000000, -1.0, 0x8000000000000001, -0.0, -0.0, 0x0000000000000001, 1.0, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000]> : tensor<11xf64>
  %2 = stablehlo.minimum %0, %1 : tensor<11xf64>
  check.expect_almost_eq_const %2, dense<[0xFFF0000000000000, 0xFFF0000000000000, -1.000000e+00, -4.940660e-324, -0.000000e+00, 0.000000e+00, 4.940660e-324, 1.000000e+00, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000]> : tensor<11xf64>
  func.return
}
// ----- interpret/minimum#15
func.func @min_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (1.5, 7.5), (0.0, 1.5), (0.0, 1.5)]> : tensor<4xcomplex<f32>>
  %1 = stablehlo.constant dense<[(7.5, 1.5), (1.5, 2.5), (-0.0, 2.5), (0.0, 1.5)]> : tensor<4xcomplex<f32>>
  %2 = stablehlo.minimum %0, %1 : tensor<4xcomplex<f32>>
  check.expect_almost_eq_const %2, dense<[(1.500000e+00, 2.500000e+00), (1.500000e+00, 2.500000e+00), (0.000000e+00, 1.500000e+00), (0.000000e+00, 1.500000e+00)]> : tensor<4xcomplex<f32>>
  func.return
}
// ----- interpret/multiply#0
func.func @mul_op_test_si8() {
  %0 = stablehlo.constant dense<[0, 1, 8, -9, 0]> : tensor<5xi8>
  %1 = stablehlo.constant dense<[-128, -1, 8, -9, 127]> : tensor<5xi8>
  %2 = stablehlo.multiply %0, %1 : tensor<5xi8>
  check.expect_eq_const %2, dense<[0, -1, 64, 81, 0]> : tensor<5xi8>
  func.return
}
// ----- interpret/multiply#1
func.func @mul_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16, 16]> : tensor<3xui8>
  %1 = stablehlo.constant dense<[255, 16, 17]> : tensor<3xui8>
  %2 = stablehlo.multiply %0, %1 : tensor<3xui8>
  check.expect_eq_const %2, dense<[0, 0, 16]> : tensor<3xui8>
  func.return
}
// ----- interpret/multiply#2
func.func @mul_op_test_si16() {
  %0 = stablehlo.constant dense<[0, 1, 128, -129, 0]> : tensor<5xi16>
  %1 = stablehlo.constant dense<[-32768, -1, 128, -129, 32767]> : tensor<5xi16>
  %2 = stablehlo.multiply %0, %1 : tensor<5xi16>
  check.expect_eq_const %2, dense<[0, -1, 16384, 16641, 0]> : tensor<5xi16>
  func.return
}
// ----- interpret/multiply#3
func.func @mul_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256]> : tensor<2xui16>
  %1 = stablehlo.constant dense<[65535, 256]> : tensor<2xui16>
  %2 = stablehlo.multiply %0, %1 : tensor<2xui16>
  check.expect_eq_const %2, dense<[0, 0]> : tensor<2xui16>
  func.return
}
// ----- interpret/multiply#4
func.func @mul_op_test_si32() {
  %0 = stablehlo.constant dense<[0, 1, 32768, -32769, 0]> : tensor<5xi32>
  %1 = stablehlo.constant dense<[-2147483648, -1, 32768, -32769, 2147483647]> : tensor<5xi32>
  %2 = stablehlo.multiply %0, %1 : tensor<5xi32>
  check.expect_eq_const %2, dense<[0, -1, 1073741824, 1073807361, 0]> : tensor<5xi32>
  func.return
}
// ----- interpret/multiply#5
func.func @mul_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536]> : tensor<2xui32>
  %1 = stablehlo.constant dense<[4294967295, 65536]> : tensor<2xui32>
  %2 = stablehlo.multiply %0, %1 : tensor<2xui32>
  check.expect_eq_const %2, dense<[0, 0]> : tensor<2xui32>
  func.return
}
// ----- interpret/multiply#6
func.func @mul_op_test_si64() {
  %0 = stablehlo.constant dense<[0, 1, 2147483648, -2147483649, 0]> : tensor<5xi64>
  %1 = stablehlo.constant dense<[-9223372036854775808, -1, 2147483648, -2147483649, 9223372036854775807]> : tensor<5xi64>
  %2 = stablehlo.multiply %0, %1 : tensor<5xi64>
  check.expect_eq_const %2, dense<[0, -1, 4611686018427387904, 4611686022722355201, 0]> : tensor<5xi64>
  func.return
}
// ----- interpret/multiply#7
func.func @mul_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296]> : tensor<2xui64>
  %1 = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %2 = stablehlo.multiply %0, %1 : tensor<2xui64>
  check.expect_eq_const %2, dense<[0, 0]> : tensor<2xui64>
  func.return
}
// ----- interpret/multiply#8
func.func @mul_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.multiply %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, false, false, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/multiply#9
func.func @mul_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.141, 0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x0001]> : tensor<11xbf16>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.141, 0.0, 0x7C00, 0xFC00, 0xFC00, 0x8001]> : tensor<11xbf16>
  %2 = stablehlo.multiply %0, %1 : tensor<11xbf16>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, 7.000000e+00, 9.375000e-02, 3.015140e-02, 9.875000e+00, 0.000000e+00, 0x7F80, 0x7F80, 0xFF80, -0.000000e+00]> : tensor<11xbf16>
  func.return
}
// ----- interpret/multiply#10
func.func @mul_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.141, 0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x0001]> : tensor<11xf16>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.141, 0.0, 0x7C00, 0xFC00, 0xFC00, 0x8001]> : tensor<11xf16>
  %2 = stablehlo.multiply %0, %1 : tensor<11xf16>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, 7.000000e+00, 9.375000e-02, 2.999880e-02, 9.867180e+00, 0x7E00, 0x7C00, 0x7C00, 0xFC00, -0.000000e+00]> : tensor<11xf16>
  func.return
}
// ----- interpret/multiply#11
func.func @mul_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159265, 0x7F800000, 0x7F800000, 0xFF800000, 0x7F800000, 0x00000001]> : tensor<11xf32>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.14159265, 0.0, 0x7F800000, 0xFF800000, 0xFF800000, 0x80000001]> : tensor<11xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<11xf32>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, 7.000000e+00, 9.375000e-02, 0.0300000012, 9.86960506, 0x7FC00000, 0x7F800000, 0x7F800000, 0xFF800000, -0.000000e+00]> : tensor<11xf32>
  func.return
}
// ----- interpret/multiply#12
func.func @mul_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159265358979323846, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000, 0x0000000000000001]> : tensor<11xf64>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.14159265358979323846, 0.0, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0x8000000000000001]> : tensor<11xf64>
  %2 = stablehlo.multiply %0, %1 : tensor<11xf64>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, 7.000000e+00, 9.375000e-02, 3.000000e-02, 9.869604401089358, 0x7FF8000000000000, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, -0.000000e+00]> : tensor<11xf64>
  func.return
}
// ----- interpret/multiply#13
func.func @mul_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f32>>
  %2 = stablehlo.multiply %0, %1 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %2, dense<[(-4.000000e+00, 7.500000e+00), (2.600000e+01, 8.250000e+01)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/negate#2
func.func @negate_op_test_si8() {
  %0 = stablehlo.constant dense<[-128, -9, 0, 8, 127]> : tensor<5xi8>
  %1 = stablehlo.negate %0 : tensor<5xi8>
  check.expect_eq_const %1, dense<[-128, 9, 0, -8, -127]> : tensor<5xi8>
  func.return
}
// ----- interpret/negate#3
func.func @negate_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16, 255]> : tensor<3xui8>
  %1 = stablehlo.negate %0 : tensor<3xui8>
  check.expect_eq_const %1, dense<[0, 240, 1]> : tensor<3xui8>
  func.return
}
// ----- interpret/negate#4
func.func @negate_op_test_si16() {
  %0 = stablehlo.constant dense<[-32768, -129, 0, 128, 32767]> : tensor<5xi16>
  %1 = stablehlo.negate %0 : tensor<5xi16>
  check.expect_eq_const %1, dense<[-32768, 129, 0, -128, -32767]> : tensor<5xi16>
  func.return
}
// ----- interpret/negate#5
func.func @negate_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256, 65535]> : tensor<3xui16>
  %1 = stablehlo.negate %0 : tensor<3xui16>
  check.expect_eq_const %1, dense<[0, 65280, 1]> : tensor<3xui16>
  func.return
}
// ----- interpret/negate#6
func.func @negate_op_test_si32() {
  %0 = stablehlo.constant dense<[-2147483648, -65537, 0, 65536, 2147483647]> : tensor<5xi32>
  %1 = stablehlo.negate %0 : tensor<5xi32>
  check.expect_eq_const %1, dense<[-2147483648, 65537, 0, -65536, -2147483647]> : tensor<5xi32>
  func.return
}
// ----- interpret/negate#7
func.func @negate_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536, 4294967295]> : tensor<3xui32>
  %1 = stablehlo.negate %0 : tensor<3xui32>
  check.expect_eq_const %1, dense<[0, 4294901760, 1]> : tensor<3xui32>
  func.return
}
// ----- interpret/negate#8
func.func @negate_op_test_si64() {
  %0 = stablehlo.constant dense<[-9223372036854775808, -2147483649, 0, 2147483648, 9223372036854775807]> : tensor<5xi64>
  %1 = stablehlo.negate %0 : tensor<5xi64>
  check.expect_eq_const %1, dense<[-9223372036854775808, 2147483649, 0, -2147483648, -9223372036854775807]> : tensor<5xi64>
  func.return
}
// ----- interpret/negate#9
func.func @negate_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296, 18446744073709551615]> : tensor<3xui64>
  %1 = stablehlo.negate %0 : tensor<3xui64>
  check.expect_eq_const %1, dense<[0, 18446744069414584320, 1]> : tensor<3xui64>
  func.return
}
// ----- interpret/negate#10
func.func @negate_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7F80, 0xFF80, 0x7FFF, 0x0001, 0x8001]> : tensor<11xbf16>
  %1 = stablehlo.negate %0 : tensor<11xbf16>
  check.expect_almost_eq_const %1, dense<[-0.000000e+00, 0.000000e+00, -1.000000e+00, -1.250000e-01, -1.000980e-01, -3.140630e+00, 0xFF80, 0x7F80, 0xFFFF, -9.183550e-41, 9.183550e-41]> : tensor<11xbf16>
  func.return
}
// ----- interpret/negate#11
func.func @negate_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7C00, 0xFC00, 0x7FFF, 0x0001, 0x8001]> : tensor<11xf16>
  %1 = stablehlo.negate %0 : tensor<11xf16>
  check.expect_almost_eq_const %1, dense<[-0.000000e+00, 0.000000e+00, -1.000000e+00, -1.250000e-01, -9.997550e-02, -3.140630e+00, 0xFC00, 0x7C00, 0xFFFF, -5.960460e-08, 5.960460e-08]> : tensor<11xf16>
  func.return
}
// ----- interpret/negate#12
func.func @negate_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159274, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x00000001, 0x80000001]> : tensor<11xf32>
  %1 = stablehlo.negate %0 : tensor<11xf32>
  check.expect_almost_eq_const %1, dense<[-0.000000e+00, 0.000000e+00, -1.000000e+00, -1.250000e-01, -1.000000e-01, -3.14159274, 0xFF800000, 0x7F800000, 0xFFFFFFFF, -1.401300e-45, 1.401300e-45]> : tensor<11xf32>
  func.return
}
// ----- interpret/negate#13
func.func @negate_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.1415926535897931, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FFFFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001]> : tensor<11xf64>
  %1 = stablehlo.negate %0 : tensor<11xf64>
  check.expect_almost_eq_const %1, dense<[-0.000000e+00, 0.000000e+00, -1.000000e+00, -1.250000e-01, -1.000000e-01, -3.1415926535897931, 0xFFF0000000000000, 0x7FF0000000000000, 0xFFFFFFFFFFFFFFFF, -4.940660e-324, 4.940660e-324]> : tensor<11xf64>
  func.return
}
// ----- interpret/negate#14
func.func @negate_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (3.5, 4.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.negate %0 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %1, dense<[(-1.500000e+00, -2.500000e+00), (-3.500000e+00, -4.500000e+00)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/not#2
func.func @not_op_test_si8() {
  %0 = stablehlo.constant dense<[127, -128, 0]> : tensor<3xi8>
  %1 = stablehlo.not %0 : tensor<3xi8>
  check.expect_eq_const %1, dense<[-128, 127, -1]> : tensor<3xi8>
  func.return
}
// ----- interpret/not#3
func.func @not_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 127, 255]> : tensor<3xui8>
  %1 = stablehlo.not %0 : tensor<3xui8>
  check.expect_eq_const %1, dense<[255, 128, 0]> : tensor<3xui8>
  func.return
}
// ----- interpret/not#4
func.func @not_op_test_si16() {
  %0 = stablehlo.constant dense<[32767, -32768, 0]> : tensor<3xi16>
  %1 = stablehlo.not %0 : tensor<3xi16>
  check.expect_eq_const %1, dense<[-32768, 32767, -1]> : tensor<3xi16>
  func.return
}
// ----- interpret/not#5
func.func @not_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 32767, 65535]> : tensor<3xui16>
  %1 = stablehlo.not %0 : tensor<3xui16>
  check.expect_eq_const %1, dense<[65535, 32768, 0]> : tensor<3xui16>
  func.return
}
// ----- interpret/not#6
func.func @not_op_test_si32() {
  %0 = stablehlo.constant dense<[2147483647, -2147483648, 0]> : tensor<3xi32>
  %1 = stablehlo.not %0 : tensor<3xi32>
  check.expect_eq_const %1, dense<[-2147483648, 2147483647, -1]> : tensor<3xi32>
  func.return
}
// ----- interpret/not#7
func.func @not_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 2147483647, 4294967295]> : tensor<3xui32>
  %1 = stablehlo.not %0 : tensor<3xui32>
  check.expect_eq_const %1, dense<[4294967295, 2147483648, 0]> : tensor<3xui32>
  func.return
}
// ----- interpret/not#8
func.func @not_op_test_si64() {
  %0 = stablehlo.constant dense<[9223372036854775807, -9223372036854775808, 0]> : tensor<3xi64>
  %1 = stablehlo.not %0 : tensor<3xi64>
  check.expect_eq_const %1, dense<[-9223372036854775808, 9223372036854775807, -1]> : tensor<3xi64>
  func.return
}
// ----- interpret/not#9
func.func @not_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 9223372036854775807, 18446744073709551615]> : tensor<3xui64>
  %1 = stablehlo.not %0 : tensor<3xui64>
  check.expect_eq_const %1, dense<[18446744073709551615, 9223372036854775808, 0]> : tensor<3xui64>
  func.return
}
// ----- interpret/not#10
func.func @not_op_test_i1() {
  %0 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %1 = stablehlo.not %0 : tensor<2xi1>
  check.expect_eq_const %1, dense<[true, false]> : tensor<2xi1>
  func.return
}
// ----- interpret/not#11
func.func @not_op_test_i1_splat_false() {
  %0 = stablehlo.constant dense<false> : tensor<i1>
  %1 = stablehlo.not %0 : tensor<i1>
  check.expect_eq_const %1, dense<true> : tensor<i1>
  func.return
}
// ----- interpret/not#12
func.func @not_op_test_i1_splat_true() {
  %0 = stablehlo.constant dense<true> : tensor<i1>
  %1 = stablehlo.not %0 : tensor<i1>
  check.expect_eq_const %1, dense<false> : tensor<i1>
  func.return
}
// ----- interpret/optimization_barrier#0
func.func @optimization_barrier_op_test() {
  %operand0 = stablehlo.constant dense<0.0> : tensor<f32>
  %operand1 = stablehlo.constant dense<1.0> : tensor<f32>
  %result0, %result1 = stablehlo.optimization_barrier %operand0, %operand1 : tensor<f32>, tensor<f32>
  check.expect_almost_eq_const %result0, dense<0.0> : tensor<f32>
  check.expect_almost_eq_const %result1, dense<1.0> : tensor<f32>
  func.return
}
// ----- interpret/or#2
func.func @or_op_test_si8() {
  %0 = stablehlo.constant dense<[127, -128, -128]> : tensor<3xi8>
  %1 = stablehlo.constant dense<[0, 127, -128]> : tensor<3xi8>
  %2 = stablehlo.or %0, %1 : tensor<3xi8>
  check.expect_eq_const %2, dense<[127, -1, -128]> : tensor<3xi8>
  func.return
}
// ----- interpret/or#3
func.func @or_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 127, 255]> : tensor<3xui8>
  %1 = stablehlo.constant dense<255> : tensor<3xui8>
  %2 = stablehlo.or %0, %1 : tensor<3xui8>
  check.expect_eq_const %2, dense<[255, 255, 255]> : tensor<3xui8>
  func.return
}
// ----- interpret/or#4
func.func @or_op_test_si16() {
  %0 = stablehlo.constant dense<[32767, -32768, -32768]> : tensor<3xi16>
  %1 = stablehlo.constant dense<[0, 32767, -32768]> : tensor<3xi16>
  %2 = stablehlo.or %0, %1 : tensor<3xi16>
  check.expect_eq_const %2, dense<[32767, -1, -32768]> : tensor<3xi16>
  func.return
}
// ----- interpret/or#5
func.func @or_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 32767, 65535]> : tensor<3xui16>
  %1 = stablehlo.constant dense<65535> : tensor<3xui16>
  %2 = stablehlo.or %0, %1 : tensor<3xui16>
  check.expect_eq_const %2, dense<[65535, 65535, 65535]> : tensor<3xui16>
  func.return
}
// ----- interpret/or#6
func.func @or_op_test_si32() {
  %0 = stablehlo.constant dense<[2147483647, -2147483648, -2147483648]> : tensor<3xi32>
  %1 = stablehlo.constant dense<[0, 2147483647, -2147483648]> : tensor<3xi32>
  %2 = stablehlo.or %0, %1 : tensor<3xi32>
  check.expect_eq_const %2, dense<[2147483647, -1, -2147483648]> : tensor<3xi32>
  func.return
}
// ----- interpret/or#7
func.func @or_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 2147483647, 4294967295]> : tensor<3xui32>
  %1 = stablehlo.constant dense<4294967295> : tensor<3xui32>
  %2 = stablehlo.or %0, %1 : tensor<3xui32>
  check.expect_eq_const %2, dense<[4294967295, 4294967295, 4294967295]> : tensor<3xui32>
  func.return
}
// ----- interpret/or#8
func.func @or_op_test_si64() {
  %0 = stablehlo.constant dense<[9223372036854775807, -9223372036854775808, -9223372036854775808]> : tensor<3xi64>
  %1 = stablehlo.constant dense<[0, 9223372036854775807, -9223372036854775808]> : tensor<3xi64>
  %2 = stablehlo.or %0, %1 : tensor<3xi64>
  check.expect_eq_const %2, dense<[9223372036854775807, -1, -9223372036854775808]> : tensor<3xi64>
  func.return
}
// ----- interpret/or#9
func.func @or_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 9223372036854775807, 18446744073709551615]> : tensor<3xui64>
  %1 = stablehlo.constant dense<18446744073709551615> : tensor<3xui64>
  %2 = stablehlo.or %0, %1 : tensor<3xui64>
  check.expect_eq_const %2, dense<[18446744073709551615, 18446744073709551615, 18446744073709551615]> : tensor<3xui64>
  func.return
}
// ----- interpret/or#10
func.func @or_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.or %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, true, true, true]> : tensor<4xi1>
  func.return
}
// ----- interpret/or#11
func.func @or_op_test_i1_splat_false() {
  %0 = stablehlo.constant dense<false> : tensor<2xi1>
  %1 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.or %0, %1 : tensor<2xi1>
  check.expect_eq_const %2, dense<[false, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/or#12
func.func @or_op_test_i1_splat_true() {
  %0 = stablehlo.constant dense<true> : tensor<2xi1>
  %1 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.or %0, %1 : tensor<2xi1>
  check.expect_eq_const %2, dense<[true, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/pad#0
func.func @pad() {
  %operand = stablehlo.constant dense<[[0, 0, 0, 0],
                                       [0, 1, 2, 0],
                                       [0, 3, 4, 0],
                                       [0, 5, 6, 0],
                                       [0, 0, 0, 0]]> : tensor<5x4xi64>
  %padding_value = stablehlo.constant dense<-1> : tensor<i64>
  %result = stablehlo.pad %operand, %padding_value, low = [1, -1], high = [1, -1], interior = [0, 1]
    : (tensor<5x4xi64>, tensor<i64>) -> tensor<7x5xi64>
  check.expect_eq_const %result, dense<[[-1, -1, -1, -1, -1], [-1, 0, -1, 0, -1], [-1, 1, -1, 2, -1],
                           [-1, 3, -1, 4, -1], [-1, 5, -1, 6, -1], [-1, 0, -1, 0, -1],
                           [-1, -1, -1, -1, -1]]> : tensor<7x5xi64>
  func.return
}
// ----- interpret/popcnt#0
func.func @popcnt_op_test_si64() {
  %operand = stablehlo.constant dense<[0, 1, 2, 127]> : tensor<4xi64>
  %result = stablehlo.popcnt %operand : tensor<4xi64>
  check.expect_eq_const %result, dense<[0, 1, 1, 7]> : tensor<4xi64>
  func.return
}
// ----- interpret/power#0
func.func @power_op_test_si64() {
  %lhs = stablehlo.constant dense<[-1, -1, -3, 1, -3, 0]> : tensor<6xi64>
  %rhs = stablehlo.constant dense<[1, 0, -3, -3, 3, 2]> : tensor<6xi64>
  %result = stablehlo.power %lhs, %rhs : tensor<6xi64>
  check.expect_eq_const %result, dense<[-1, 1, 0, 1, -27, 0]> : tensor<6xi64>
  func.return
}
// ----- interpret/power#1
func.func @power_op_test_ui64() {
  %lhs = stablehlo.constant dense<[0, 0, 1, 1, 5]> : tensor<5xui64>
  %rhs = stablehlo.constant dense<[0, 1, 0, 2, 5]> : tensor<5xui64>
  %result = stablehlo.power %lhs, %rhs : tensor<5xui64>
  check.expect_eq_const %result, dense<[1, 0, 1, 1, 3125]> : tensor<5xui64>
  func.return
}
// ----- interpret/power#2
func.func @power_op_test_f64() {
  %lhs = stablehlo.constant dense<[-2.0, -0.0, -36.0, 5.0, 3.0, 10000.0]> : tensor<6xf64>
  %rhs = stablehlo.constant dense<[2.0, 2.0, 1.1, 2.0, -1.0, 10.0]> : tensor<6xf64>
  %result = stablehlo.power %lhs, %rhs : tensor<6xf64>
  check.expect_almost_eq_const %result, dense<[4.000000e+00, 0.000000e+00, 0xFFF8000000000000,
                                               2.500000e+01, 0.33333333333333331, 1.000000e+40]> : tensor<6xf64>
  func.return
}
// ----- interpret/real#0
func.func @real_op_test_f64() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %1 = stablehlo.real %0 : tensor<2xf64>
  check.expect_almost_eq_const %1, dense<[1.0, 2.0]> : tensor<2xf64>
  func.return
}
// ----- interpret/reduce#0
func.func @reduce() {
  %input = stablehlo.constant dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>
  %init_value = stablehlo.constant dense<0> : tensor<i64>
  %result = "stablehlo.reduce"(%input, %init_value) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    dimensions = array<i64: 1>
  } : (tensor<1x6xi64>, tensor<i64>) -> tensor<1xi64>
  check.expect_eq_const %result, dense<[15]> : tensor<1xi64>
  func.return
}
// ----- interpret/reduce_precision#0
func.func @reduce_precision_op_test_f64() {
  %operand = stablehlo.constant dense<[0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF, 0x0000000000000001, 0.0, 65505.0, 65520.0]> : tensor<6xf64>
  %output = stablehlo.reduce_precision %operand, format = e5m10 : tensor<6xf64>
  check.expect_almost_eq_const %output, dense<[0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF, 0.0, 0.0, 65504.0, 0x7FF0000000000000]> : tensor<6xf64>
  func.return
}
// ----- interpret/reduce_precision#1
func.func @reduce_precision_op_test_f64_zero_mantissa_bits() {
  %operand = stablehlo.constant dense<0x7FFFFFFFFFFFFFFF> : tensor<f64>
  %output = stablehlo.reduce_precision %operand, format = e5m0 : tensor<f64>
  check.expect_almost_eq_const %output, dense<0x7FF0000000000000> : tensor<f64>
  func.return
}
// ----- interpret/reduce_window#0
func.func @reduce_window() {
  %input = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  %init_value = stablehlo.constant dense<0> : tensor<i64>
  %result = "stablehlo.reduce_window"(%input, %init_value) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    base_dilations = array<i64: 2, 1>,
    padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>,
    window_dilations = array<i64: 3, 1>,
    window_dimensions = array<i64: 2, 1>,
    window_strides = array<i64: 4, 1>
  } : (tensor<3x2xi64>, tensor<i64>) -> tensor<2x2xi64>
  check.expect_eq_const %result, dense<[[0, 0], [3, 4]]> : tensor<2x2xi64>
  func.return
}
// ----- interpret/reduce_window#1
func.func @reduce_window_issue_1662() {
  %input = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  %init_value = stablehlo.constant dense<0> : tensor<i64>
  %result = "stablehlo.reduce_window"(%input, %init_value) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    base_dilations = array<i64: 2, 1>,
    padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>,
    window_dilations = array<i64: 3, 1>,
    window_dimensions = array<i64: 3, 1>,
    window_strides = array<i64: 4, 1>
  } : (tensor<3x2xi64>, tensor<i64>) -> tensor<1x2xi64>
  check.expect_eq_const %result, dense<[[5, 6]]> : tensor<1x2xi64>
  func.return
}
// ----- interpret/remainder#0
func.func @remainder_op_test_si64() {
  %lhs = stablehlo.constant dense<[17, -17, 17, -17]> : tensor<4xi64>
  %rhs = stablehlo.constant dense<[3, 3, -3, -3]> : tensor<4xi64>
  %result = stablehlo.remainder %lhs, %rhs : tensor<4xi64>
  check.expect_eq_const %result, dense<[2, -2, 2, -2]> : tensor<4xi64>
  func.return
}
// ----- interpret/remainder#1
func.func @remainder_op_test_ui64() {
  %lhs = stablehlo.constant dense<[17, 18, 19, 20]> : tensor<4xui64>
  %rhs = stablehlo.constant dense<[3, 4, 5, 7]> : tensor<4xui64>
  %result = stablehlo.remainder %lhs, %rhs : tensor<4xui64>
  check.expect_eq_const %result, dense<[2, 2, 4, 6]> : tensor<4xui64>
  func.return
}
// ----- interpret/remainder#2
func.func @remainder_op_test_f64() {
  %lhs = stablehlo.constant dense<[17.1, -17.1, 17.1, -17.1]> : tensor<4xf64>
  %rhs = stablehlo.constant dense<[3.0, 3.0, -3.0, -3.0]> : tensor<4xf64>
  %result = stablehlo.remainder %lhs, %rhs : tensor<4xf64>
  check.expect_eq_const %result, dense<[2.1000000000000014, -2.1000000000000014, 2.1000000000000014, -2.1000000000000014]> : tensor<4xf64>
  func.return
}
// ----- interpret/reshape#0
func.func @reshape_op_test_si32() {
  %0 = stablehlo.constant dense<[[1,2,3,4,5,6]]> : tensor<1x6xi32>
  %1 = stablehlo.reshape %0 : (tensor<1x6xi32>) -> tensor<6xi32>
  check.expect_eq_const %1, dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
  func.return
}
// ----- interpret/reshape#1
func.func @reshape_op_test_si32() {
  %0 = stablehlo.constant dense<[1,2,3,4,5,6]> : tensor<6xi32>
  %1 = stablehlo.reshape %0 : (tensor<6xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %1, dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  func.return
}
// ----- interpret/reshape#2
func.func @reshape_op_test_si32() {
  %0 = stablehlo.constant dense<[[1,2,3],[4,5,6]]> : tensor<2x3xi32>
  %1 = stablehlo.reshape %0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %1, dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  func.return
}
// ----- interpret/reshape#3
func.func @reshape_op_test_si32() {
  %0 = stablehlo.constant dense<[[1,2],[3,4],[5,6]]> : tensor<3x2xi32>
  %1 = stablehlo.reshape %0 : (tensor<3x2xi32>) -> tensor<6xi32>
  check.expect_eq_const %1, dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
  func.return
}
// ----- interpret/reverse#0
func.func @reverse() {
  %operand = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  %result = "stablehlo.reverse"(%operand) {
    dimensions = array<i64: 1, 0>
  } : (tensor<3x2xi64>) -> tensor<3x2xi64>
  check.expect_eq_const %result, dense<[[6, 5], [4, 3], [2, 1]]> : tensor<3x2xi64>
  func.return
}
// ----- interpret/round_nearest_afz#0
func.func @round_nearest_afz_op_test_f64() {
  %operand = stablehlo.constant dense<[-2.5, 0.4, 0.5, 0.6, 2.5]> : tensor<5xf64>
  %result = stablehlo.round_nearest_afz %operand : tensor<5xf64>
  check.expect_almost_eq_const %result, dense<[-3.0, 0.0, 1.0, 1.0, 3.0]> : tensor<5xf64>
  func.return
}
// ----- interpret/round_nearest_even#0
func.func @round_nearest_even_op_test_f64() {
  %operand = stablehlo.constant dense<[-2.5, 0.4, 0.5, 0.6, 2.5]> : tensor<5xf64>
  %result = stablehlo.round_nearest_even %operand : tensor<5xf64>
  check.expect_almost_eq_const %result, dense<[-2.0, 0.0, 0.0, 1.0, 2.0]> : tensor<5xf64>
  func.return
}
// ----- interpret/rsqrt#0
func.func @rsqrt_op_test_f64() {
  %operand = stablehlo.constant dense<[[1.0, 4.0], [9.0, 25.0]]> : tensor<2x2xf64>
  %result = stablehlo.rsqrt %operand : tensor<2x2xf64>
  check.expect_almost_eq_const %result, dense<[[1.000000e+00, 5.000000e-01], [0.33333333333333331, 2.000000e-01]]> : tensor<2x2xf64>
  func.return
}
// ----- interpret/scatter#0
func.func @scatter_op_test() {
  %inputs = stablehlo.constant dense<[[[1, 2], [3, 4], [5, 6], [7, 8]],
                                      [[9, 10], [11, 12], [13, 14], [15, 16]],
                                      [[17, 18], [19, 20], [21, 22], [23, 24]]]> : tensor<3x4x2xi64>
  %scatter_indices = stablehlo.constant dense<[[[0, 2], [1, 0], [2, 1]],
                                               [[0, 1], [1, 0], [0, 9]]]> : tensor<2x3x2xi64>
  %updates = stablehlo.constant dense<1> : tensor<2x3x2x2xi64>
  %result = "stablehlo.scatter"(%inputs, %scatter_indices, %updates) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [2, 3],
      inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [1, 0],
      index_vector_dim = 2>,
    indices_are_sorted = false,
    unique_indices = false
  } : (tensor<3x4x2xi64>, tensor<2x3x2xi64>, tensor<2x3x2x2xi64>) -> tensor<3x4x2xi64>
  check.expect_eq_const %result, dense<[[[1, 2], [5, 6], [7, 8], [7, 8]],
                                        [[10, 11], [12, 13], [14, 15], [16, 17]],
                                        [[18, 19], [20, 21], [21, 22], [23, 24]]]> : tensor<3x4x2xi64>
  // Check that `inputs` is not modified.
  check.expect_eq_const %inputs, dense<[[[1, 2], [3, 4], [5, 6], [7, 8]],
                                      [[9, 10], [11, 12], [13, 14], [15, 16]],
                                      [[17, 18], [19, 20], [21, 22], [23, 24]]]> : tensor<3x4x2xi64>
  func.return
}
// ----- interpret/scatter#1
func.func @scatter_op_with_batching_dim_test() {
  %inputs = stablehlo.constant dense<[
      [
        [[1, 2], [3, 4], [5, 6], [7, 8]],
        [[9, 10], [11, 12], [13, 14], [15, 16]],
        [[17, 18], [19, 20], [21, 22], [23, 24]]
      ],
      [
        [[25, 26], [27, 28], [29, 30], [31, 32]],
        [[33, 34], [35, 36], [37, 38], [39, 40]],
        [[41, 42], [43, 44], [45, 46], [47, 48]]
      ]
  ]> : tensor<2x3x4x2xi64>
  %scatter_indices = stablehlo.constant dense<[
      [
        [[0, 0], [1, 0], [2, 1]],
        [[0, 1], [1, 1], [0, 9]]
      ],
      [
        [[0, 0], [2, 1], [2, 2]],
        [[1, 2], [0, 1], [1, 0]]
      ]
  ]> : tensor<2x2x3x2xi64>
  %updates = stablehlo.constant dense<1> : tensor<2x2x3x2x2xi64>
  %result = "stablehlo.scatter"(%inputs, %scatter_indices, %updates) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [3, 4],
      inserted_window_dims = [1],
      input_batching_dims = [0],
      scatter_indices_batching_dims = [1],
      scatter_dims_to_operand_dims = [2, 1],
      index_vector_dim = 3>,
    indices_are_sorted = false,
    unique_indices = false
  } : (tensor<2x3x4x2xi64>, tensor<2x2x3x2xi64>, tensor<2x2x3x2x2xi64>) -> tensor<2x3x4x2xi64>
  check.expect_eq_const %result, dense<[
      [
        [[3, 4], [6, 7], [6, 7], [7, 8]],
        [[9, 10],[11, 12], [15, 16], [17, 18]],
        [[17, 18], [19, 20], [22, 23], [24, 25]]
      ],
      [
        [[25, 26], [28, 29], [30, 31], [31, 32]],
        [[35, 36], [38, 39], [38, 39], [39, 40]],
        [[41, 42], [44, 45], [46, 47], [47, 48]]
      ]
  ]> : tensor<2x3x4x2xi64>
  // Check that `inputs` is not modified.
  check.expect_eq_const %inputs, dense<[
      [
        [[1, 2], [3, 4], [5, 6], [7, 8]],
        [[9, 10], [11, 12], [13, 14], [15, 16]],
        [[17, 18], [19, 20], [21, 22], [23, 24]]
      ],
      [
        [[25, 26], [27, 28], [29, 30], [31, 32]],
        [[33, 34], [35, 36], [37, 38], [39, 40]],
        [[41, 42], [43, 44], [45, 46], [47, 48]]
      ]
  ]> : tensor<2x3x4x2xi64>
  func.return
}
// ----- interpret/select#0
func.func @select_op_test_si64() {
  %pred = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  %on_true = stablehlo.constant dense<[2, 3, -1]> : tensor<3xi64>
  %on_false = stablehlo.constant dense<[3, 7, -3]> : tensor<3xi64>
  %result = stablehlo.select %pred, %on_true, %on_false : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[2, 7, -1]> : tensor<3xi64>
  func.return
}
// ----- interpret/select#1
func.func @select_op_test_si64_scalar() {
  %pred = stablehlo.constant dense<false> : tensor<i1>
  %on_true = stablehlo.constant dense<[2, 3, -1]> : tensor<3xi64>
  %on_false = stablehlo.constant dense<[3, 7, -3]> : tensor<3xi64>
  %result = stablehlo.select %pred, %on_true, %on_false : (tensor<i1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  check.expect_eq_const %result, dense<[3, 7, -3]> : tensor<3xi64>
  func.return
}
// ----- interpret/select_and_scatter#0
func.func @select_and_scatter_op_test() {
  %operand = stablehlo.constant dense<[[1, 5],
                                       [2, 5],
                                       [3, 6],
                                       [4, 4]]> : tensor<4x2xi64>
  %source = stablehlo.constant dense<[[5, 6],
                                      [7, 8]]> : tensor<2x2xi64>
  %init_value = stablehlo.constant dense<0> : tensor<i64>
  %result = "stablehlo.select_and_scatter"(%operand, %source, %init_value) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.compare GE, %arg0, %arg1 : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %0 : tensor<i1>
  }, {
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {
    window_dimensions = array<i64: 3, 1>,
    window_strides = array<i64: 2, 1>,
    padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>
  } : (tensor<4x2xi64>, tensor<2x2xi64>, tensor<i64>) -> tensor<4x2xi64>
  check.expect_eq_const %result, dense<[[0, 0],
                                        [0, 0],
                                        [5, 14],
                                        [7, 0]]> : tensor<4x2xi64>
  func.return
}
// ----- interpret/shift_left#0
func.func @shift_left_op_test_si64() {
  %lhs = stablehlo.constant dense<[-1, 0, 1]> : tensor<3xi64>
  %rhs = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
  %result = stablehlo.shift_left %lhs, %rhs : tensor<3xi64>
  check.expect_eq_const %result, dense<[-2, 0, 8]> : tensor<3xi64>
  func.return
}
// ----- interpret/shift_right_arithmetic#0
func.func @shift_right_arithmetic_op_test_si64() {
  %lhs = stablehlo.constant dense<[-1, 0, 8]> : tensor<3xi64>
  %rhs = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
  %result = stablehlo.shift_right_arithmetic %lhs, %rhs : tensor<3xi64>
  check.expect_eq_const %result, dense<[-1, 0, 1]> : tensor<3xi64>
  func.return
}
// ----- interpret/shift_right_logical#0
func.func @shift_right_logical_op_test_si64() {
  %lhs = stablehlo.constant dense<[-1, 0, 8]> : tensor<3xi64>
  %rhs = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>
  %result = stablehlo.shift_right_logical %lhs, %rhs : tensor<3xi64>
  check.expect_eq_const %result, dense<[9223372036854775807, 0, 1]> : tensor<3xi64>
  func.return
}
// ----- interpret/sign#0
// CHECK-LABEL: Evaluated results of function: sign_op_test_si64
func.func @sign_op_test_si64() {
  %operand = stablehlo.constant dense<[-1, 0, 1]> : tensor<3xi64>
  %result = stablehlo.sign %operand : tensor<3xi64>
  check.expect_eq_const %result, dense<[-1, 0, 1]> : tensor<3xi64>
  func.return
}
// ----- interpret/sign#1
// CHECK-LABEL: Evaluated results of function: sign_op_test_f64
func.func @sign_op_test_f64() {
  // +NaN, -1.0, -0.0, +0.0, 1.0
  %operand = stablehlo.constant dense<[0x7FFFFFFFFFFFFFFF, -1.0, -0.0, 0.0, 1.0]> : tensor<5xf64>
  %result = stablehlo.sign %operand : tensor<5xf64>
  check.expect_almost_eq_const %result, dense<[0x7FFFFFFFFFFFFFFF, -1.0, -0.0, 0.0, 1.0]> : tensor<5xf64>
  func.return
}
// ----- interpret/sine#0
func.func @sine_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7F80, 0xFF80, 0x7FFF, 0x0001, 0x8001]> : tensor<11xbf16>
  %1 = stablehlo.sine %0 : tensor<11xbf16>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 8.398430e-01, 1.245120e-01, 1.000980e-01, 9.689330e-04, 0xFFC0, 0xFFC0, 0x7FFF, 9.183550e-41, -9.183550e-41]> : tensor<11xbf16>
  func.return
}
// ----- interpret/sine#1
func.func @sine_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7C00, 0xFC00, 0x7FFF, 0x0001, 0x8001]> : tensor<11xf16>
  %1 = stablehlo.sine %0 : tensor<11xf16>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 8.413080e-01, 1.246950e-01, 9.979240e-02, 9.675020e-04, 0xFE00, 0xFE00, 0x7FFF, 5.960460e-08, -5.960460e-08]> : tensor<11xf16>
  func.return
}
// ----- interpret/sine#2
func.func @sine_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159274, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x00000001, 0x80000001]> : tensor<11xf32>
  %1 = stablehlo.sine %0 : tensor<11xf32>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 0.841470957, 0.12467473, 0.0998334214, -8.74227765E-8, 0xFFC00000, 0xFFC00000, 0x7FFFFFFF, 1.401300e-45, -1.401300e-45]> : tensor<11xf32>
  func.return
}
// ----- interpret/sine#3
func.func @sine_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.1415926535897931, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FFFFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001]> : tensor<11xf64>
  %1 = stablehlo.sine %0 : tensor<11xf64>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 0.8414709848078965, 0.12467473338522769, 0.099833416646828154, 1.2246467991473532E-16, 0xFFF8000000000000, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF, 4.940660e-324, -4.940660e-324]> : tensor<11xf64>
  func.return
}
// ----- interpret/sine#4
func.func @sine_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (3.5, 4.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.sine %0 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %1, dense<[(6.1169281, 0.427974522), (-15.7901983, -42.1433716)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/slice#0
func.func @slice_op() {
  %operand = stablehlo.constant dense<[[0, 0, 1, 0, 0, 1],
                                       [0, 0, 0, 0, 0, 0],
                                       [0, 0, 1, 0, 0, 1]]> : tensor<3x6xi64>
  %result = "stablehlo.slice"(%operand) {
    start_indices = array<i64: 0, 2>,
    limit_indices = array<i64: 3, 6>,
    strides = array<i64: 2, 3>
  } : (tensor<3x6xi64>) -> tensor<2x2xi64>
  check.expect_eq_const %result, dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>
  func.return
}
// ----- interpret/sort#0
func.func @sort_stable() {
  %input0 = stablehlo.constant dense<[[1, 2, 3], [3, 2, 1]]> : tensor<2x3xi64>
  %input1 = stablehlo.constant dense<[[3, 2, 1], [1, 2, 3]]> : tensor<2x3xi64>
  %result0, %result1 = "stablehlo.sort"(%input0, %input1) ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<i64>, %arg3: tensor<i64>):
      %predicate = stablehlo.compare GT, %arg0, %arg1 : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %predicate : tensor<i1>
  }) {
    dimension = 0 : i64,
    is_stable = true
  } : (tensor<2x3xi64>, tensor<2x3xi64>) -> (tensor<2x3xi64>, tensor<2x3xi64>)
  check.expect_eq_const %result0, dense<[[3, 2, 3], [1, 2, 1]]> : tensor<2x3xi64>
  check.expect_eq_const %result1, dense<[[1, 2, 1], [3, 2, 3]]> : tensor<2x3xi64>
  func.return
}
// ----- interpret/sort#1
func.func public @sort_issue_2440() {
  %input = stablehlo.constant dense<[[0, 1, 1, -3, -3, -2, 0], [4, -1, 3, 0, 4, 0, -3], [1, 0, 0, 0, 0, 2, 3], [-3, -4, -4, -2, 0, 3, 3], [0, 5, 2, -2, 0, -2, 0]]> : tensor<5x7xi64>
  %result = "stablehlo.sort"(%input) <{dimension = 0 : i64}> ({
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
    %1 = stablehlo.compare  LT, %arg0, %arg1,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<5x7xi64>) -> tensor<5x7xi64>
  check.expect_eq_const %result, dense<[[ -3, -4, -4, -3, -3, -2, -3 ], [ 0, -1, 0, -2, 0, -2, 0 ], [ 0, 0, 1, -2, 0, 0, 0 ], [ 1, 1, 2, 0, 0, 2, 3 ], [ 4, 5, 3, 0, 4, 3, 3 ]]> :  tensor<5x7xi64>
  func.return
}
// ----- interpret/sqrt#0
func.func @square_root_op_test_f64() {
  %operand = stablehlo.constant dense<[[0.0, 1.0], [4.0, 9.0]]> : tensor<2x2xf64>
  %result = stablehlo.sqrt %operand : tensor<2x2xf64>
  check.expect_almost_eq_const %result, dense<[[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00]]> : tensor<2x2xf64>
  func.return
}
// ----- interpret/subtract#2
func.func @subtract_op_test_si8() {
  %0 = stablehlo.constant dense<[0, 1, 8, -9, 0]> : tensor<5xi8>
  %1 = stablehlo.constant dense<[-128, -1, 8, -9, 127]> : tensor<5xi8>
  %2 = stablehlo.subtract %0, %1 : tensor<5xi8>
  check.expect_eq_const %2, dense<[-128, 2, 0, 0, -127]> : tensor<5xi8>
  func.return
}
// ----- interpret/subtract#3
func.func @subtract_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 16]> : tensor<2xui8>
  %1 = stablehlo.constant dense<[255, 16]> : tensor<2xui8>
  %2 = stablehlo.subtract %0, %1 : tensor<2xui8>
  check.expect_eq_const %2, dense<[1, 0]> : tensor<2xui8>
  func.return
}
// ----- interpret/subtract#4
func.func @subtract_op_test_si16() {
  %0 = stablehlo.constant dense<[0, 1, 128, -129, 0]> : tensor<5xi16>
  %1 = stablehlo.constant dense<[-32768, -1, 128, -129, 32767]> : tensor<5xi16>
  %2 = stablehlo.subtract %0, %1 : tensor<5xi16>
  check.expect_eq_const %2, dense<[-32768, 2, 0, 0, -32767]> : tensor<5xi16>
  func.return
}
// ----- interpret/subtract#5
func.func @subtract_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 256]> : tensor<2xui16>
  %1 = stablehlo.constant dense<[65535, 256]> : tensor<2xui16>
  %2 = stablehlo.subtract %0, %1 : tensor<2xui16>
  check.expect_eq_const %2, dense<[1, 0]> : tensor<2xui16>
  func.return
}
// ----- interpret/subtract#6
func.func @subtract_op_test_si32() {
  %0 = stablehlo.constant dense<[0, 1, 32768, -32769, 0]> : tensor<5xi32>
  %1 = stablehlo.constant dense<[-2147483648, -1, 32768, -32769, 2147483647]> : tensor<5xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<5xi32>
  check.expect_eq_const %2, dense<[-2147483648, 2, 0, 0, -2147483647]> : tensor<5xi32>
  func.return
}
// ----- interpret/subtract#7
func.func @subtract_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 65536]> : tensor<2xui32>
  %1 = stablehlo.constant dense<[4294967295, 65536]> : tensor<2xui32>
  %2 = stablehlo.subtract %0, %1 : tensor<2xui32>
  check.expect_eq_const %2, dense<[1, 0]> : tensor<2xui32>
  func.return
}
// ----- interpret/subtract#8
func.func @subtract_op_test_si64() {
  %0 = stablehlo.constant dense<[0, 1, 2147483648, -2147483649, 0]> : tensor<5xi64>
  %1 = stablehlo.constant dense<[-9223372036854775808, -1, 2147483648, -2147483649, 9223372036854775807]> : tensor<5xi64>
  %2 = stablehlo.subtract %0, %1 : tensor<5xi64>
  check.expect_eq_const %2, dense<[-9223372036854775808, 2, 0, 0, -9223372036854775807]> : tensor<5xi64>
  func.return
}
// ----- interpret/subtract#9
func.func @subtract_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 4294967296]> : tensor<2xui64>
  %1 = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %2 = stablehlo.subtract %0, %1 : tensor<2xui64>
  check.expect_eq_const %2, dense<[1, 0]> : tensor<2xui64>
  func.return
}
// ----- interpret/subtract#10
func.func @subtract_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140625, 0x7F80, 0x7F80, 0xFF80, 0x7F80, 0x0001]> : tensor<11xbf16>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.140625, 0.0, 0x7F80, 0xFF80, 0xFF80, 0x8001]> : tensor<11xbf16>
  %2 = stablehlo.subtract %0, %1 : tensor<11xbf16>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, -6.000000e+00, -6.250000e-01, -2.011720e-01, 0.000000e+00, 0x7F80, 0x7FC0, 0x7FC0, 0x7F80, 1.836710e-40]> : tensor<11xbf16>
  func.return
}
// ----- interpret/subtract#11
func.func @subtract_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.141, 0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x0001]> : tensor<11xf16>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.141, 0.0, 0x7C00, 0xFC00, 0xFC00, 0x8001]> : tensor<11xf16>
  %2 = stablehlo.subtract %0, %1 : tensor<11xf16>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, -6.000000e+00, -6.250000e-01, -2.000730e-01, 0.000000e+00, 0x7C00, 0x7E00, 0x7E00, 0x7C00, 1.192090e-07]> : tensor<11xf16>
  func.return
}
// ----- interpret/subtract#12
func.func @subtract_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159265, 0x7F800000, 0x7F800000, 0xFF800000, 0x7F800000, 0x00000001]> : tensor<11xf32>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.14159265, 0.0, 0x7F800000, 0xFF800000, 0xFF800000, 0x80000001]> : tensor<11xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<11xf32>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, -6.000000e+00, -6.250000e-01, -0.200000018, 0.000000e+00, 0x7F800000, 0x7FC00000, 0x7FC00000, 0x7F800000, 2.802600e-45]> : tensor<11xf32>
  func.return
}
// ----- interpret/subtract#13
func.func @subtract_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159265358979323846, 0x7FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000, 0x0000000000000001]> : tensor<11xf64>
  %1 = stablehlo.constant dense<[0.0, -0.0, 7.0, 0.75, 0.3, 3.14159265358979323846, 0.0, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000, 0x8000000000000001]> : tensor<11xf64>
  %2 = stablehlo.subtract %0, %1 : tensor<11xf64>
  check.expect_almost_eq_const %2, dense<[0.000000e+00, 0.000000e+00, -6.000000e+00, -6.250000e-01, -0.19999999999999998, 0.000000e+00, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF8000000000000, 0x7FF0000000000000, 9.881310e-324]> : tensor<11xf64>
  func.return
}
// ----- interpret/subtract#14
func.func @subtract_op_test_c64() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.constant dense<[(1.5, 2.5), (7.5, 5.5)]> : tensor<2xcomplex<f32>>
  %2 = stablehlo.subtract %0, %1 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %2, dense<[(0.000000e+00, 0.000000e+00), (0.000000e+00, 0.000000e+00)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/tan#0
func.func @tan_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, 1.57079632, 3.14159265, 4.71238898]> : tensor<4xf64>
  %1 = stablehlo.tan %0 : tensor<4xf64>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, 147169271.76124874, -3.5897930298416118E-9,  2599497068.2695704]> : tensor<4xf64>
  func.return
}
// ----- interpret/tanh#0
func.func @tanh_op_test_bf16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7F80, 0xFF80, 0x7FFF, 0x0001, 0x8001]> : tensor<11xbf16>
  %1 = stablehlo.tanh %0 : tensor<11xbf16>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 7.617180e-01, 1.245120e-01, 9.960930e-02, 9.960930e-01, 1.000000e+00, -1.000000e+00, 0x7FFF, 9.183550e-41, -9.183550e-41]> : tensor<11xbf16>
  func.return
}
// ----- interpret/tanh#1
func.func @tanh_op_test_f16() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.140630, 0x7C00, 0xFC00, 0x7FFF, 0x0001, 0x8001]> : tensor<11xf16>
  %1 = stablehlo.tanh %0 : tensor<11xf16>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 7.617180e-01, 1.243290e-01, 9.967040e-02, 9.960930e-01, 1.000000e+00, -1.000000e+00, 0x7FFF, 5.960460e-08, -5.960460e-08]> : tensor<11xf16>
  func.return
}
// ----- interpret/tanh#2
func.func @tanh_op_test_f32() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.14159274, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x00000001, 0x80000001]> : tensor<11xf32>
  %1 = stablehlo.tanh %0 : tensor<11xf32>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 0.761594176, 1.243530e-01, 0.0996679961, 0.996272087, 1.000000e+00, -1.000000e+00, 0x7FFFFFFF, 1.401300e-45, -1.401300e-45]> : tensor<11xf32>
  func.return
}
// ----- interpret/tanh#3
func.func @tanh_op_test_f64() {
  %0 = stablehlo.constant dense<[0.0, -0.0, 1.0, 0.125, 0.1, 3.1415926535897931, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FFFFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001]> : tensor<11xf64>
  %1 = stablehlo.tanh %0 : tensor<11xf64>
  check.expect_almost_eq_const %1, dense<[0.000000e+00, -0.000000e+00, 0.76159415595576485, 0.12435300177159619, 0.099667994624955819, 0.99627207622074998, 1.000000e+00, -1.000000e+00, 0x7FFFFFFFFFFFFFFF, 4.940660e-324, -4.940660e-324]> : tensor<11xf64>
  func.return
}
// ----- interpret/tanh#4
func.func @tanh_op_test_c32() {
  %0 = stablehlo.constant dense<[(1.5, 2.5), (3.5, 4.5)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.tanh %0 : tensor<2xcomplex<f32>>
  check.expect_almost_eq_const %1, dense<[(0.967786788, -0.0926378369), (1.00166273, 7.52857188E-4)]> : tensor<2xcomplex<f32>>
  func.return
}
// ----- interpret/transpose#0
func.func @transpose_op_test_si32() {
  %0 = stablehlo.constant dense<[[[1,2],[3,4],[5,6]], [[7,8],[9,10],[11,12]]]> : tensor<2x3x2xi32>
  %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 1,0,2>} : (tensor<2x3x2xi32>) -> tensor<3x2x2xi32>
  check.expect_eq_const %1, dense<[[[1, 2], [7, 8]], [[3, 4], [9, 10]], [[5, 6], [11, 12]]]> : tensor<3x2x2xi32>
  func.return
}
// ----- interpret/transpose#1
func.func @transpose_op_test_si32() {
  %0 = stablehlo.constant dense<[[[1,2],[3,4],[5,6]], [[7,8],[9,10],[11,12]]]> : tensor<2x3x2xi32>
  %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 2,1,0>} : (tensor<2x3x2xi32>) -> tensor<2x3x2xi32>
  check.expect_eq_const %1, dense<[[[1, 7], [3, 9], [5, 11]], [[2, 8], [4, 10], [6, 12]]]> : tensor<2x3x2xi32>
  func.return
}
// ----- interpret/transpose#2
func.func @transpose_op_test_si32() {
  %0 = stablehlo.constant dense<[[[1,2],[3,4],[5,6]], [[7,8],[9,10],[11,12]]]> : tensor<2x3x2xi32>
  %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 2,1,0>} : (tensor<2x3x2xi32>) -> tensor<2x3x2xi32>
  %2 = "stablehlo.transpose"(%1) {permutation = array<i64: 2,1,0>} : (tensor<2x3x2xi32>) -> tensor<2x3x2xi32>
  check.expect_eq_const %2, dense<[[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]> : tensor<2x3x2xi32>
  func.return
}
// ----- interpret/triangular_solve#0
func.func @triangular_solve_op_test_real_3x3_diagonal_left_lower() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[3.5], [2.0], [1.8]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#1
func.func @triangular_solve_op_test_real_3x3_diagonal_left_upper() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[3.5], [2.0], [1.8]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#2
func.func @triangular_solve_op_test_real_3x3_diagonal_right_lower() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[3.5, 2.0, 1.8]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#3
func.func @triangular_solve_op_test_real_3x3_diagonal_right_upper() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[3.5, 2.0, 1.8]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#4
func.func @triangular_solve_op_test_real_3x3_diagonal_left_lower_unit_diagonal() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#5
func.func @triangular_solve_op_test_real_3x3_diagonal_left_upper_unit_diagonal() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#6
func.func @triangular_solve_op_test_real_3x3_diagonal_right_lower_unit_diagonal() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#7
func.func @triangular_solve_op_test_real_3x3_diagonal_right_upper_unit_diagonal() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#8
func.func @triangular_solve_op_test_real_3x3_diagonal_left_lower_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[3.5], [2.0], [1.8]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#9
func.func @triangular_solve_op_test_real_3x3_diagonal_left_upper_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[3.5], [2.0], [1.8]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#10
func.func @triangular_solve_op_test_real_3x3_diagonal_right_lower_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[3.5, 2.0, 1.8]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#11
func.func @triangular_solve_op_test_real_3x3_diagonal_right_upper_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[3.5, 2.0, 1.8]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#12
func.func @triangular_solve_op_test_real_3x3_diagonal_left_lower_unit_diagonal_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#13
func.func @triangular_solve_op_test_real_3x3_diagonal_left_upper_unit_diagonal_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#14
func.func @triangular_solve_op_test_real_3x3_diagonal_right_lower_unit_diagonal_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#15
func.func @triangular_solve_op_test_real_3x3_diagonal_right_upper_unit_diagonal_transpose() {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#16
func.func @triangular_solve_op_test_real_3x3_triangular_left_lower() {
  %a = stablehlo.constant dense<[[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [4.0, 5.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[7.0], [-2.0], [-1.5]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#17
func.func @triangular_solve_op_test_real_3x3_triangular_left_upper() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 4.0], [0.0, 3.0, 5.0], [0.0, 0.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[0.666667], [0.166667], [1.5]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#18
func.func @triangular_solve_op_test_real_3x3_triangular_right_lower() {
  %a = stablehlo.constant dense<[[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [4.0, 5.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[0.666667, 0.166667, 1.5]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#19
func.func @triangular_solve_op_test_real_3x3_triangular_right_upper() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 4.0], [0.0, 3.0, 5.0], [0.0, 0.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[7.0, -2.0, -1.5]]> : tensor<1x3xf32>
  func.return
}
func.func @triangular_solve_op_test_real_3x3_triangular_left_lower_transpose() {
  %a = stablehlo.constant dense<[[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [4.0, 5.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[0.666667], [0.166667], [1.5]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#20
func.func @triangular_solve_op_test_real_3x3_triangular_left_upper_transpose() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 4.0], [0.0, 3.0, 5.0], [0.0, 0.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0], [8.0], [9.0]]> : tensor<3x1xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  check.expect_almost_eq_const %result, dense<[[7.0], [-2.0], [-1.5]]> : tensor<3x1xf32>
  func.return
}
// ----- interpret/triangular_solve#21
func.func @triangular_solve_op_test_real_3x3_triangular_right_lower_transpose() {
  %a = stablehlo.constant dense<[[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [4.0, 5.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[7.0, -2.0, -1.5]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#22
func.func @triangular_solve_op_test_real_3x3_triangular_right_upper_transpose() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 4.0], [0.0, 3.0, 5.0], [0.0, 0.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[7.0, 8.0, 9.0]]> : tensor<1x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  check.expect_almost_eq_const %result, dense<[[0.666667, 0.166667, 1.5]]> : tensor<1x3xf32>
  func.return
}
// ----- interpret/triangular_solve#23
func.func @triangular_solve_op_test_spec_example() {
  %a = stablehlo.constant dense<[[1.0, 0.0, 0.0], [2.0, 4.0, 0.0], [3.0, 5.0, 6.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[2.0, 0.0, 0.0], [4.0, 8.0, 0.0], [6.0, 10.0, 12.0]]> : tensor<3x3xf32>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  check.expect_almost_eq_const %result, dense<[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]> : tensor<3x3xf32>
  func.return
}
// ----- interpret/triangular_solve#24
func.func @triangular_solve_op_test_complex_example() {
  %a = stablehlo.constant dense<[[(1.0, 1.0), (0.0, 0.0), (0.0, 0.0)], [(2.0, -2.0), (3.0, 4.0), (0.0, 0.0)], [(4.0, -3.0), (5.0, 5.0), (6.0, -8.0)]]> : tensor<3x3xcomplex<f32>>
  %b = stablehlo.constant dense<[[(7.0, -2.0)], [(8.0, 4.0)], [(9.0, -5.0)]]> : tensor<3x1xcomplex<f32>>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xcomplex<f32>>, tensor<3x1xcomplex<f32>>) -> tensor<3x1xcomplex<f32>>
  check.expect_almost_eq_const %result, dense<[[(2.5, -4.5)], [(4.32, 0.24)], [(-0.29, -0.77)]]> : tensor<3x1xcomplex<f32>>
  func.return
}
// ----- interpret/triangular_solve#25
func.func @triangular_solve_op_test_complex_example_adjoint() {
  %a = stablehlo.constant dense<[[(1.0, 1.0), (0.0, 0.0), (0.0, 0.0)], [(2.0, -2.0), (3.0, 4.0), (0.0, 0.0)], [(4.0, -3.0), (5.0, 5.0), (6.0, -8.0)]]> : tensor<3x3xcomplex<f32>>
  %b = stablehlo.constant dense<[[(7.0, -2.0)], [(8.0, 4.0)], [(9.0, -5.0)]]> : tensor<3x1xcomplex<f32>>
  %result = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<3x3xcomplex<f32>>, tensor<3x1xcomplex<f32>>) -> tensor<3x1xcomplex<f32>>
  check.expect_almost_eq_const %result, dense<[[(7.18, 2.679999)], [(-0.08, 3.16)], [(0.14, -1.02)]]> : tensor<3x1xcomplex<f32>>
  func.return
}
// ----- interpret/tuple_and_get_tuple_element#0
func.func @tuple() {
  %val0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %tmp = stablehlo.constant dense<3> : tensor<i64>
  %val1 = stablehlo.tuple %tmp : tuple<tensor<i64>>
  %operand = stablehlo.tuple %val0, %val1 : tuple<tensor<2xf64>, tuple<tensor<i64>>>
  func.return
}
// ----- interpret/tuple_and_get_tuple_element#1
func.func @get_tuple_element() {
  %val0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %tmp0 = stablehlo.constant dense<3> : tensor<i64>
  %val1 = stablehlo.tuple %tmp0 : tuple<tensor<i64>>
  %operand = stablehlo.tuple %val0, %val1 : tuple<tensor<2xf64>, tuple<tensor<i64>>>
  %result0 = stablehlo.get_tuple_element %operand[0] : (tuple<tensor<2xf64>, tuple<tensor<i64>>>) -> tensor<2xf64>
  %tmp1 = stablehlo.get_tuple_element %operand[1] : (tuple<tensor<2xf64>, tuple<tensor<i64>>>) -> tuple<tensor<i64>>
  %result1 = stablehlo.get_tuple_element %tmp1[0] : (tuple<tensor<i64>>) -> tensor<i64>
  check.expect_almost_eq_const %result0, dense<[1.0, 2.0]> : tensor<2xf64>
  check.expect_eq_const %result1, dense<3> : tensor<i64>
  func.return
}
// ----- interpret/while#0
func.func @while() {
  // int i = 0;
  // int sum = 0;
  // while (i < 10) {
  //   sum += 1;
  //   i += 1;
  // }
  %init_i = stablehlo.constant dense<0> : tensor<i64>
  %init_sum = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %ten = stablehlo.constant dense<10> : tensor<i64>
  %results0, %results1 = stablehlo.while(%arg0 = %init_i, %arg1 = %init_sum) : tensor<i64>, tensor<i64>
  cond {
    %cond = stablehlo.compare LT, %arg0, %ten : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %cond : tensor<i1>
  } do {
    %new_sum = stablehlo.add %arg1, %one : tensor<i64>
    %new_i = stablehlo.add %arg0, %one : tensor<i64>
    stablehlo.return %new_i, %new_sum : tensor<i64>, tensor<i64>
  }
  check.expect_eq_const %results0, dense<10> : tensor<i64>
  check.expect_eq_const %results1, dense<10> : tensor<i64>
  func.return
}
// ----- interpret/xor#2
func.func @xor_op_test_si8() {
  %0 = stablehlo.constant dense<[127, -128, -128]> : tensor<3xi8>
  %1 = stablehlo.constant dense<[0, 127, -128]> : tensor<3xi8>
  %2 = stablehlo.xor %0, %1 : tensor<3xi8>
  check.expect_eq_const %2, dense<[127, -1, 0]> : tensor<3xi8>
  func.return
}
// ----- interpret/xor#3
func.func @xor_op_test_ui8() {
  %0 = stablehlo.constant dense<[0, 127, 255]> : tensor<3xui8>
  %1 = stablehlo.constant dense<255> : tensor<3xui8>
  %2 = stablehlo.xor %0, %1 : tensor<3xui8>
  check.expect_eq_const %2, dense<[255, 128, 0]> : tensor<3xui8>
  func.return
}
// ----- interpret/xor#4
func.func @xor_op_test_si16() {
  %0 = stablehlo.constant dense<[32767, -32768, -32768]> : tensor<3xi16>
  %1 = stablehlo.constant dense<[0, 32767, -32768]> : tensor<3xi16>
  %2 = stablehlo.xor %0, %1 : tensor<3xi16>
  check.expect_eq_const %2, dense<[32767, -1, 0]> : tensor<3xi16>
  func.return
}
// ----- interpret/xor#5
func.func @xor_op_test_ui16() {
  %0 = stablehlo.constant dense<[0, 32767, 65535]> : tensor<3xui16>
  %1 = stablehlo.constant dense<65535> : tensor<3xui16>
  %2 = stablehlo.xor %0, %1 : tensor<3xui16>
  check.expect_eq_const %2, dense<[65535, 32768, 0]> : tensor<3xui16>
  func.return
}
// ----- interpret/xor#6
func.func @xor_op_test_si32() {
  %0 = stablehlo.constant dense<[2147483647, -2147483648, -2147483648]> : tensor<3xi32>
  %1 = stablehlo.constant dense<[0, 2147483647, -2147483648]> : tensor<3xi32>
  %2 = stablehlo.xor %0, %1 : tensor<3xi32>
  check.expect_eq_const %2, dense<[2147483647, -1, 0]> : tensor<3xi32>
  func.return
}
// ----- interpret/xor#7
func.func @xor_op_test_ui32() {
  %0 = stablehlo.constant dense<[0, 2147483647, 4294967295]> : tensor<3xui32>
  %1 = stablehlo.constant dense<4294967295> : tensor<3xui32>
  %2 = stablehlo.xor %0, %1 : tensor<3xui32>
  check.expect_eq_const %2, dense<[4294967295, 2147483648, 0]> : tensor<3xui32>
  func.return
}
// ----- interpret/xor#8
func.func @xor_op_test_si64() {
  %0 = stablehlo.constant dense<[9223372036854775807, -9223372036854775808, -9223372036854775808]> : tensor<3xi64>
  %1 = stablehlo.constant dense<[0, 9223372036854775807, -9223372036854775808]> : tensor<3xi64>
  %2 = stablehlo.xor %0, %1 : tensor<3xi64>
  check.expect_eq_const %2, dense<[9223372036854775807, -1, 0]> : tensor<3xi64>
  func.return
}
// ----- interpret/xor#9
func.func @xor_op_test_ui64() {
  %0 = stablehlo.constant dense<[0, 9223372036854775807, 18446744073709551615]> : tensor<3xui64>
  %1 = stablehlo.constant dense<18446744073709551615> : tensor<3xui64>
  %2 = stablehlo.xor %0, %1 : tensor<3xui64>
  check.expect_eq_const %2, dense<[18446744073709551615, 9223372036854775808, 0]> : tensor<3xui64>
  func.return
}
// ----- interpret/xor#10
func.func @xor_op_test_i1() {
  %0 = stablehlo.constant dense<[false, false, true, true]> : tensor<4xi1>
  %1 = stablehlo.constant dense<[false, true, false, true]> : tensor<4xi1>
  %2 = stablehlo.xor %0, %1 : tensor<4xi1>
  check.expect_eq_const %2, dense<[false, true, true, false]> : tensor<4xi1>
  func.return
}
// ----- interpret/xor#11
func.func @xor_op_test_i1_splat_false() {
  %0 = stablehlo.constant dense<false> : tensor<2xi1>
  %1 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.xor %0, %1 : tensor<2xi1>
  check.expect_eq_const %2, dense<[false, true]> : tensor<2xi1>
  func.return
}
// ----- interpret/xor#12
func.func @xor_op_test_i1_splat_true() {
  %0 = stablehlo.constant dense<true> : tensor<2xi1>
  %1 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.xor %0, %1 : tensor<2xi1>
  check.expect_eq_const %2, dense<[true, false]> : tensor<2xi1>
  func.return
}
