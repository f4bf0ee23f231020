// Functions at numbers of every size, with the values of mpmath.
// ----- own/elementary
func.func public @sine_f32() {
  %a0 = stablehlo.constant dense<[1.0e-8, 5.0e-1, -2.0, -3.1415927, 3.55e2, -1.23456e5, 3.0e20, 1.0e38]> : tensor<8xf32>
  %r0 = "stablehlo.sine"(%a0) : (tensor<8xf32>) -> tensor<8xf32>
  %e0 = stablehlo.constant dense<[1.0e-8, 4.7942555e-1, -9.092974e-1, 8.742278e-8, -3.0144354e-5, 7.402834e-1, 8.375478e-1, 9.891645e-1]> : tensor<8xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<8xf32>, tensor<8xf32>) -> ()
  return
}
func.func public @cosine_f32() {
  %a0 = stablehlo.constant dense<[1.0e-8, 5.0e-1, -2.0, -3.1415927, 3.55e2, -1.23456e5, 3.0e20, 1.0e38]> : tensor<8xf32>
  %r0 = "stablehlo.cosine"(%a0) : (tensor<8xf32>) -> tensor<8xf32>
  %e0 = stablehlo.constant dense<[1.0, 8.7758255e-1, -4.1614684e-1, -1.0, -1.0, -6.7229486e-1, -5.463641e-1, 1.4681168e-1]> : tensor<8xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<8xf32>, tensor<8xf32>) -> ()
  return
}
func.func public @tan_f32() {
  %a0 = stablehlo.constant dense<[1.0e-8, 5.0e-1, -2.0, -3.1415927, 3.55e2, -1.23456e5, 3.0e20, 1.0e38]> : tensor<8xf32>
  %r0 = "stablehlo.tan"(%a0) : (tensor<8xf32>) -> tensor<8xf32>
  %e0 = stablehlo.constant dense<[1.0e-8, 5.463025e-1, 2.1850398, -8.742278e-8, 3.0144354e-5, -1.101129, -1.532948, 6.7376413]> : tensor<8xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<8xf32>, tensor<8xf32>) -> ()
  return
}
func.func public @atan_f32() {
  %a0 = stablehlo.constant dense<[1.0e-10, -3.0e-1, 4.2e-1, 1.0, 2.4, 2.5, -1.0e10]> : tensor<7xf32>
  %r0 = "chlo.atan"(%a0) : (tensor<7xf32>) -> tensor<7xf32>
  %e0 = stablehlo.constant dense<[1.0e-10, -2.9145682e-1, 3.9762798e-1, 7.853982e-1, 1.1760052, 1.19029, -1.5707964]> : tensor<7xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<7xf32>, tensor<7xf32>) -> ()
  return
}
func.func public @asin_f32() {
  %a0 = stablehlo.constant dense<[1.0e-9, -5.0e-1, 9.9e-1, 1.0]> : tensor<4xf32>
  %r0 = "chlo.asin"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = stablehlo.constant dense<[1.0e-9, -5.235988e-1, 1.4292569, 1.5707964]> : tensor<4xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}
func.func public @atan2_f32() {
  %a0 = stablehlo.constant dense<[1.0, -1.0, 1.0e-20, -3.0, 2.0, 5.0]> : tensor<6xf32>
  %a1 = stablehlo.constant dense<[-1.0, -2.0, 1.0e10, 0.0, -1.0e-10, 3.0]> : tensor<6xf32>
  %r0 = "stablehlo.atan2"(%a0, %a1) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %e0 = stablehlo.constant dense<[2.3561945, -2.6779451, 1.0e-30, -1.5707964, 1.5707964, 1.0303768]> : tensor<6xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<6xf32>, tensor<6xf32>) -> ()
  return
}
func.func public @cbrt_f32() {
  %a0 = stablehlo.constant dense<[0.0, 8.0, -2.7e1, 1.0e-10, 2.0e30]> : tensor<5xf32>
  %r0 = "stablehlo.cbrt"(%a0) : (tensor<5xf32>) -> tensor<5xf32>
  %e0 = stablehlo.constant dense<[0.0, 2.0, -3.0, 4.641589e-4, 1.2599211e10]> : tensor<5xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<5xf32>, tensor<5xf32>) -> ()
  return
}
func.func public @sinh_f32() {
  %a0 = stablehlo.constant dense<[1.0e-9, -4.0e-1, 3.0, 8.5e1]> : tensor<4xf32>
  %r0 = "chlo.sinh"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = stablehlo.constant dense<[1.0e-9, -4.1075233e-1, 1.0017875e1, 4.1115065e36]> : tensor<4xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}
