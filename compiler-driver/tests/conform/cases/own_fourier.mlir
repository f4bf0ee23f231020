// Transforms of sizes that are no power of two, and of several dimensions, with the values of NumPy.
// ----- own/fourier
func.func public @of_3_by_5() {
  %a0 = stablehlo.constant dense<[[(2.24, 9.7e-1), (-8.3e-1, 1.9e-1), (-6.2e-1, 9.0e-2), (2.1e-1, -5.9e-1), (4.9e-1, -1.2e-1)], [(-1.8e-1, -2.0), (-2.1e-1, -1.13), (7.0e-1, 3.6e-1), (5.2e-1, -2.13), (-1.03, 8.5e-1)], [(-8.0e-2, -1.75), (4.0e-2, 7.6e-1), (-1.05, -8.5e-1), (2.6e-1, 7.8e-1), (-8.6e-1, 1.3e-1)]]> : tensor<3x5xcomplex<f32>>
  %r0 = stablehlo.fft %a0, type = FFT, length = [3, 5] : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
  %e0 = stablehlo.constant dense<[[(-3.9999995e-1, -4.44), (1.1382694, 9.486791e-2), (1.8518972, -6.152416), (6.003745, -1.9540465), (1.3060883, -1.448405)], [(-2.6699924e-1, 1.7396224), (4.1414723, 6.321392), (3.376074, 8.170657), (1.577747e-1, -3.3319864), (3.3591464, 1.7583281)], [(5.136999, 4.320378), (4.2037163, 3.001928), (5.4362017e-1, 2.1783935e-1), (2.3971016, 7.603115), (6.510945e-1, -1.3512731)]]> : tensor<3x5xcomplex<f32>>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<3x5xcomplex<f32>>, tensor<3x5xcomplex<f32>>) -> ()
  return
}
func.func public @real_of_2_by_3_by_4() {
  %a0 = stablehlo.constant dense<[[[-1.54, 1.25, 1.44, -7.0e-2], [-2.7e-1, -1.6e-1, -9.8e-1, 1.1], [-5.4e-1, -5.0e-2, -7.9e-1, -6.3e-1]], [[-1.28, 1.26, -1.5e-1, 9.7e-1], [1.0e-2, -6.9e-1, -3.3e-1, -5.6e-1], [1.0e-2, -3.8e-1, -3.0e-1, -1.38]]]> : tensor<2x3x4xf32>
  %r0 = stablehlo.fft %a0, type = RFFT, length = [2, 3, 4] : (tensor<2x3x4xf32>) -> tensor<2x3x3xcomplex<f32>>
  %e0 = stablehlo.constant dense<[[[(-4.06, 0.0), (-2.5, -1.8), (-5.38, 0.0)], [(4.8500004, -1.8879354), (-2.3429046, -1.9393524), (-4.72, 1.8013328)], [(4.8500004, 1.8879354), (-7.4870954, -1.0906475), (-4.72, -1.8013328)]], [[(1.58, 0.0), (-1.5400001, 5.2e-1), (-2.86, 0.0)], [(-3.6999995e-1, -1.056551), (-1.3901219, -2.177391), (5.0, 8.6602545e-1)], [(-3.6999995e-1, 1.056551), (-2.619878, -1.4326091), (5.0, -8.6602545e-1)]]]> : tensor<2x3x3xcomplex<f32>>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x3x3xcomplex<f32>>, tensor<2x3x3xcomplex<f32>>) -> ()
  return
}
func.func public @inverse_real_of_7() {
  %a0 = stablehlo.constant dense<[[(-8.1e-1, -6.3e-1), (1.65, -1.76), (-6.7e-1, 7.3e-1), (-1.05, -2.0e-2)], [(3.4e-1, 7.0e-2), (1.41, -7.5e-1), (-1.45, 4.5e-1), (-2.1e-1, -5.4e-1)]]> : tensor<2x4xcomplex<f32>>
  %r0 = stablehlo.fft %a0, type = IRFFT, length = [7] : (tensor<2x4xcomplex<f32>>) -> tensor<2x7xf32>
  %e0 = stablehlo.constant dense<[[-1.3571428e-1, 6.833909e-1, 3.4108484e-1, -2.0623396e-1, -9.798745e-1, -8.114704e-1, 2.9881737e-1], [-2.2857163e-2, 5.551236e-1, 4.3884918e-1, -2.1542825e-1, -9.032557e-1, 1.507037e-1, 3.3686462e-1]]> : tensor<2x7xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<2x7xf32>, tensor<2x7xf32>) -> ()
  return
}
func.func public @inverse_real_of_4_by_6() {
  %a0 = stablehlo.constant dense<[[(-1.4e-1, -5.6e-1), (-1.11, -1.38), (-1.22, 9.5e-1), (1.34, 9.7e-1)], [(-5.1e-1, -1.4e-1), (2.9e-1, 5.4e-1), (-3.0e-2, 7.8e-1), (-4.4e-1, 8.3e-1)], [(-5.1e-1, 9.2e-1), (6.3e-1, -4.6e-1), (-3.0e-1, 1.51), (-1.5e-1, -1.25)], [(2.0e-2, 8.6e-1), (1.18, 4.9e-1), (6.8e-1, 8.7e-1), (3.8e-1, 1.88)]]> : tensor<4x4xcomplex<f32>>
  %r0 = stablehlo.fft %a0, type = IRFFT, length = [4, 6] : (tensor<4x4xcomplex<f32>>) -> tensor<4x6xf32>
  %e0 = stablehlo.constant dense<[[9.583326e-3, -2.5524032e-1, 3.4965375e-1, -2.4958333e-1, -3.6048707e-1, 2.2107364e-1], [-5.5416666e-2, 1.3352984e-1, 3.1105447e-1, 3.125e-2, 2.331122e-1, -3.1102985e-1], [-2.9791668e-1, 9.908436e-2, 4.8266447e-1, -7.708334e-2, -4.8497792e-2, -1.9825102e-1], [-2.3291667e-1, -8.157692e-2, 1.17573716e-1, 1.20833265e-2, 9.159295e-2, -6.4256415e-2]]> : tensor<4x6xf32>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
  return
}
func.func public @of_131() {
  %c = stablehlo.constant dense<[3]> : tensor<1xi32>
  %s = stablehlo.reshape %c : (tensor<1xi32>) -> tensor<i32>
  %at = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> tensor<131xi32>
  %i = stablehlo.iota dim = 0 : tensor<131xi32>
  %hit = stablehlo.compare EQ, %i, %at : (tensor<131xi32>, tensor<131xi32>) -> tensor<131xi1>
  %x = stablehlo.convert %hit : (tensor<131xi1>) -> tensor<131xf32>
  %z = stablehlo.subtract %x, %x : tensor<131xf32>
  %w = stablehlo.complex %x, %z : tensor<131xcomplex<f32>>
  %f = stablehlo.fft %w, type = FFT, length = [131] : (tensor<131xcomplex<f32>>) -> tensor<131xcomplex<f32>>
  %r0 = stablehlo.slice %f [0:131:20] : (tensor<131xcomplex<f32>>) -> tensor<7xcomplex<f32>>
  %e0 = stablehlo.constant dense<[(1.0, 0.0), (-9.6540666e-1, -2.607489e-1), (8.6402005e-1, 5.034574e-1), (-7.028547e-1, -7.1133345e-1), (4.930612e-1, 8.6999464e-1), (-2.4915442e-1, -9.684638e-1), (-1.1990524e-2, 9.999281e-1)]> : tensor<7xcomplex<f32>>
  stablehlo.custom_call @check.expect_close(%r0, %e0) {has_side_effect = true} : (tensor<7xcomplex<f32>>, tensor<7xcomplex<f32>>) -> ()
  return
}