func.func public @sine_f64() {
  %a0 = stablehlo.constant dense<[1.0e-20, 5.0e-1, -2.0, -3.141592653589793, 7.1e2, 1.0e22, 6.381956970095103e15, 1.0e300]> : tensor<8xf64>
  %r0 = "stablehlo.sine"(%a0) : (tensor<8xf64>) -> tensor<8xf64>
  %e0 = stablehlo.constant dense<[1.0e-20, 4.79425538604203e-1, -9.092974268256817e-1, -1.2246467991473532e-16, 6.0288706691585265e-5, -8.522008497671888e-1, -5.818037467964668e-1, -8.178819121159085e-1]> : tensor<8xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<8xf64>, tensor<8xf64>) -> ()
  return
}
func.func public @cosine_f64() {
  %a0 = stablehlo.constant dense<[1.0e-20, 5.0e-1, -2.0, -3.141592653589793, 7.1e2, 1.0e22, 6.381956970095103e15, 1.0e300]> : tensor<8xf64>
  %r0 = "stablehlo.cosine"(%a0) : (tensor<8xf64>) -> tensor<8xf64>
  %e0 = stablehlo.constant dense<[1.0, 8.775825618903728e-1, -4.161468365471424e-1, -1.0, 9.99999998182636e-1, 5.23214785395139e-1, 8.13329207771117e-1, -5.753861119575491e-1]> : tensor<8xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<8xf64>, tensor<8xf64>) -> ()
  return
}
func.func public @tan_f64() {
  %a0 = stablehlo.constant dense<[1.0e-20, 5.0e-1, -2.0, -3.141592653589793, 7.1e2, 1.0e22, 6.381956970095103e15, 1.0e300]> : tensor<8xf64>
  %r0 = "stablehlo.tan"(%a0) : (tensor<8xf64>) -> tensor<8xf64>
  %e0 = stablehlo.constant dense<[1.0e-20, 5.463024898437905e-1, 2.185039863261519, 1.2246467991473532e-16, 6.0288706801151796e-5, -1.6287782256068988, -7.153361040492661e-1, 1.4214488238747245]> : tensor<8xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<8xf64>, tensor<8xf64>) -> ()
  return
}
func.func public @atan_f64() {
  %a0 = stablehlo.constant dense<[1.0e-10, -3.0e-1, 4.2e-1, 1.0, 2.4, 2.5, -1.0e10]> : tensor<7xf64>
  %r0 = "chlo.atan"(%a0) : (tensor<7xf64>) -> tensor<7xf64>
  %e0 = stablehlo.constant dense<[1.0e-10, -2.914567944778671e-1, 3.976279915221293e-1, 7.853981633974483e-1, 1.176005207095135, 1.1902899496825317, -1.5707963266948965]> : tensor<7xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<7xf64>, tensor<7xf64>) -> ()
  return
}
func.func public @asin_f64() {
  %a0 = stablehlo.constant dense<[1.0e-9, -5.0e-1, 9.9e-1, 1.0]> : tensor<4xf64>
  %r0 = "chlo.asin"(%a0) : (tensor<4xf64>) -> tensor<4xf64>
  %e0 = stablehlo.constant dense<[1.0e-9, -5.235987755982989e-1, 1.4292568534704693, 1.5707963267948966]> : tensor<4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return
}
func.func public @atan2_f64() {
  %a0 = stablehlo.constant dense<[1.0, -1.0, 1.0e-20, -3.0, 2.0, 5.0]> : tensor<6xf64>
  %a1 = stablehlo.constant dense<[-1.0, -2.0, 1.0e10, 0.0, -1.0e-10, 3.0]> : tensor<6xf64>
  %r0 = "stablehlo.atan2"(%a0, %a1) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
  %e0 = stablehlo.constant dense<[2.356194490192345, -2.677945044588987, 9.999999999999999e-31, -1.5707963267948966, 1.5707963268448966, 1.0303768265243125]> : tensor<6xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<6xf64>, tensor<6xf64>) -> ()
  return
}
func.func public @cbrt_f64() {
  %a0 = stablehlo.constant dense<[0.0, 8.0, -2.7e1, 1.0e-10, 2.0e30]> : tensor<5xf64>
  %r0 = "stablehlo.cbrt"(%a0) : (tensor<5xf64>) -> tensor<5xf64>
  %e0 = stablehlo.constant dense<[0.0, 2.0, -3.0, 4.641588833612779e-4, 1.2599210498948732e10]> : tensor<5xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<5xf64>, tensor<5xf64>) -> ()
  return
}
func.func public @acos_f64() {
  %a0 = stablehlo.constant dense<[1.0e-9, -5.0e-1, 9.9e-1, -1.0]> : tensor<4xf64>
  %r0 = "chlo.acos"(%a0) : (tensor<4xf64>) -> tensor<4xf64>
  %e0 = stablehlo.constant dense<[1.5707963257948967, 2.0943951023931957, 1.415394733244273e-1, 3.141592653589793]> : tensor<4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return
}
func.func public @cosh_f64() {
  %a0 = stablehlo.constant dense<[1.0e-9, -4.0e-1, 3.0, -8.5e1]> : tensor<4xf64>
  %r0 = "chlo.cosh"(%a0) : (tensor<4xf64>) -> tensor<4xf64>
  %e0 = stablehlo.constant dense<[1.0, 1.0810723718384547, 1.0067661995777765e1, 4.1115063573114566e36]> : tensor<4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return
}
func.func public @sinh_f64() {
  %a0 = stablehlo.constant dense<[1.0e-9, -4.0e-1, 3.0, 8.5e1]> : tensor<4xf64>
  %r0 = "chlo.sinh"(%a0) : (tensor<4xf64>) -> tensor<4xf64>
  %e0 = stablehlo.constant dense<[1.0e-9, -4.107523258028155e-1, 1.0017874927409903e1, 4.1115063573114566e36]> : tensor<4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return
}
func.func public @tanh_f64() {
  %a0 = stablehlo.constant dense<[1.0e-12, 1.0e-1, -7.0e-1, 3.0, 4.0e1]> : tensor<5xf64>
  %r0 = "stablehlo.tanh"(%a0) : (tensor<5xf64>) -> tensor<5xf64>
  %e0 = stablehlo.constant dense<[1.0e-12, 9.966799462495582e-2, -6.043677771171635e-1, 9.950547536867305e-1, 1.0]> : tensor<5xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<5xf64>, tensor<5xf64>) -> ()
  return
}
func.func public @expm1_f64() {
  %a0 = stablehlo.constant dense<[1.0e-15, -3.0e-1, 6.9e-1, -5.0e1, 3.0e2]> : tensor<5xf64>
  %r0 = "stablehlo.exponential_minus_one"(%a0) : (tensor<5xf64>) -> tensor<5xf64>
  %e0 = stablehlo.constant dense<[1.0000000000000007e-15, -2.591817793182821e-1, 9.937155332430823e-1, -1.0, 1.9424263952412558e130]> : tensor<5xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<5xf64>, tensor<5xf64>) -> ()
  return
}
func.func public @log1p_f64() {
  %a0 = stablehlo.constant dense<[1.0e-15, -3.0e-1, 6.9e-1, 1.0e10, 1.0e300]> : tensor<5xf64>
  %r0 = "stablehlo.log_plus_one"(%a0) : (tensor<5xf64>) -> tensor<5xf64>
  %e0 = stablehlo.constant dense<[9.999999999999995e-16, -3.5667494393873234e-1, 5.247285289349821e-1, 2.3025850930040455e1, 6.907755278982137e2]> : tensor<5xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<5xf64>, tensor<5xf64>) -> ()
  return
}
func.func public @remainder_f64() {
  %a0 = stablehlo.constant dense<[5.3, -5.3, 1.0e300, -7.0e15, 3.0]> : tensor<5xf64>
  %a1 = stablehlo.constant dense<[2.0, 2.0, 3.7, -1.0e-1, 7.0]> : tensor<5xf64>
  %r0 = "stablehlo.remainder"(%a0, %a1) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %e0 = stablehlo.constant dense<[1.2999999999999998, -1.2999999999999998, 1.765761626199355, -1.1421941381195233e-2, 3.0]> : tensor<5xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<5xf64>, tensor<5xf64>) -> ()
  return
}
func.func public @lgamma_f64() {
  %a0 = stablehlo.constant dense<[1.0e-1, 3.7, -2.5, 3.0e1]> : tensor<4xf64>
  %r0 = "chlo.lgamma"(%a0) : (tensor<4xf64>) -> tensor<4xf64>
  %e0 = stablehlo.constant dense<[2.252712651734206, 1.428072326665388, -5.6243716497674054e-2, 7.125703896716801e1]> : tensor<4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return
}
func.func public @digamma_f64() {
  %a0 = stablehlo.constant dense<[1.0e-1, 3.7, -2.5, 3.0e1]> : tensor<4xf64>
  %r0 = "chlo.digamma"(%a0) : (tensor<4xf64>) -> tensor<4xf64>
  %e0 = stablehlo.constant dense<[-1.0423754940411076e1, 1.1671535393615113, 1.103156640645243, 3.384438132685525]> : tensor<4xf64>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return
}
