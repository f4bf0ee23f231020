// JAX's tests, exported.
// Tests of openxla/stablehlo (stablehlo/testdata), Apache License 2.0 with LLVM exceptions.
// Each follows a line with its name.
// ----- testdata/abs_int8_20_20
module @jit_main {
  func.func public @main() -> (tensor<20x20xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<20x20xi8>
    %1 = call @expected() : () -> tensor<20x20xi8>
    %2 = stablehlo.abs %0 : tensor<20x20xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<20x20xi8>, tensor<20x20xi8>) -> ()
    return %2 : tensor<20x20xi8>
  }
  func.func private @inputs() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x030001FCFDFF04FE0400FC0203FFFE04000105FF02FCFE0101FC0201FFFDFDFC0002FA0000FB00FEFDFA02FF0000000000010100FB0000FD01FEFFFC0105FE000201FF00050001030000030200FF00FC050402FD05FC0001FB02FF0103FF00FF04000002FAFEFE00FE0107010104FE01FDFB0103FE00000100000003FD0301FF00FE01FDFEFD00000100FD0001FFFD00FBFE03FD0302FF000201FA00FE04FFFEFE0100010104FF0101FD00FEFD000400FD01FF00FFFF00040001FE030003FF0003FFFDFFFE0003FBFE00FC03FC00FC0106FD00FBFFFEFF0001FE0201FF060102000200000000FEF5FF00030407FE0000FFFDFE01FFFE010302010004FE000401FFFC00FB000101FE01020207010000000102FC000000FE030504000105FD00FE02F90202FF02FEFFFBFF0000FF0006FFFFFC0202FC01FE00FD020001FF0005FBFFFF0000FCFB030600020302FFFA000200FFFF03FF02000103FE0001FCFD00FD00FF000200000200FEFF0202FF020000FFFEFFFF050500FE00FEFF0104FEFDFD000407FD02FF030000000000F900FE00"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
  func.func private @expected() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x0300010403010402040004020301020400010501020402010104020101030304000206000005000203060201000000000001010005000003010201040105020002010100050001030000030200010004050402030504000105020101030100010400000206020200020107010104020103050103020000010000000303030101000201030203000001000300010103000502030303020100020106000204010202010001010401010103000203000400030101000101000400010203000301000301030102000305020004030400040106030005010201000102020101060102000200000000020B010003040702000001030201010201030201000402000401010400050001010201020207010000000102040000000203050400010503000202070202010202010501000001000601010402020401020003020001010005050101000004050306000203020106000200010103010200010302000104030003000100020000020002010202010200000102010105050002000201010402030300040703020103000000000007000200"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
}
// ----- testdata/add_any_complex64_2_complex64_2
module @jit_main {
  func.func public @main() -> (tensor<2xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>)
    %1 = call @expected() : () -> tensor<2xcomplex<f32>>
    %2 = stablehlo.add %0#0, %0#1 : tensor<2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> ()
    return %2 : tensor<2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-0.992783546,-0.340118021), (-2.07474065,-1.85044086)]> : tensor<2xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[(-1.89556551,0.111282185), (-1.76712668,-0.406201214)]> : tensor<2xcomplex<f32>>
    return %cst, %cst_0 : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-2.88834906,-0.228835836), (-3.84186745,-2.2566421)]> : tensor<2xcomplex<f32>>
    return %cst : tensor<2xcomplex<f32>>
  }
}
// ----- testdata/argmax_float32_1
module @jit_main {
  func.func public @main() -> (tensor<i32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<1xf32>
    %1 = call @expected() : () -> tensor<i32>
    %2 = call @argmax(%0) : (tensor<1xf32>) -> tensor<i32>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<i32>, tensor<i32>) -> ()
    return %2 : tensor<i32>
  }
  func.func private @inputs() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
  func.func private @expected() -> (tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c : tensor<i32>
  }
  func.func private @argmax(%arg0: tensor<1xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<1xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<1xf32>, tensor<1xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare  GT, %arg1, %arg3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare  NE, %arg1, %arg1,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare  EQ, %arg1, %arg3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare  LT, %arg2, %arg4,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<i32>
  }
}
// ----- testdata/argmin_float32_1
module @jit_main {
  func.func public @main() -> (tensor<i32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<1xf32>
    %1 = call @expected() : () -> tensor<i32>
    %2 = call @argmin(%0) : (tensor<1xf32>) -> tensor<i32>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<i32>, tensor<i32>) -> ()
    return %2 : tensor<i32>
  }
  func.func private @inputs() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
  func.func private @expected() -> (tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c : tensor<i32>
  }
  func.func private @argmin(%arg0: tensor<1xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<1xi32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<1xf32>, tensor<1xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare  LT, %arg1, %arg3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare  NE, %arg1, %arg1,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare  EQ, %arg1, %arg3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare  LT, %arg2, %arg4,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<i32>
  }
}
// ----- testdata/bitcast_convert_type_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<2x3xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<2x3xcomplex<f32>>
    %2 = stablehlo.bitcast_convert %0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) -> ()
    return %2 : tensor<2x3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-2.9432714,-0.240944356), (-1.87811852,2.883020e+00), (2.98283267,-1.20440769)], [(-3.73439598,-0.442267925), (-4.78169394,1.74811637), (-1.23555768,-4.14041948)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-2.9432714,-0.240944356), (-1.87811852,2.883020e+00), (2.98283267,-1.20440769)], [(-3.73439598,-0.442267925), (-4.78169394,1.74811637), (-1.23555768,-4.14041948)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
}
// ----- testdata/broadcast_in_dim_complex64_2
module @jit_main {
  func.func public @main() -> (tensor<2xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2xcomplex<f32>>
    %1 = call @expected() : () -> tensor<2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%0, %1) {has_side_effect = true} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> ()
    return %0 : tensor<2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-1.8468895,0.316099197), (4.64661932,-2.96641493)]> : tensor<2xcomplex<f32>>
    return %cst : tensor<2xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-1.8468895,0.316099197), (4.64661932,-2.96641493)]> : tensor<2xcomplex<f32>>
    return %cst : tensor<2xcomplex<f32>>
  }
}
// ----- testdata/clamp_float32_2_3_float32_2_3_float32
module @jit_main {
  func.func public @main() -> (tensor<2x3xf32> {jax.result_info = ""}) {
    %0:3 = call @inputs() : () -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<2x3xf32>
    %2 = stablehlo.broadcast_in_dim %0#2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.clamp %0#0, %0#1, %2 : tensor<2x3xf32>
    stablehlo.custom_call @check.expect_close(%3, %1) {has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
    return %3 : tensor<2x3xf32>
  }
  func.func private @inputs() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<[[2.54880118, 2.385993, 3.78426337], [-5.33662415, 2.95944452, -5.00530338]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[0.480827123, -6.6830244, 0.745620071], [0.523653448, 1.05318642, 1.48929167]]> : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<0.504019737> : tensor<f32>
    return %cst, %cst_0, %cst_1 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>
  }
  func.func private @expected() -> (tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<0.504019737> : tensor<2x3xf32>
    return %cst : tensor<2x3xf32>
  }
}
// ----- testdata/complex_float32_3_2_float32_3_1
module @jit_main {
  func.func public @main() -> (tensor<3x2xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<3x2xf32>, tensor<3x1xf32>)
    %1 = call @expected() : () -> tensor<3x2xcomplex<f32>>
    %2 = stablehlo.broadcast_in_dim %0#1, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x2xf32>
    %3 = stablehlo.complex %0#0, %2 : tensor<3x2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%3, %1) {has_side_effect = true} : (tensor<3x2xcomplex<f32>>, tensor<3x2xcomplex<f32>>) -> ()
    return %3 : tensor<3x2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3x2xf32>, tensor<3x1xf32>) {
    %cst = stablehlo.constant dense<[[4.3779788, 0.256987363], [-1.94227421, -0.415562898], [-4.24635506, 0.812674164]]> : tensor<3x2xf32>
    %cst_0 = stablehlo.constant dense<[[-1.35233212], [-1.11680901], [-1.31206405]]> : tensor<3x1xf32>
    return %cst, %cst_0 : tensor<3x2xf32>, tensor<3x1xf32>
  }
  func.func private @expected() -> (tensor<3x2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(4.3779788,-1.35233212), (0.256987363,-1.35233212)], [(-1.94227421,-1.11680901), (-0.415562898,-1.11680901)], [(-4.24635506,-1.31206405), (0.812674164,-1.31206405)]]> : tensor<3x2xcomplex<f32>>
    return %cst : tensor<3x2xcomplex<f32>>
  }
}
// ----- testdata/concatenate_complex64_2_3_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<4x3xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>)
    %1 = call @expected() : () -> tensor<4x3xcomplex<f32>>
    %2 = stablehlo.concatenate %0#0, %0#1, dim = 0 : (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) -> tensor<4x3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<4x3xcomplex<f32>>, tensor<4x3xcomplex<f32>>) -> ()
    return %2 : tensor<4x3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.07382131,-2.67878866), (0.427812099,4.57176638), (5.087150e+00,-0.220292255)], [(1.57771051,2.09996724), (2.37849593,-3.05391335), (0.732661545,-5.76225805)]]> : tensor<2x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[(-1.83474767,2.32461143), (-0.989446878,-0.815832734), (5.39325857,2.16857696)], [(2.27715683,-0.268771797), (0.337234288,3.84130883), (-7.95383501,-0.700022578)]]> : tensor<2x3xcomplex<f32>>
    return %cst, %cst_0 : tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<4x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.07382131,-2.67878866), (0.427812099,4.57176638), (5.087150e+00,-0.220292255)], [(1.57771051,2.09996724), (2.37849593,-3.05391335), (0.732661545,-5.76225805)], [(-1.83474767,2.32461143), (-0.989446878,-0.815832734), (5.39325857,2.16857696)], [(2.27715683,-0.268771797), (0.337234288,3.84130883), (-7.95383501,-0.700022578)]]> : tensor<4x3xcomplex<f32>>
    return %cst : tensor<4x3xcomplex<f32>>
  }
}
// ----- testdata/conj_complex64_3_4
module @jit_main {
  func.func public @main() -> (tensor<3x4xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<3x4xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3x4xcomplex<f32>>
    %2 = stablehlo.real %0 : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
    %3 = stablehlo.imag %0 : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
    %4 = stablehlo.negate %3 : tensor<3x4xf32>
    %5 = stablehlo.complex %2, %4 : tensor<3x4xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%5, %1) {has_side_effect = true} : (tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>) -> ()
    return %5 : tensor<3x4xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3x4xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-3.92063093,0.947482943), (2.78115916,-2.56036592), (2.53200412,2.17843843), (0.609237313,-2.37602949)], [(-7.69268703,1.68608713), (5.67410326,-2.21368337), (1.93652391,-0.854346096), (-1.19848359,0.0837314874)], [(-0.950235664,-2.71151304), (-0.416245133,-1.51285613), (-1.48842835,0.668041825), (-5.31184292,-1.85015249)]]> : tensor<3x4xcomplex<f32>>
    return %cst : tensor<3x4xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3x4xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-3.92063093,-0.947482943), (2.78115916,2.56036592), (2.53200412,-2.17843843), (0.609237313,2.37602949)], [(-7.69268703,-1.68608713), (5.67410326,2.21368337), (1.93652391,0.854346096), (-1.19848359,-0.0837314874)], [(-0.950235664,2.71151304), (-0.416245133,1.51285613), (-1.48842835,-0.668041825), (-5.31184292,1.85015249)]]> : tensor<3x4xcomplex<f32>>
    return %cst : tensor<3x4xcomplex<f32>>
  }
}
// ----- testdata/conv_general_dilated_float32_1_1_16_1_float32_4_1_1_2
module @jit_main {
  func.func public @main() -> (tensor<1x1x16x2xf32> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<1x1x16x1xf32>, tensor<4x1x1x2xf32>)
    %1 = call @expected() : () -> tensor<1x1x16x2xf32>
    %2 = stablehlo.convolution(%0#0, %0#1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 2], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x16x1xf32>, tensor<4x1x1x2xf32>) -> tensor<1x1x16x2xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1x1x16x2xf32>, tensor<1x1x16x2xf32>) -> ()
    return %2 : tensor<1x1x16x2xf32>
  }
  func.func private @inputs() -> (tensor<1x1x16x1xf32>, tensor<4x1x1x2xf32>) {
    %cst = stablehlo.constant dense<[[[[0.249547243], [-3.84318519], [-1.0406214], [1.16896808], [-0.0966261476], [0.145545349], [-0.652937531], [4.2463026], [-1.61683857], [-2.21878624], [-6.34280634], [-1.90672576], [-4.64762354], [3.25072265], [-0.142132208], [-0.168175161]]]]> : tensor<1x1x16x1xf32>
    %cst_0 = stablehlo.constant dense<[[[[0.354699761, 0.679385543]]], [[[0.609961211, 0.152189493]]], [[[-2.194420e+00, -2.72838569]]], [[[-0.477422208, -1.72463417]]]]> : tensor<4x1x1x2xf32>
    return %cst, %cst_0 : tensor<1x1x16x1xf32>, tensor<4x1x1x2xf32>
  }
  func.func private @expected() -> (tensor<1x1x16x2xf32>) {
    %cst = stablehlo.constant dense<[[[[0.15221414, 0.0379784666], [-2.34419394, -0.584892392], [-0.634738684, -0.158371642], [0.713025212, 0.177904665], [-5.893820e-02, -0.0147054847], [0.0887770206, 0.0221504737], [-0.398266554, -0.0993702337], [2.59007978, 0.646242618], [-0.986208796, -0.24606584], [-1.35337353, -0.337675959], [-3.86886573, -0.965308487], [-1.16302872, -0.290183634], [-2.834870e+00, -0.707319498], [1.98281467, 0.494725823], [-0.0866951346, -0.0216310285], [-0.102580324, -0.0255944934]]]]> : tensor<1x1x16x2xf32>
    return %cst : tensor<1x1x16x2xf32>
  }
}
// ----- testdata/convert_element_type_bool_100_100
module @jit_main {
  func.func public @main() -> (tensor<100x100xui8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<100x100xi1>
    %1 = call @expected() : () -> tensor<100x100xui8>
    %2 = stablehlo.convert %0 : (tensor<100x100xi1>) -> tensor<100x100xui8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<100x100xui8>, tensor<100x100xui8>) -> ()
    return %2 : tensor<100x100xui8>
  }
  func.func private @inputs() -> (tensor<100x100xi1>) {
    %c = stablehlo.constant dense<true> : tensor<100x100xi1>
    return %c : tensor<100x100xi1>
  }
  func.func private @expected() -> (tensor<100x100xui8>) {
    %c = stablehlo.constant dense<1> : tensor<100x100xui8>
    return %c : tensor<100x100xui8>
  }
}
// ----- testdata/cummax_int8_8_9
module @jit_main {
  func.func public @main() -> (tensor<8x9xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<8x9xi8>
    %1 = call @expected() : () -> tensor<8x9xi8>
    %2 = call @cummax(%0) : (tensor<8x9xi8>) -> tensor<8x9xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<8x9xi8>, tensor<8x9xi8>) -> ()
    return %2 : tensor<8x9xi8>
  }
  func.func private @inputs() -> (tensor<8x9xi8>) {
    %c = stablehlo.constant dense<[[5, 0, 2, 4, 0, 4, 0, -2, 1], [0, 3, 0, 1, 4, -6, -2, -1, 4], [3, 0, -3, 1, 0, 0, 2, 7, -1], [0, -3, 1, -1, -4, -2, 1, 1, -9], [4, -1, 6, -1, 0, -1, -3, 0, -2], [5, -4, 3, 1, 0, 2, 0, 2, 2], [-1, 2, 0, 0, -1, -2, 1, -1, -5], [0, 0, -1, -4, 2, -2, 0, -4, 0]]> : tensor<8x9xi8>
    return %c : tensor<8x9xi8>
  }
  func.func private @expected() -> (tensor<8x9xi8>) {
    %c = stablehlo.constant dense<[[5, 0, 2, 4, 0, 4, 0, -2, 1], [5, 3, 2, 4, 4, 4, 0, -1, 4], [5, 3, 2, 4, 4, 4, 2, 7, 4], [5, 3, 2, 4, 4, 4, 2, 7, 4], [5, 3, 6, 4, 4, 4, 2, 7, 4], [5, 3, 6, 4, 4, 4, 2, 7, 4], [5, 3, 6, 4, 4, 4, 2, 7, 4], [5, 3, 6, 4, 4, 4, 2, 7, 4]]> : tensor<8x9xi8>
    return %c : tensor<8x9xi8>
  }
  func.func private @cummax(%arg0: tensor<8x9xi8>) -> tensor<8x9xi8> {
    %c = stablehlo.constant dense<-128> : tensor<i8>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> tensor<i8>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%arg1: tensor<i8>, %arg2: tensor<i8>):
      %2 = stablehlo.maximum %arg1, %arg2 : tensor<i8>
      stablehlo.return %2 : tensor<i8>
    }) : (tensor<8x9xi8>, tensor<i8>) -> tensor<8x9xi8>
    return %1 : tensor<8x9xi8>
  }
}
// ----- testdata/cummin_int8_8_9
module @jit_main {
  func.func public @main() -> (tensor<8x9xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<8x9xi8>
    %1 = call @expected() : () -> tensor<8x9xi8>
    %2 = call @cummin(%0) : (tensor<8x9xi8>) -> tensor<8x9xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<8x9xi8>, tensor<8x9xi8>) -> ()
    return %2 : tensor<8x9xi8>
  }
  func.func private @inputs() -> (tensor<8x9xi8>) {
    %c = stablehlo.constant dense<[[1, 3, -4, 2, -3, 0, 0, -7, 3], [-4, -2, 0, -3, 0, 2, -8, -1, -2], [-1, -1, 0, 2, 2, 0, -1, 0, 1], [2, 3, -1, -2, 5, 0, -4, 0, 0], [-3, -2, 3, 6, 5, 5, -3, -1, -2], [3, 0, 1, -3, 2, 0, -3, 5, 0], [4, 2, 2, -4, -3, 2, -2, 5, 1], [-5, -3, 2, 0, 1, 1, -3, -1, -2]]> : tensor<8x9xi8>
    return %c : tensor<8x9xi8>
  }
  func.func private @expected() -> (tensor<8x9xi8>) {
    %c = stablehlo.constant dense<[[1, 3, -4, 2, -3, 0, 0, -7, 3], [-4, -2, -4, -3, -3, 0, -8, -7, -2], [-4, -2, -4, -3, -3, 0, -8, -7, -2], [-4, -2, -4, -3, -3, 0, -8, -7, -2], [-4, -2, -4, -3, -3, 0, -8, -7, -2], [-4, -2, -4, -3, -3, 0, -8, -7, -2], [-4, -2, -4, -4, -3, 0, -8, -7, -2], [-5, -3, -4, -4, -3, 0, -8, -7, -2]]> : tensor<8x9xi8>
    return %c : tensor<8x9xi8>
  }
  func.func private @cummin(%arg0: tensor<8x9xi8>) -> tensor<8x9xi8> {
    %c = stablehlo.constant dense<127> : tensor<i8>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> tensor<i8>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%arg1: tensor<i8>, %arg2: tensor<i8>):
      %2 = stablehlo.minimum %arg1, %arg2 : tensor<i8>
      stablehlo.return %2 : tensor<i8>
    }) : (tensor<8x9xi8>, tensor<i8>) -> tensor<8x9xi8>
    return %1 : tensor<8x9xi8>
  }
}
// ----- testdata/cumprod_int8_8_9
module @jit_main {
  func.func public @main() -> (tensor<8x9xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<8x9xi8>
    %1 = call @expected() : () -> tensor<8x9xi8>
    %2 = call @cumprod(%0) : (tensor<8x9xi8>) -> tensor<8x9xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<8x9xi8>, tensor<8x9xi8>) -> ()
    return %2 : tensor<8x9xi8>
  }
  func.func private @inputs() -> (tensor<8x9xi8>) {
    %c = stablehlo.constant dense<[[4, -6, -1, 1, 1, 3, 2, -1, 3], [-3, -1, 1, 6, 1, -1, -2, 0, 0], [-2, 2, 2, 1, -5, 2, -2, -6, 2], [-6, 1, -2, -1, 0, 5, 5, 1, -3], [5, 0, 2, -3, 3, 1, 0, -1, -2], [1, 0, -3, 3, -1, -1, 0, -4, 7], [2, 0, -1, -4, 0, 0, 0, 0, -3], [-2, 0, -1, 3, 2, -2, 0, 0, 0]]> : tensor<8x9xi8>
    return %c : tensor<8x9xi8>
  }
  func.func private @expected() -> (tensor<8x9xi8>) {
    %c = stablehlo.constant dense<[[4, -6, -1, 1, 1, 3, 2, -1, 3], [-12, 6, -1, 6, 1, -3, -4, 0, 0], [24, 12, -2, 6, -5, -6, 8, 0, 0], [112, 12, 4, -6, 0, -30, 40, 0, 0], [48, 0, 8, 18, 0, -30, 0, 0, 0], [48, 0, -24, 54, 0, 30, 0, 0, 0], [96, 0, 24, 40, 0, 0, 0, 0, 0], [64, 0, -24, 120, 0, 0, 0, 0, 0]]> : tensor<8x9xi8>
    return %c : tensor<8x9xi8>
  }
  func.func private @cumprod(%arg0: tensor<8x9xi8>) -> tensor<8x9xi8> {
    %c = stablehlo.constant dense<1> : tensor<i8>
    %0 = "stablehlo.reduce_window"(%arg0, %c) <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%arg1: tensor<i8>, %arg2: tensor<i8>):
      %1 = stablehlo.multiply %arg1, %arg2 : tensor<i8>
      stablehlo.return %1 : tensor<i8>
    }) : (tensor<8x9xi8>, tensor<i8>) -> tensor<8x9xi8>
    return %0 : tensor<8x9xi8>
  }
}
// ----- testdata/cumsum_int16_8_9
module @jit_main {
  func.func public @main() -> (tensor<8x9xi16> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<8x9xi16>
    %1 = call @expected() : () -> tensor<8x9xi16>
    %2 = call @cumsum(%0) : (tensor<8x9xi16>) -> tensor<8x9xi16>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<8x9xi16>, tensor<8x9xi16>) -> ()
    return %2 : tensor<8x9xi16>
  }
  func.func private @inputs() -> (tensor<8x9xi16>) {
    %c = stablehlo.constant dense<[[0, 1, 2, 0, 0, 0, 0, 2, -3], [0, 2, -2, 0, 0, 2, -6, -2, 0], [-4, -2, -1, 6, 0, 1, 2, 3, 0], [-4, -3, 0, 1, 2, 2, 3, 4, 4], [-2, -2, 1, -3, -1, -1, 0, -1, -1], [0, 2, 0, 2, 5, 0, 2, 0, 2], [1, -1, 0, -3, 2, -4, 0, 4, 1], [0, 0, -2, 0, 1, 0, -2, 0, -4]]> : tensor<8x9xi16>
    return %c : tensor<8x9xi16>
  }
  func.func private @expected() -> (tensor<8x9xi16>) {
    %c = stablehlo.constant dense<[[0, 1, 2, 0, 0, 0, 0, 2, -3], [0, 3, 0, 0, 0, 2, -6, 0, -3], [-4, 1, -1, 6, 0, 3, -4, 3, -3], [-8, -2, -1, 7, 2, 5, -1, 7, 1], [-10, -4, 0, 4, 1, 4, -1, 6, 0], [-10, -2, 0, 6, 6, 4, 1, 6, 2], [-9, -3, 0, 3, 8, 0, 1, 10, 3], [-9, -3, -2, 3, 9, 0, -1, 10, -1]]> : tensor<8x9xi16>
    return %c : tensor<8x9xi16>
  }
  func.func private @cumsum(%arg0: tensor<8x9xi16>) -> tensor<8x9xi16> {
    %c = stablehlo.constant dense<0> : tensor<i16>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i16>) -> tensor<i16>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%arg1: tensor<i16>, %arg2: tensor<i16>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i16>
      stablehlo.return %2 : tensor<i16>
    }) : (tensor<8x9xi16>, tensor<i16>) -> tensor<8x9xi16>
    return %1 : tensor<8x9xi16>
  }
}
// ----- testdata/device_put_complex64_3_4
module @jit_main {
  func.func public @main() -> (tensor<3x4xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<3x4xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3x4xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%0, %1) {has_side_effect = true} : (tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>) -> ()
    return %0 : tensor<3x4xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3x4xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-2.31154037,2.16501498), (-0.62014389,-3.54022598), (6.43273115,-0.0746307299), (-1.64691806,-2.16097689)], [(-4.05629301,-1.24208844), (1.9414624,0.0947651639), (-0.0559204295,3.14833903), (4.0608716,0.622570335)], [(0.526463509,8.46901607), (-0.513401508,-1.28572524), (-1.92279816,-2.3590281), (3.56461072,-6.23003673)]]> : tensor<3x4xcomplex<f32>>
    return %cst : tensor<3x4xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3x4xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-2.31154037,2.16501498), (-0.62014389,-3.54022598), (6.43273115,-0.0746307299), (-1.64691806,-2.16097689)], [(-4.05629301,-1.24208844), (1.9414624,0.0947651639), (-0.0559204295,3.14833903), (4.0608716,0.622570335)], [(0.526463509,8.46901607), (-0.513401508,-1.28572524), (-1.92279816,-2.3590281), (3.56461072,-6.23003673)]]> : tensor<3x4xcomplex<f32>>
    return %cst : tensor<3x4xcomplex<f32>>
  }
}
// ----- testdata/div_complex64_2_complex64_2
module @jit_main {
  func.func public @main() -> (tensor<2xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>)
    %1 = call @expected() : () -> tensor<2xcomplex<f32>>
    %2 = stablehlo.divide %0#0, %0#1 : tensor<2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> ()
    return %2 : tensor<2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(4.82876539,1.14962423), (0.816298723,-3.73786092)]> : tensor<2xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[(-6.938800e-01,-4.50840855), (-1.38481331,3.32134724)]> : tensor<2xcomplex<f32>>
    return %cst, %cst_0 : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-0.410124958,1.00793612), (-1.04603434,0.190363556)]> : tensor<2xcomplex<f32>>
    return %cst : tensor<2xcomplex<f32>>
  }
}
// ----- testdata/dot_general_float16_4_3_float32_3_6
module @jit_main {
  func.func public @main() -> (tensor<4x6xf32> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<4x3xf16>, tensor<3x6xf32>)
    %1 = call @expected() : () -> tensor<4x6xf32>
    %2 = stablehlo.convert %0#0 : (tensor<4x3xf16>) -> tensor<4x3xf32>
    %3 = stablehlo.convert %0#1 : tensor<3x6xf32>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    stablehlo.custom_call @check.expect_close(%4, %1) {has_side_effect = true} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
    return %4 : tensor<4x6xf32>
  }
  func.func private @inputs() -> (tensor<4x3xf16>, tensor<3x6xf32>) {
    %cst = stablehlo.constant dense<[[6.289060e-01, -1.862300e+00, 4.878910e+00], [-1.801760e+00, -4.636230e-01, 2.792970e-01], [1.379880e+00, 5.246090e+00, -9.033200e-01], [-7.660150e+00, -2.015630e+00, -7.167960e-01]]> : tensor<4x3xf16>
    %cst_0 = stablehlo.constant dense<[[1.03904819, -0.390662134, 0.586938202, 0.189655736, -3.34397602, -1.60065711], [-1.24223864, -4.05648661, 4.49510813, 0.90029788, -1.29326081, 3.30721259], [-1.39605582, 1.74161911, 1.90680158, -0.809361219, 1.66872275, 0.672101855]]> : tensor<3x6xf32>
    return %cst, %cst_0 : tensor<4x3xf16>, tensor<3x6xf32>
  }
  func.func private @expected() -> (tensor<4x6xf32>) {
    %cst = stablehlo.constant dense<[[-3.8443346, 15.8059206, 1.30097473, -5.50615072, 8.446940e+00, -3.88657904], [-1.68609679, 3.07098794, -2.60899258, -0.985164582, 7.09068965, 1.53841257], [-3.822050e+00, -23.3930168, 22.6692123, 5.71586227, -12.9062538, 14.5341043], [-4.4546957, 9.9205017, -14.9232807, -2.68730783, 27.0259743, 5.11342287]]> : tensor<4x6xf32>
    return %cst : tensor<4x6xf32>
  }
}
// ----- testdata/dynamic/vmap_abs_int64_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi64> {mhlo.sharding = ""}) -> tensor<?x20x20xi64> {
    %0 = stablehlo.abs %arg1 : tensor<?x20x20xi64>
    return %0 : tensor<?x20x20xi64>
  }
}
// ----- testdata/dynamic/vmap_add_any_lhs_uint64_2_rhs_uint64_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xui64> {mhlo.sharding = ""}, %arg2: tensor<?x2xui64> {mhlo.sharding = ""}) -> tensor<?x2xui64> {
    %0 = stablehlo.add %arg1, %arg2 : tensor<?x2xui64>
    return %0 : tensor<?x2xui64>
  }
}
// ----- testdata/dynamic/vmap_add_broadcasting_lhs_float32_20_20_rhs_float32_1_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x1x20xf32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %6 = stablehlo.add %arg1, %5 : tensor<?x20x20xf32>
    return %6 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/add_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}, %arg2: tensor<2x?x4xf32> {mhlo.sharding = ""}) -> tensor<2x?x4xf32> {
    %0 = stablehlo.constant dense<1> : tensor<1xi32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<4> : tensor<1xi32>
    %4 = stablehlo.concatenate %0, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [1, 2] : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<1x?x4xf32>
    %6 = stablehlo.constant dense<2> : tensor<1xi32>
    %7 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.constant dense<4> : tensor<1xi32>
    %10 = stablehlo.concatenate %6, %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %5, %10, dims = [0, 1, 2] : (tensor<1x?x4xf32>, tensor<3xi32>) -> tensor<2x?x4xf32>
    %12 = stablehlo.add %11, %arg2 : tensor<2x?x4xf32>
    return %12 : tensor<2x?x4xf32>
  }
}
// ----- testdata/dynamic/vmap_add_lhs_float32_20_20_rhs_float32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.add %arg1, %arg2 : tensor<?x20x20xf32>
    return %0 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/add_transpose_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    %0 = stablehlo.cosine %arg1 : tensor<?x4xf32>
    %1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
    %7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%6 init: %7) across dimensions = [0] : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %19 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %19 : tensor<f32>
    }
    %9 = stablehlo.reshape %8 : (tensor<4xf32>) -> tensor<1x4xf32>
    %10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%9 init: %10) across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %19 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %19 : tensor<f32>
    }
    %12 = stablehlo.multiply %6, %0 : tensor<?x4xf32>
    %13 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %14 = stablehlo.reshape %13 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.constant dense<4> : tensor<1xi32>
    %16 = stablehlo.concatenate %14, %15, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %17 = stablehlo.dynamic_broadcast_in_dim %11, %16, dims = [1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    %18 = stablehlo.add %12, %17 : tensor<?x4xf32>
    return %18 : tensor<?x4xf32>
  }
}
// ----- testdata/dynamic/vmap_and_broadcasting_lhs_int32_20_20_rhs_int32_1_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi32> {mhlo.sharding = ""}, %arg2: tensor<?x1x20xi32> {mhlo.sharding = ""}) -> tensor<?x20x20xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x1x20xi32>, tensor<3xi32>) -> tensor<?x20x20xi32>
    %6 = stablehlo.and %arg1, %5 : tensor<?x20x20xi32>
    return %6 : tensor<?x20x20xi32>
  }
}
// ----- testdata/dynamic/vmap_and_lhs_int32_20_20_rhs_int32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xi32> {mhlo.sharding = ""}) -> tensor<?x20x20xi32> {
    %0 = stablehlo.and %arg1, %arg2 : tensor<?x20x20xi32>
    return %0 : tensor<?x20x20xi32>
  }
}
// ----- testdata/dynamic/arange_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xf32> {
    %0 = stablehlo.constant dense<2> : tensor<i64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<i64>
    %2 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %5 = stablehlo.constant dense<0> : tensor<i64>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %7 = "stablehlo.gather"(%arg1, %6) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, indices_are_sorted = true, slice_sizes = array<i64: 1>} : (tensor<?xf32>, tensor<1xi64>) -> tensor<f32>
    %8 = stablehlo.constant dense<2> : tensor<i64>
    %9 = stablehlo.multiply %arg0, %8 : tensor<i64>
    %10 = stablehlo.convert %9 : (tensor<i64>) -> tensor<i32>
    %11 = stablehlo.reshape %10 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.dynamic_broadcast_in_dim %7, %11, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %13 = stablehlo.add %4, %12 : tensor<?xf32>
    return %13 : tensor<?xf32>
  }
}
// ----- testdata/dynamic/argmax_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32> {mhlo.sharding = ""}) -> tensor<4x5xi32> {
    %0 = call @argmax(%arg0, %arg1) : (tensor<i64>, tensor<?x4x5xf32>) -> tensor<4x5xi32>
    return %0 : tensor<4x5xi32>
  }
  func.func private @argmax(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32>) -> tensor<4x5xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<4> : tensor<1xi32>
    %3 = stablehlo.constant dense<5> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 0 : (tensor<3xi32>) -> tensor<?x4x5xi32>
    %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.constant dense<0> : tensor<i32>
    %8:2 = stablehlo.reduce(%arg1 init: %6), (%5 init: %7) across dimensions = [0] : (tensor<?x4x5xf32>, tensor<?x4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x5xf32>, tensor<4x5xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %9 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %11 = stablehlo.or %9, %10 : tensor<i1>
      %12 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = stablehlo.and %12, %13 : tensor<i1>
      %15 = stablehlo.or %11, %14 : tensor<i1>
      %16 = stablehlo.select %11, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %17 = stablehlo.select %15, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %16, %17 : tensor<f32>, tensor<i32>
    }
    return %8#1 : tensor<4x5xi32>
  }
}
// ----- testdata/dynamic/argmax_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x5xi32> {
    %0 = call @argmax(%arg0, %arg1) : (tensor<i64>, tensor<?x4x5xf32>) -> tensor<?x5xi32>
    return %0 : tensor<?x5xi32>
  }
  func.func private @argmax(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32>) -> tensor<?x5xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<4> : tensor<1xi32>
    %3 = stablehlo.constant dense<5> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 1 : (tensor<3xi32>) -> tensor<?x4x5xi32>
    %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.constant dense<0> : tensor<i32>
    %8:2 = stablehlo.reduce(%arg1 init: %6), (%5 init: %7) across dimensions = [1] : (tensor<?x4x5xf32>, tensor<?x4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<?x5xf32>, tensor<?x5xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %9 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %11 = stablehlo.or %9, %10 : tensor<i1>
      %12 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = stablehlo.and %12, %13 : tensor<i1>
      %15 = stablehlo.or %11, %14 : tensor<i1>
      %16 = stablehlo.select %11, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %17 = stablehlo.select %15, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %16, %17 : tensor<f32>, tensor<i32>
    }
    return %8#1 : tensor<?x5xi32>
  }
}
// ----- testdata/dynamic/vmap_argmax_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x18x12xf32> {mhlo.sharding = ""}) -> tensor<?x18xi32> {
    %0 = call @argmax(%arg0, %arg1) : (tensor<i64>, tensor<?x18x12xf32>) -> tensor<?x18xi32>
    return %0 : tensor<?x18xi32>
  }
  func.func private @argmax(%arg0: tensor<i64>, %arg1: tensor<?x18x12xf32>) -> tensor<?x18xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<18> : tensor<1xi32>
    %3 = stablehlo.constant dense<12> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 2 : (tensor<3xi32>) -> tensor<?x18x12xi32>
    %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.constant dense<0> : tensor<i32>
    %8:2 = stablehlo.reduce(%arg1 init: %6), (%5 init: %7) across dimensions = [2] : (tensor<?x18x12xf32>, tensor<?x18x12xi32>, tensor<f32>, tensor<i32>) -> (tensor<?x18xf32>, tensor<?x18xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %9 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %11 = stablehlo.or %9, %10 : tensor<i1>
      %12 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = stablehlo.and %12, %13 : tensor<i1>
      %15 = stablehlo.or %11, %14 : tensor<i1>
      %16 = stablehlo.select %11, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %17 = stablehlo.select %15, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %16, %17 : tensor<f32>, tensor<i32>
    }
    return %8#1 : tensor<?x18xi32>
  }
}
// ----- testdata/dynamic/vmap_argmax_float32_15_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x15xf32> {mhlo.sharding = ""}) -> tensor<?xi32> {
    %0 = call @argmax(%arg0, %arg1) : (tensor<i64>, tensor<?x15xf32>) -> tensor<?xi32>
    return %0 : tensor<?xi32>
  }
  func.func private @argmax(%arg0: tensor<i64>, %arg1: tensor<?x15xf32>) -> tensor<?xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<15> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 1 : (tensor<2xi32>) -> tensor<?x15xi32>
    %5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7:2 = stablehlo.reduce(%arg1 init: %5), (%4 init: %6) across dimensions = [1] : (tensor<?x15xf32>, tensor<?x15xi32>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %8 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.or %8, %9 : tensor<i1>
      %11 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %13 = stablehlo.and %11, %12 : tensor<i1>
      %14 = stablehlo.or %10, %13 : tensor<i1>
      %15 = stablehlo.select %10, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %15, %16 : tensor<f32>, tensor<i32>
    }
    return %7#1 : tensor<?xi32>
  }
}
// ----- testdata/dynamic/vmap_argmax_index_dtype_float32_15_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x15xf32> {mhlo.sharding = ""}) -> tensor<?xui8> {
    %0 = call @argmax(%arg0, %arg1) : (tensor<i64>, tensor<?x15xf32>) -> tensor<?xui8>
    return %0 : tensor<?xui8>
  }
  func.func private @argmax(%arg0: tensor<i64>, %arg1: tensor<?x15xf32>) -> tensor<?xui8> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<15> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 1 : (tensor<2xi32>) -> tensor<?x15xui8>
    %5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %6 = stablehlo.constant dense<0> : tensor<ui8>
    %7:2 = stablehlo.reduce(%arg1 init: %5), (%4 init: %6) across dimensions = [1] : (tensor<?x15xf32>, tensor<?x15xui8>, tensor<f32>, tensor<ui8>) -> (tensor<?xf32>, tensor<?xui8>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<ui8>, %arg5: tensor<ui8>)  {
      %8 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.or %8, %9 : tensor<i1>
      %11 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.compare  LT, %arg3, %arg5,  UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      %13 = stablehlo.and %11, %12 : tensor<i1>
      %14 = stablehlo.or %10, %13 : tensor<i1>
      %15 = stablehlo.select %10, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg3, %arg5 : tensor<i1>, tensor<ui8>
      stablehlo.return %15, %16 : tensor<f32>, tensor<ui8>
    }
    return %7#1 : tensor<?xui8>
  }
}
// ----- testdata/dynamic/vmap_argmax_special_nan_0_float32_6_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x6xf32> {mhlo.sharding = ""}) -> tensor<?xi32> {
    %0 = call @argmax(%arg0, %arg1) : (tensor<i64>, tensor<?x6xf32>) -> tensor<?xi32>
    return %0 : tensor<?xi32>
  }
  func.func private @argmax(%arg0: tensor<i64>, %arg1: tensor<?x6xf32>) -> tensor<?xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<6> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 1 : (tensor<2xi32>) -> tensor<?x6xi32>
    %5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7:2 = stablehlo.reduce(%arg1 init: %5), (%4 init: %6) across dimensions = [1] : (tensor<?x6xf32>, tensor<?x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %8 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.or %8, %9 : tensor<i1>
      %11 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %13 = stablehlo.and %11, %12 : tensor<i1>
      %14 = stablehlo.or %10, %13 : tensor<i1>
      %15 = stablehlo.select %10, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %15, %16 : tensor<f32>, tensor<i32>
    }
    return %7#1 : tensor<?xi32>
  }
}
// ----- testdata/dynamic/vmap_argmin_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x18x12xf32> {mhlo.sharding = ""}) -> tensor<?x18xi32> {
    %0 = call @argmin(%arg0, %arg1) : (tensor<i64>, tensor<?x18x12xf32>) -> tensor<?x18xi32>
    return %0 : tensor<?x18xi32>
  }
  func.func private @argmin(%arg0: tensor<i64>, %arg1: tensor<?x18x12xf32>) -> tensor<?x18xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<18> : tensor<1xi32>
    %3 = stablehlo.constant dense<12> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 2 : (tensor<3xi32>) -> tensor<?x18x12xi32>
    %6 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %7 = stablehlo.constant dense<0> : tensor<i32>
    %8:2 = stablehlo.reduce(%arg1 init: %6), (%5 init: %7) across dimensions = [2] : (tensor<?x18x12xf32>, tensor<?x18x12xi32>, tensor<f32>, tensor<i32>) -> (tensor<?x18xf32>, tensor<?x18xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %9 = stablehlo.compare  LT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %11 = stablehlo.or %9, %10 : tensor<i1>
      %12 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = stablehlo.and %12, %13 : tensor<i1>
      %15 = stablehlo.or %11, %14 : tensor<i1>
      %16 = stablehlo.select %11, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %17 = stablehlo.select %15, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %16, %17 : tensor<f32>, tensor<i32>
    }
    return %8#1 : tensor<?x18xi32>
  }
}
// ----- testdata/dynamic/vmap_argmin_float32_15_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x15xf32> {mhlo.sharding = ""}) -> tensor<?xi32> {
    %0 = call @argmin(%arg0, %arg1) : (tensor<i64>, tensor<?x15xf32>) -> tensor<?xi32>
    return %0 : tensor<?xi32>
  }
  func.func private @argmin(%arg0: tensor<i64>, %arg1: tensor<?x15xf32>) -> tensor<?xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<15> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 1 : (tensor<2xi32>) -> tensor<?x15xi32>
    %5 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7:2 = stablehlo.reduce(%arg1 init: %5), (%4 init: %6) across dimensions = [1] : (tensor<?x15xf32>, tensor<?x15xi32>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %8 = stablehlo.compare  LT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.or %8, %9 : tensor<i1>
      %11 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %13 = stablehlo.and %11, %12 : tensor<i1>
      %14 = stablehlo.or %10, %13 : tensor<i1>
      %15 = stablehlo.select %10, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %15, %16 : tensor<f32>, tensor<i32>
    }
    return %7#1 : tensor<?xi32>
  }
}
// ----- testdata/dynamic/vmap_argmin_index_dtype_float32_15_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x15xf32> {mhlo.sharding = ""}) -> tensor<?xui8> {
    %0 = call @argmin(%arg0, %arg1) : (tensor<i64>, tensor<?x15xf32>) -> tensor<?xui8>
    return %0 : tensor<?xui8>
  }
  func.func private @argmin(%arg0: tensor<i64>, %arg1: tensor<?x15xf32>) -> tensor<?xui8> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<15> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 1 : (tensor<2xi32>) -> tensor<?x15xui8>
    %5 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %6 = stablehlo.constant dense<0> : tensor<ui8>
    %7:2 = stablehlo.reduce(%arg1 init: %5), (%4 init: %6) across dimensions = [1] : (tensor<?x15xf32>, tensor<?x15xui8>, tensor<f32>, tensor<ui8>) -> (tensor<?xf32>, tensor<?xui8>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<ui8>, %arg5: tensor<ui8>)  {
      %8 = stablehlo.compare  LT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.or %8, %9 : tensor<i1>
      %11 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.compare  LT, %arg3, %arg5,  UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      %13 = stablehlo.and %11, %12 : tensor<i1>
      %14 = stablehlo.or %10, %13 : tensor<i1>
      %15 = stablehlo.select %10, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg3, %arg5 : tensor<i1>, tensor<ui8>
      stablehlo.return %15, %16 : tensor<f32>, tensor<ui8>
    }
    return %7#1 : tensor<?xui8>
  }
}
// ----- testdata/dynamic/vmap_argmin_special_nan_inf_0_float32_4_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?xi32> {
    %0 = call @argmin(%arg0, %arg1) : (tensor<i64>, tensor<?x4xf32>) -> tensor<?xi32>
    return %0 : tensor<?xi32>
  }
  func.func private @argmin(%arg0: tensor<i64>, %arg1: tensor<?x4xf32>) -> tensor<?xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<4> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 1 : (tensor<2xi32>) -> tensor<?x4xi32>
    %5 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7:2 = stablehlo.reduce(%arg1 init: %5), (%4 init: %6) across dimensions = [1] : (tensor<?x4xf32>, tensor<?x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %8 = stablehlo.compare  LT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare  NE, %arg2, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.or %8, %9 : tensor<i1>
      %11 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %13 = stablehlo.and %11, %12 : tensor<i1>
      %14 = stablehlo.or %10, %13 : tensor<i1>
      %15 = stablehlo.select %10, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %15, %16 : tensor<f32>, tensor<i32>
    }
    return %7#1 : tensor<?xi32>
  }
}
// ----- testdata/dynamic/vmap_asin_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.constant dense<20> : tensor<1xi32>
    %1 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %2 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
    %3 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.concatenate %4, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %2, %5, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %7 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.concatenate %8, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %10 = stablehlo.dynamic_broadcast_in_dim %1, %9, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %11 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %12 = stablehlo.reshape %11 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.concatenate %12, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %14 = stablehlo.dynamic_broadcast_in_dim %1, %13, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %15 = stablehlo.multiply %arg1, %arg1 : tensor<?x20x20xbf16>
    %16 = stablehlo.subtract %14, %15 : tensor<?x20x20xbf16>
    %17 = stablehlo.sqrt %16 : tensor<?x20x20xbf16>
    %18 = stablehlo.add %10, %17 : tensor<?x20x20xbf16>
    %19 = stablehlo.atan2 %arg1, %18 : tensor<?x20x20xbf16>
    %20 = stablehlo.multiply %6, %19 : tensor<?x20x20xbf16>
    return %20 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_atan2_broadcasting_lhs_float32_20_20_rhs_float32_1_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x1x20xf32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %6 = stablehlo.atan2 %arg1, %5 : tensor<?x20x20xf32>
    return %6 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/vmap_atan2_lhs_float32_20_20_rhs_float32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.atan2 %arg1, %arg2 : tensor<?x20x20xf32>
    return %0 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/vmap_atan_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.constant dense<20> : tensor<1xi32>
    %1 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %2 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.concatenate %3, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %1, %4, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %6 = stablehlo.atan2 %arg1, %5 : tensor<?x20x20xbf16>
    return %6 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_atanh_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.constant dense<20> : tensor<1xi32>
    %1 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %2 = stablehlo.constant dense<0x7FC0> : tensor<bf16>
    %3 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %4 = stablehlo.abs %arg1 : tensor<?x20x20xbf16>
    %5 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.concatenate %6, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %8 = stablehlo.dynamic_broadcast_in_dim %3, %7, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %9 = stablehlo.compare  GT, %4, %8 : (tensor<?x20x20xbf16>, tensor<?x20x20xbf16>) -> tensor<?x20x20xi1>
    %10 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %11 = stablehlo.reshape %10 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.concatenate %11, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %13 = stablehlo.dynamic_broadcast_in_dim %2, %12, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %14 = stablehlo.log_plus_one %arg1 : tensor<?x20x20xbf16>
    %15 = stablehlo.negate %arg1 : tensor<?x20x20xbf16>
    %16 = stablehlo.log_plus_one %15 : tensor<?x20x20xbf16>
    %17 = stablehlo.subtract %14, %16 : tensor<?x20x20xbf16>
    %18 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x20x20xbf16>) -> tensor<i32>
    %19 = stablehlo.reshape %18 : (tensor<i32>) -> tensor<1xi32>
    %20 = stablehlo.concatenate %19, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %21 = stablehlo.dynamic_broadcast_in_dim %1, %20, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %22 = stablehlo.multiply %17, %21 : tensor<?x20x20xbf16>
    %23 = stablehlo.select %9, %13, %22 : tensor<?x20x20xi1>, tensor<?x20x20xbf16>
    return %23 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/average_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x8x4xf32> {mhlo.sharding = ""}, %arg2: tensor<?x8x4xf32> {mhlo.sharding = ""}) -> tensor<f32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg2 init: %0) across dimensions = [0, 1, 2] : (tensor<?x8x4xf32>, tensor<f32>) -> tensor<f32>
     reducer(%arg3: tensor<f32>, %arg4: tensor<f32>)  {
      %6 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }
    %2 = stablehlo.multiply %arg1, %arg2 : tensor<?x8x4xf32>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%2 init: %3) across dimensions = [0, 1, 2] : (tensor<?x8x4xf32>, tensor<f32>) -> tensor<f32>
     reducer(%arg3: tensor<f32>, %arg4: tensor<f32>)  {
      %6 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }
    %5 = stablehlo.divide %4, %1 : tensor<f32>
    return %5 : tensor<f32>
  }
}
// ----- testdata/dynamic/vmap_bitcast_convert_type_to_new_bfloat16_2_3_newdtype_int16_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xbf16> {mhlo.sharding = ""}) -> tensor<?x2x3xi16> {
    %0 = stablehlo.bitcast_convert %arg1 : (tensor<?x2x3xbf16>) -> tensor<?x2x3xi16>
    return %0 : tensor<?x2x3xi16>
  }
}
// ----- testdata/dynamic/vmap_broadcast_in_dim_float32_2_out2_broadcastdimensions_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    return %arg1 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/broadcast_to_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x?x4xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.concatenate %1, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %arg1, %5, dims = [1, 2] : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<?x?x4xf32>
    return %6 : tensor<?x?x4xf32>
  }
}
// ----- testdata/dynamic/vmap_cbrt_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.cbrt %arg1 : tensor<?x20x20xbf16>
    return %0 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_ceil_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.ceil %arg1 : tensor<?x20x20xbf16>
    return %0 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_clamp_broadcasting_min_float32_2_3_operand_float32_2_3_max_float32_2_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}, %arg3: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x2x3xf32> {
    %0 = stablehlo.clamp %arg1, %arg2, %arg3 : tensor<?x2x3xf32>
    return %0 : tensor<?x2x3xf32>
  }
}
// ----- testdata/dynamic/clamp_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x4x5xf32> {mhlo.sharding = ""}, %arg3: tensor<?x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x4x5xf32> {
    %0 = stablehlo.clamp %arg1, %arg2, %arg3 : tensor<?x4x5xf32>
    return %0 : tensor<?x4x5xf32>
  }
}
// ----- testdata/dynamic/vmap_clamp_min_float32_operand_float32_2_3_max_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}, %arg3: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?x2x3xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0] : (tensor<?xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    %6 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %7 = stablehlo.reshape %6 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.constant dense<2> : tensor<1xi32>
    %9 = stablehlo.constant dense<3> : tensor<1xi32>
    %10 = stablehlo.concatenate %7, %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %arg3, %10, dims = [0] : (tensor<?xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    %12 = stablehlo.clamp %5, %arg2, %11 : tensor<?x2x3xf32>
    return %12 : tensor<?x2x3xf32>
  }
}
// ----- testdata/dynamic/vmap_clamp_order_False_min_float32_operand_float32_2_3_max_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}, %arg3: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?x2x3xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0] : (tensor<?xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    %6 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %7 = stablehlo.reshape %6 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.constant dense<2> : tensor<1xi32>
    %9 = stablehlo.constant dense<3> : tensor<1xi32>
    %10 = stablehlo.concatenate %7, %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %arg3, %10, dims = [0] : (tensor<?xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    %12 = stablehlo.clamp %5, %arg2, %11 : tensor<?x2x3xf32>
    return %12 : tensor<?x2x3xf32>
  }
}
// ----- testdata/dynamic/collapse_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<i64>, %arg3: tensor<?x?x5x?x7xf32> {mhlo.sharding = ""}) -> tensor<?x?x7xf32> {
    %0 = stablehlo.multiply %arg1, %arg2 : tensor<i64>
    %1 = stablehlo.constant dense<5> : tensor<i64>
    %2 = stablehlo.multiply %0, %1 : tensor<i64>
    %3 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.convert %2 : (tensor<i64>) -> tensor<i32>
    %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.constant dense<7> : tensor<1xi32>
    %8 = stablehlo.concatenate %4, %6, %7, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %9 = stablehlo.dynamic_reshape %arg3, %8 : (tensor<?x?x5x?x7xf32>, tensor<3xi32>) -> tensor<?x?x7xf32>
    return %9 : tensor<?x?x7xf32>
  }
}
// ----- testdata/dynamic/vmap_complex_broadcast_lhs_float32_3_2_rhs_float32_3_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x2xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x1xf32> {mhlo.sharding = ""}) -> tensor<?x3x2xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<3> : tensor<1xi32>
    %3 = stablehlo.constant dense<2> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x3x1xf32>, tensor<3xi32>) -> tensor<?x3x2xf32>
    %6 = stablehlo.complex %arg1, %5 : tensor<?x3x2xcomplex<f32>>
    return %6 : tensor<?x3x2xcomplex<f32>>
  }
}
// ----- testdata/dynamic/vmap_complex_lhs_float32_3_4_rhs_float32_3_4_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x4xf32> {mhlo.sharding = ""}) -> tensor<?x3x4xcomplex<f32>> {
    %0 = stablehlo.complex %arg1, %arg2 : tensor<?x3x4xcomplex<f32>>
    return %0 : tensor<?x3x4xcomplex<f32>>
  }
}
// ----- testdata/dynamic/vmap_concatenate_dimension_float32_2_3_float32_2_3_dimension_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x2x6xf32> {
    %0 = stablehlo.concatenate %arg1, %arg2, dim = 2 : (tensor<?x2x3xf32>, tensor<?x2x3xf32>) -> tensor<?x2x6xf32>
    return %0 : tensor<?x2x6xf32>
  }
}
// ----- testdata/dynamic/concatenate_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<?x?x5xf32> {mhlo.sharding = ""}) -> tensor<?x?x5xf32> {
    %0 = stablehlo.concatenate %arg2, %arg2, dim = 0 : (tensor<?x?x5xf32>, tensor<?x?x5xf32>) -> tensor<?x?x5xf32>
    return %0 : tensor<?x?x5xf32>
  }
}
// ----- testdata/dynamic/vmap_concatenate_float32_2_3_float32_2_3_dimension_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x4x3xf32> {
    %0 = stablehlo.concatenate %arg1, %arg2, dim = 1 : (tensor<?x2x3xf32>, tensor<?x2x3xf32>) -> tensor<?x4x3xf32>
    return %0 : tensor<?x4x3xf32>
  }
}
// ----- testdata/dynamic/vmap_concatenate_nb_operands_float32_2_3_4_float32_3_3_4_float32_4_3_4_dimension_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3x4xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x3x4xf32> {mhlo.sharding = ""}, %arg3: tensor<?x4x3x4xf32> {mhlo.sharding = ""}) -> tensor<?x9x3x4xf32> {
    %0 = stablehlo.concatenate %arg1, %arg2, %arg3, dim = 1 : (tensor<?x2x3x4xf32>, tensor<?x3x3x4xf32>, tensor<?x4x3x4xf32>) -> tensor<?x9x3x4xf32>
    return %0 : tensor<?x9x3x4xf32>
  }
}
// ----- testdata/dynamic/vmap_conj_kwargs_operand_float32_3_4_kwargs_input_dtype_class_numpy_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4xf32> {mhlo.sharding = ""}) -> tensor<?x3x4xcomplex<f32>> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.concatenate %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %0, %5, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x4xf32>
    %7 = stablehlo.complex %arg1, %6 : tensor<?x3x4xcomplex<f32>>
    return %7 : tensor<?x3x4xcomplex<f32>>
  }
}
// ----- testdata/dynamic/vmap_conj_operand_float32_3_4_kwargs_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4xf32> {mhlo.sharding = ""}) -> tensor<?x3x4xcomplex<f32>> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.concatenate %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %0, %5, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x4xf32>
    %7 = stablehlo.complex %arg1, %6 : tensor<?x3x4xcomplex<f32>>
    return %7 : tensor<?x3x4xcomplex<f32>>
  }
}
// ----- testdata/dynamic/conv_general_dilated_1d_stride_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<1x?x16xf32> {mhlo.sharding = ""}, %arg2: tensor<4x16x16xf32> {mhlo.sharding = ""}) -> tensor<1x?x16xf32> {
    %0 = stablehlo.convolution(%arg1, %arg2) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x?x16xf32>, tensor<4x16x16xf32>) -> tensor<1x?x16xf32>
    return %0 : tensor<1x?x16xf32>
  }
}
// ----- testdata/dynamic/vmap_convert_element_type_to_int8_100_100_olddtype_int8_newdtype_int64_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x100x100xi8> {mhlo.sharding = ""}) -> tensor<?x100x100xi64> {
    %0 = stablehlo.convert %arg1 : (tensor<?x100x100xi8>) -> tensor<?x100x100xi64>
    return %0 : tensor<?x100x100xi64>
  }
}
// ----- testdata/dynamic/vmap_cosh_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.constant dense<20> : tensor<1xi32>
    %1 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %2 = stablehlo.convert %arg1 : (tensor<?x20x20xbf16>) -> tensor<?x20x20xf32>
    %3 = stablehlo.get_dimension_size %2, dim = 0 : (tensor<?x20x20xf32>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.concatenate %4, %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %7 = stablehlo.log %6 : tensor<?x20x20xf32>
    %8 = stablehlo.add %2, %7 : tensor<?x20x20xf32>
    %9 = stablehlo.exponential %8 : tensor<?x20x20xf32>
    %10 = stablehlo.subtract %7, %2 : tensor<?x20x20xf32>
    %11 = stablehlo.exponential %10 : tensor<?x20x20xf32>
    %12 = stablehlo.add %9, %11 : tensor<?x20x20xf32>
    %13 = stablehlo.convert %12 : (tensor<?x20x20xf32>) -> tensor<?x20x20xbf16>
    return %13 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/delta_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<1> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %3, dim = 0 : (tensor<2xi32>) -> tensor<?x1xui32>
    %5 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.constant dense<1> : tensor<1xi32>
    %8 = stablehlo.concatenate %6, %7, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %9 = stablehlo.dynamic_iota %8, dim = 1 : (tensor<2xi32>) -> tensor<?x1xui32>
    %10 = stablehlo.compare  EQ, %4, %9,  UNSIGNED : (tensor<?x1xui32>, tensor<?x1xui32>) -> tensor<?x1xi1>
    %11 = stablehlo.convert %10 : (tensor<?x1xi1>) -> tensor<?x1xf32>
    %12 = stablehlo.add %11, %arg1 : tensor<?x1xf32>
    return %12 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/vmap_device_put_devices_float32_3_4_device_cpu_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4xf32> {mhlo.sharding = ""}) -> tensor<?x3x4xf32> {
    return %arg1 : tensor<?x3x4xf32>
  }
}
// ----- testdata/dynamic/vmap_div_broadcast_lhs_float32_2_1_3_rhs_float32_2_4_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x1x3xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x4x3xf32> {mhlo.sharding = ""}) -> tensor<?x2x4x3xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.constant dense<4> : tensor<1xi32>
    %4 = stablehlo.constant dense<3> : tensor<1xi32>
    %5 = stablehlo.concatenate %1, %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %arg1, %5, dims = [0, 1, 2, 3] : (tensor<?x2x1x3xf32>, tensor<4xi32>) -> tensor<?x2x4x3xf32>
    %7 = stablehlo.divide %6, %arg2 : tensor<?x2x4x3xf32>
    return %7 : tensor<?x2x4x3xf32>
  }
}
// ----- testdata/dynamic/vmap_div_singularity_negative_by_0_lhs_float32_2_rhs_float32_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.divide %arg1, %arg2 : tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/vmap_dot_general_preferred_lhs_float32_3_rhs_float32_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3xf32> {mhlo.sharding = ""}) -> tensor<?xf64> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?xf64>
    return %0 : tensor<?xf64>
  }
}
// ----- testdata/dynamic/dynamic_slice_in_dim_idx_0
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.convert %0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %3, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = stablehlo.convert %0 : (tensor<i64>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %10 = stablehlo.reshape %9 : (tensor<i32>) -> tensor<1xi32>
    %11 = stablehlo.concatenate %8, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %13 = stablehlo.reshape %12 : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.constant dense<4> : tensor<1xi32>
    %15 = stablehlo.concatenate %13, %14, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %16 = stablehlo.add %11, %15 : tensor<2xi32>
    %17 = stablehlo.constant dense<1> : tensor<1xi32>
    %18 = stablehlo.constant dense<1> : tensor<1xi32>
    %19 = stablehlo.concatenate %17, %18, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %20 = stablehlo.real_dynamic_slice %arg1, %6, %16, %19 : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
    return %20 : tensor<?x4xf32>
  }
}
// ----- testdata/dynamic/dynamic_update_slice
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.dynamic_update_slice %arg1, %arg1, %0, %1 : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<i64>, tensor<i64>) -> tensor<?x4xf32>
    return %2 : tensor<?x4xf32>
  }
}
// ----- testdata/dynamic/dynamlic_slice_t2
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}, %arg2: tensor<i32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.compare  LT, %arg2, %1,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.add %arg2, %0 : tensor<i32>
    %4 = stablehlo.select %2, %3, %arg2 : tensor<i1>, tensor<i32>
    %5 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.convert %4 : tensor<i32>
    %7 = stablehlo.reshape %6 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.convert %5 : tensor<i32>
    %9 = stablehlo.reshape %8 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.concatenate %7, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %11 = stablehlo.convert %4 : tensor<i32>
    %12 = stablehlo.reshape %11 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.convert %5 : tensor<i32>
    %14 = stablehlo.reshape %13 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.concatenate %12, %14, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %16 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %17 = stablehlo.reshape %16 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.constant dense<2> : tensor<1xi32>
    %19 = stablehlo.concatenate %17, %18, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %20 = stablehlo.add %15, %19 : tensor<2xi32>
    %21 = stablehlo.constant dense<1> : tensor<1xi32>
    %22 = stablehlo.constant dense<1> : tensor<1xi32>
    %23 = stablehlo.concatenate %21, %22, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %24 = stablehlo.real_dynamic_slice %arg1, %10, %20, %23 : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x2xf32>
    return %24 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/einsum_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?xf32> {
    %0 = call @_einsum(%arg0, %arg1) : (tensor<i64>, tensor<?x4xf32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
  func.func private @_einsum(%arg0: tensor<i64>, %arg1: tensor<?x4xf32>) -> tensor<?xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    return %1 : tensor<?xf32>
  }
}
// ----- testdata/dynamic/einsum_1_alt_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x5x6xf32> {mhlo.sharding = ""}) -> tensor<?x4x6xf32> {
    %0 = call @_einsum(%arg0, %arg1, %arg2) : (tensor<i64>, tensor<?x4x5xf32>, tensor<?x5x6xf32>) -> tensor<?x4x6xf32>
    return %0 : tensor<?x4x6xf32>
  }
  func.func private @_einsum(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32>, %arg2: tensor<?x5x6xf32>) -> tensor<?x4x6xf32> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<?x4x5xf32>, tensor<?x5x6xf32>) -> tensor<?x4x6xf32>
    return %0 : tensor<?x4x6xf32>
  }
}
// ----- testdata/dynamic/einsum_2_alt_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32> {mhlo.sharding = ""}, %arg2: tensor<5x6xf32> {mhlo.sharding = ""}) -> tensor<?x4x6xf32> {
    %0 = call @_einsum(%arg0, %arg1, %arg2) : (tensor<i64>, tensor<?x4x5xf32>, tensor<5x6xf32>) -> tensor<?x4x6xf32>
    return %0 : tensor<?x4x6xf32>
  }
  func.func private @_einsum(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32>, %arg2: tensor<5x6xf32>) -> tensor<?x4x6xf32> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<?x4x5xf32>, tensor<5x6xf32>) -> tensor<?x4x6xf32>
    return %0 : tensor<?x4x6xf32>
  }
}
// ----- testdata/dynamic/einsum_3_alt_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<3x?xf32> {mhlo.sharding = ""}, %arg2: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<3x5xf32> {
    %0 = call @_einsum(%arg0, %arg1, %arg2) : (tensor<i64>, tensor<3x?xf32>, tensor<?x5xf32>) -> tensor<3x5xf32>
    return %0 : tensor<3x5xf32>
  }
  func.func private @_einsum(%arg0: tensor<i64>, %arg1: tensor<3x?xf32>, %arg2: tensor<?x5xf32>) -> tensor<3x5xf32> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<3x?xf32>, tensor<?x5xf32>) -> tensor<3x5xf32>
    return %0 : tensor<3x5xf32>
  }
}
// ----- testdata/dynamic/einsum_4_alt_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<3x?xf32> {mhlo.sharding = ""}, %arg2: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<3x5xf32> {
    %0 = stablehlo.concatenate %arg1, %arg1, dim = 1 : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
    %1 = stablehlo.concatenate %arg2, %arg2, dim = 0 : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
    %2 = call @_einsum(%arg0, %0, %1) : (tensor<i64>, tensor<3x?xf32>, tensor<?x5xf32>) -> tensor<3x5xf32>
    return %2 : tensor<3x5xf32>
  }
  func.func private @_einsum(%arg0: tensor<i64>, %arg1: tensor<3x?xf32>, %arg2: tensor<?x5xf32>) -> tensor<3x5xf32> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<3x?xf32>, tensor<?x5xf32>) -> tensor<3x5xf32>
    return %0 : tensor<3x5xf32>
  }
}
// ----- testdata/dynamic/einsum_multiple_contractions_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xf32> {mhlo.sharding = ""}, %arg2: tensor<2x3xf32> {mhlo.sharding = ""}, %arg3: tensor<3x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    %0 = call @_einsum(%arg0, %arg1, %arg2, %arg3) : (tensor<i64>, tensor<?x2xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
  func.func private @_einsum(%arg0: tensor<i64>, %arg1: tensor<?x2xf32>, %arg2: tensor<2x3xf32>, %arg3: tensor<3x4xf32>) -> tensor<?x4xf32> {
    %0 = "stablehlo.dot_general"(%arg3, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>} : (tensor<3x4xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
    %1 = "stablehlo.dot_general"(%arg1, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : (tensor<?x2xf32>, tensor<4x2xf32>) -> tensor<?x4xf32>
    return %1 : tensor<?x4xf32>
  }
}
// ----- testdata/dynamic/vmap_eq_broadcasting_lhs_float32_rhs_float32_2_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x2x3xi1> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<1> : tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0] : (tensor<?xf32>, tensor<3xi32>) -> tensor<?x1x1xf32>
    %6 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %7 = stablehlo.reshape %6 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.constant dense<2> : tensor<1xi32>
    %9 = stablehlo.constant dense<3> : tensor<1xi32>
    %10 = stablehlo.concatenate %7, %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %5, %10, dims = [0, 1, 2] : (tensor<?x1x1xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    %12 = stablehlo.compare  EQ, %11, %arg2,  FLOAT : (tensor<?x2x3xf32>, tensor<?x2x3xf32>) -> tensor<?x2x3xi1>
    return %12 : tensor<?x2x3xi1>
  }
}
// ----- testdata/dynamic/vmap_eq_lhs_float32_rhs_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xi1> {
    %0 = stablehlo.compare  EQ, %arg1, %arg2,  FLOAT : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
    return %0 : tensor<?xi1>
  }
}
// ----- testdata/dynamic/vmap_exp_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.exponential %arg1 : tensor<?x20x20xbf16>
    return %0 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/eye_N_poly_M_None_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x?xf64> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %10 = stablehlo.reshape %9 : (tensor<i32>) -> tensor<1xi32>
    %11 = stablehlo.concatenate %8, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = stablehlo.dynamic_broadcast_in_dim %6, %11, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x?xi32>
    %13 = stablehlo.add %5, %12 : tensor<?x?xi32>
    %14 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %15 = stablehlo.reshape %14 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %17 = stablehlo.reshape %16 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.concatenate %15, %17, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %19 = stablehlo.dynamic_iota %18, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
    %20 = stablehlo.compare  EQ, %13, %19,  SIGNED : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi1>
    %21 = stablehlo.convert %20 : (tensor<?x?xi1>) -> tensor<?x?xf64>
    %22 = stablehlo.convert %arg1 : (tensor<?x1xf32>) -> tensor<?x1xf64>
    %23 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %24 = stablehlo.reshape %23 : (tensor<i32>) -> tensor<1xi32>
    %25 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %26 = stablehlo.reshape %25 : (tensor<i32>) -> tensor<1xi32>
    %27 = stablehlo.concatenate %24, %26, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %28 = stablehlo.dynamic_broadcast_in_dim %22, %27, dims = [0, 1] : (tensor<?x1xf64>, tensor<2xi32>) -> tensor<?x?xf64>
    %29 = stablehlo.add %21, %28 : tensor<?x?xf64>
    return %29 : tensor<?x?xf64>
  }
}
// ----- testdata/dynamic/full_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.constant dense<3.000000e+00> : tensor<f64>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<2> : tensor<1xi32>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %0, %4, dims = [] : (tensor<f64>, tensor<2xi32>) -> tensor<?x2xf64>
    %6 = stablehlo.convert %5 : (tensor<?x2xf64>) -> tensor<?x2xf32>
    %7 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.constant dense<2> : tensor<1xi32>
    %10 = stablehlo.concatenate %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %arg1, %10, dims = [0, 1] : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    %12 = stablehlo.add %6, %11 : tensor<?x2xf32>
    return %12 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/vmap_gather_10_idxs_3_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x10xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x1xi64> {mhlo.sharding = ""}) -> tensor<?x3x2xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<3> : tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 0 : (tensor<3xi32>) -> tensor<?x3x1xi64>
    %6 = stablehlo.concatenate %5, %arg2, dim = 2 : (tensor<?x3x1xi64>, tensor<?x3x1xi64>) -> tensor<?x3x2xi64>
    %7 = "stablehlo.gather"(%arg1, %6) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2>} : (tensor<?x10xf32>, tensor<?x3x2xi64>) -> tensor<?x3x2xf32>
    return %7 : tensor<?x3x2xf32>
  }
}
// ----- testdata/dynamic/vmap_gather_5_idxs_2_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x1xi64> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 0 : (tensor<3xi32>) -> tensor<?x2x1xi64>
    %6 = stablehlo.concatenate %5, %arg2, dim = 2 : (tensor<?x2x1xi64>, tensor<?x2x1xi64>) -> tensor<?x2x2xi64>
    %7 = "stablehlo.gather"(%arg1, %6) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>} : (tensor<?x5xf32>, tensor<?x2x2xi64>) -> tensor<?x2xf32>
    return %7 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/vmap_gather_batchdims_1_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x2xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1x2xi64> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<1> : tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 0 : (tensor<3xi32>) -> tensor<?x1x1xi64>
    %6 = stablehlo.concatenate %5, %arg2, dim = 2 : (tensor<?x1x1xi64>, tensor<?x1x2xi64>) -> tensor<?x1x3xi64>
    %7 = "stablehlo.gather"(%arg1, %6) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 1>} : (tensor<?x1x2xf32>, tensor<?x1x3xi64>) -> tensor<?x1xf32>
    return %7 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/vmap_gather_from_slicing_name_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x10x10x10xf32> {mhlo.sharding = ""}) -> tensor<?x10x10xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.constant dense<10> : tensor<1xi32>
    %6 = stablehlo.constant dense<10> : tensor<1xi32>
    %7 = stablehlo.concatenate %3, %4, %5, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %8 = "stablehlo.dynamic_gather"(%arg1, %1, %7) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 2], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = true} : (tensor<?x10x10x10xf32>, tensor<1xi32>, tensor<4xi32>) -> tensor<?x10x10xf32>
    return %8 : tensor<?x10x10xf32>
  }
}
// ----- testdata/dynamic/vmap_ge_lhs_float32_rhs_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xi1> {
    %0 = stablehlo.compare  GE, %arg1, %arg2,  FLOAT : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
    return %0 : tensor<?xi1>
  }
}
// ----- testdata/dynamic/getitem_op_poly_idx_slice-None-1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    return %arg1 : tensor<?x4xf32>
  }
}
// ----- testdata/dynamic/vmap_gt_broadcasting_lhs_float32_1_2_rhs_float32_3_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x2xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x2xf32> {mhlo.sharding = ""}) -> tensor<?x3x2xi1> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<3> : tensor<1xi32>
    %3 = stablehlo.constant dense<2> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0, 1, 2] : (tensor<?x1x2xf32>, tensor<3xi32>) -> tensor<?x3x2xf32>
    %6 = stablehlo.compare  GT, %5, %arg2,  FLOAT : (tensor<?x3x2xf32>, tensor<?x3x2xf32>) -> tensor<?x3x2xi1>
    return %6 : tensor<?x3x2xi1>
  }
}
// ----- testdata/dynamic/index_in_dim_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<4xf32> {
    %0 = stablehlo.constant dense<-1> : tensor<i64>
    %1 = stablehlo.add %0, %arg0 : tensor<i64>
    %2 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<0> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %7 = stablehlo.reshape %6 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.constant dense<4> : tensor<1xi32>
    %9 = stablehlo.concatenate %7, %8, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = stablehlo.constant dense<1> : tensor<1xi32>
    %11 = stablehlo.constant dense<1> : tensor<1xi32>
    %12 = stablehlo.concatenate %10, %11, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %13 = stablehlo.real_dynamic_slice %arg1, %5, %9, %12 : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x4xf32>
    %14 = stablehlo.reshape %13 : (tensor<1x4xf32>) -> tensor<4xf32>
    return %14 : tensor<4xf32>
  }
}
// ----- testdata/dynamic/vmap_integer_pow_bfloat16_20_30_y_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x30xbf16> {mhlo.sharding = ""}) -> tensor<?x20x30xbf16> {
    %0 = stablehlo.multiply %arg1, %arg1 : tensor<?x20x30xbf16>
    return %0 : tensor<?x20x30xbf16>
  }
}
// ----- testdata/dynamic/iota_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.dynamic_iota %1, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %3 = stablehlo.add %arg1, %2 : tensor<?xf32>
    return %3 : tensor<?xf32>
  }
}
// ----- testdata/dynamic/vmap_is_finite_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xi1> {
    %0 = stablehlo.is_finite %arg1 : (tensor<?x20x20xbf16>) -> tensor<?x20x20xi1>
    return %0 : tensor<?x20x20xi1>
  }
}
// ----- testdata/dynamic/vmap_le_lhs_float32_rhs_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xi1> {
    %0 = stablehlo.compare  LE, %arg1, %arg2,  FLOAT : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
    return %0 : tensor<?xi1>
  }
}
// ----- testdata/dynamic/vmap_logistic_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.negate %arg1 : tensor<?x20x20xbf16>
    %1 = stablehlo.exponential %0 : tensor<?x20x20xbf16>
    %2 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %3 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.constant dense<20> : tensor<1xi32>
    %6 = stablehlo.constant dense<20> : tensor<1xi32>
    %7 = stablehlo.concatenate %4, %5, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %8 = stablehlo.dynamic_broadcast_in_dim %2, %7, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %9 = stablehlo.add %8, %1 : tensor<?x20x20xbf16>
    %10 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %11 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %12 = stablehlo.reshape %11 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.constant dense<20> : tensor<1xi32>
    %14 = stablehlo.constant dense<20> : tensor<1xi32>
    %15 = stablehlo.concatenate %12, %13, %14, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %16 = stablehlo.dynamic_broadcast_in_dim %10, %15, dims = [] : (tensor<bf16>, tensor<3xi32>) -> tensor<?x20x20xbf16>
    %17 = stablehlo.divide %16, %9 : tensor<?x20x20xbf16>
    return %17 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_lt_broadcasting_lhs_float32_1_2_rhs_float32_3_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x2xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x2xf32> {mhlo.sharding = ""}) -> tensor<?x3x2xi1> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<3> : tensor<1xi32>
    %3 = stablehlo.constant dense<2> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0, 1, 2] : (tensor<?x1x2xf32>, tensor<3xi32>) -> tensor<?x3x2xf32>
    %6 = stablehlo.compare  LT, %5, %arg2,  FLOAT : (tensor<?x3x2xf32>, tensor<?x3x2xf32>) -> tensor<?x3x2xi1>
    return %6 : tensor<?x3x2xi1>
  }
}
// ----- testdata/dynamic/matmul_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x8x4xf32> {mhlo.sharding = ""}, %arg2: tensor<?x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x8x5xf32> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<?x8x4xf32>, tensor<?x4x5xf32>) -> tensor<?x8x5xf32>
    return %0 : tensor<?x8x5xf32>
  }
}
// ----- testdata/dynamic/matmul_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x8x4xf32> {mhlo.sharding = ""}, %arg2: tensor<4x5xf32> {mhlo.sharding = ""}) -> tensor<?x8x5xf32> {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<?x8x4xf32>, tensor<4x5xf32>) -> tensor<?x8x5xf32>
    return %0 : tensor<?x8x5xf32>
  }
}
// ----- testdata/dynamic/vmap_max_broadcasting_lhs_float32_1_20_rhs_float32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0, 1, 2] : (tensor<?x1x20xf32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %6 = stablehlo.maximum %5, %arg2 : tensor<?x20x20xf32>
    return %6 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/mean_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x8x4xf32> {mhlo.sharding = ""}, %arg2: tensor<?x8x4xi1> {mhlo.sharding = ""}) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : (tensor<?x8x4xi1>) -> tensor<?x8x4xi32>
    %1 = stablehlo.convert %0 : (tensor<?x8x4xi32>) -> tensor<?x8x4xi64>
    %2 = stablehlo.constant dense<0> : tensor<i64>
    %3 = stablehlo.reduce(%1 init: %2) across dimensions = [0, 1, 2] : (tensor<?x8x4xi64>, tensor<i64>) -> tensor<i64>
     reducer(%arg3: tensor<i64>, %arg4: tensor<i64>)  {
      %10 = stablehlo.add %arg3, %arg4 : tensor<i64>
      stablehlo.return %10 : tensor<i64>
    }
    %4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = call @_where(%arg0, %arg2, %arg1, %4) : (tensor<i64>, tensor<?x8x4xi1>, tensor<?x8x4xf32>, tensor<f32>) -> tensor<?x8x4xf32>
    %6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%5 init: %6) across dimensions = [0, 1, 2] : (tensor<?x8x4xf32>, tensor<f32>) -> tensor<f32>
     reducer(%arg3: tensor<f32>, %arg4: tensor<f32>)  {
      %10 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }
    %8 = stablehlo.convert %3 : (tensor<i64>) -> tensor<f32>
    %9 = stablehlo.divide %7, %8 : tensor<f32>
    return %9 : tensor<f32>
  }
  func.func private @_where(%arg0: tensor<i64>, %arg1: tensor<?x8x4xi1>, %arg2: tensor<?x8x4xf32>, %arg3: tensor<f32>) -> tensor<?x8x4xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<8> : tensor<1xi32>
    %3 = stablehlo.constant dense<4> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg3, %4, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x4xf32>
    %6 = stablehlo.select %arg1, %arg2, %5 : tensor<?x8x4xi1>, tensor<?x8x4xf32>
    return %6 : tensor<?x8x4xf32>
  }
}
// ----- testdata/dynamic/vmap_min_broadcasting_lhs_float32_20_20_rhs_float32_1_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x1x20xf32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %6 = stablehlo.minimum %arg1, %5 : tensor<?x20x20xf32>
    return %6 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/vmap_mul_broadcasting_lhs_float32_20_20_rhs_float32_1_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x1x20xf32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %6 = stablehlo.multiply %arg1, %5 : tensor<?x20x20xf32>
    return %6 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/vmap_ne_broadcasting_lhs_float32_rhs_float32_2_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x2x3xi1> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<1> : tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg1, %4, dims = [0] : (tensor<?xf32>, tensor<3xi32>) -> tensor<?x1x1xf32>
    %6 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %7 = stablehlo.reshape %6 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.constant dense<2> : tensor<1xi32>
    %9 = stablehlo.constant dense<3> : tensor<1xi32>
    %10 = stablehlo.concatenate %7, %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %5, %10, dims = [0, 1, 2] : (tensor<?x1x1xf32>, tensor<3xi32>) -> tensor<?x2x3xf32>
    %12 = stablehlo.compare  NE, %11, %arg2,  FLOAT : (tensor<?x2x3xf32>, tensor<?x2x3xf32>) -> tensor<?x2x3xi1>
    return %12 : tensor<?x2x3xi1>
  }
}
// ----- testdata/dynamic/vmap_ne_lhs_float32_rhs_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}, %arg2: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xi1> {
    %0 = stablehlo.compare  NE, %arg1, %arg2,  FLOAT : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
    return %0 : tensor<?xi1>
  }
}
// ----- testdata/dynamic/ones_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x4xf32> {mhlo.sharding = ""}) -> tensor<?x2x4xf32> {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<2> : tensor<1xi32>
    %4 = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.concatenate %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %0, %5, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x2x4xf32>
    %7 = stablehlo.add %6, %arg1 : tensor<?x2x4xf32>
    return %7 : tensor<?x2x4xf32>
  }
}
// ----- testdata/dynamic/vmap_or_lhs_int32_20_20_rhs_int32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xi32> {mhlo.sharding = ""}) -> tensor<?x20x20xi32> {
    %0 = stablehlo.or %arg1, %arg2 : tensor<?x20x20xi32>
    return %0 : tensor<?x20x20xi32>
  }
}
// ----- testdata/dynamic/pad_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x5xf32> {mhlo.sharding = ""}, %arg2: tensor<f32> {mhlo.sharding = ""}) -> tensor<?x2x11xf32> {
    %0 = stablehlo.pad %arg1, %arg2, low = [0, 0, 1], high = [0, 0, 1], interior = [0, 0, 1] : (tensor<?x2x5xf32>, tensor<f32>) -> tensor<?x2x11xf32>
    return %0 : tensor<?x2x11xf32>
  }
}
// ----- testdata/dynamic/vmap_pad_inbfloat16_2_3_pads_0_0_0_0_0_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xbf16> {mhlo.sharding = ""}, %arg2: tensor<?xbf16> {mhlo.sharding = ""}) -> tensor<?x2x3xbf16> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %1 = stablehlo.pad %arg1, %0, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<?x2x3xbf16>, tensor<bf16>) -> tensor<?x2x3xbf16>
    %2 = stablehlo.constant dense<true> : tensor<i1>
    %3 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.constant dense<2> : tensor<1xi32>
    %6 = stablehlo.constant dense<3> : tensor<1xi32>
    %7 = stablehlo.concatenate %4, %5, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %8 = stablehlo.dynamic_broadcast_in_dim %2, %7, dims = [] : (tensor<i1>, tensor<3xi32>) -> tensor<?x2x3xi1>
    %9 = stablehlo.constant dense<false> : tensor<i1>
    %10 = stablehlo.pad %8, %9, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<?x2x3xi1>, tensor<i1>) -> tensor<?x2x3xi1>
    %11 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %12 = stablehlo.reshape %11 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.constant dense<2> : tensor<1xi32>
    %14 = stablehlo.constant dense<3> : tensor<1xi32>
    %15 = stablehlo.concatenate %12, %13, %14, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %16 = stablehlo.dynamic_broadcast_in_dim %arg2, %15, dims = [0] : (tensor<?xbf16>, tensor<3xi32>) -> tensor<?x2x3xbf16>
    %17 = stablehlo.select %10, %1, %16 : tensor<?x2x3xi1>, tensor<?x2x3xbf16>
    return %17 : tensor<?x2x3xbf16>
  }
}
// ----- testdata/dynamic/pad_poly_padding_config_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<0> : tensor<1xi32>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.constant dense<2> : tensor<1xi32>
    %6 = stablehlo.constant dense<0> : tensor<1xi32>
    %7 = stablehlo.concatenate %5, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %8 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %9 = stablehlo.reshape %8 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.constant dense<0> : tensor<1xi32>
    %11 = stablehlo.concatenate %9, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = stablehlo.dynamic_pad %arg1, %0, %4, %7, %11 : (tensor<?x2xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x2xf32>
    return %12 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/vmap_pow_broadcast_lhs_float32_4_1_6_rhs_float32_4_5_6_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x1x6xf32> {mhlo.sharding = ""}, %arg2: tensor<?x4x5x6xf32> {mhlo.sharding = ""}) -> tensor<?x4x5x6xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<4> : tensor<1xi32>
    %3 = stablehlo.constant dense<5> : tensor<1xi32>
    %4 = stablehlo.constant dense<6> : tensor<1xi32>
    %5 = stablehlo.concatenate %1, %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %arg1, %5, dims = [0, 1, 2, 3] : (tensor<?x4x1x6xf32>, tensor<4xi32>) -> tensor<?x4x5x6xf32>
    %7 = stablehlo.power %6, %arg2 : tensor<?x4x5x6xf32>
    return %7 : tensor<?x4x5x6xf32>
  }
}
// ----- testdata/dynamic/vmap_pow_lhs_float32_20_30_rhs_float32_20_30_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x30xf32> {mhlo.sharding = ""}, %arg2: tensor<?x20x30xf32> {mhlo.sharding = ""}) -> tensor<?x20x30xf32> {
    %0 = stablehlo.power %arg1, %arg2 : tensor<?x20x30xf32>
    return %0 : tensor<?x20x30xf32>
  }
}
// ----- testdata/dynamic/re0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x6xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<6> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_reshape %arg1, %3 : (tensor<?x2x3xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    return %4 : tensor<?x6xf32>
  }
}
// ----- testdata/dynamic/re1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<?x?x3xf32> {mhlo.sharding = ""}) -> tensor<?x?xf32> {
    %0 = stablehlo.constant dense<3> : tensor<i64>
    %1 = stablehlo.multiply %arg1, %0 : tensor<i64>
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %3, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = stablehlo.dynamic_reshape %arg2, %6 : (tensor<?x?x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %7 : tensor<?x?xf32>
  }
}
// ----- testdata/dynamic/re2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<i64>, %arg3: tensor<?x4x?x?x7xf32> {mhlo.sharding = ""}) -> tensor<?x28x?x?xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<28> : tensor<1xi32>
    %3 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<i32>
    %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.concatenate %1, %2, %4, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %8 = stablehlo.dynamic_reshape %arg3, %7 : (tensor<?x4x?x?x7xf32>, tensor<4xi32>) -> tensor<?x28x?x?xf32>
    return %8 : tensor<?x28x?x?xf32>
  }
}
// ----- testdata/dynamic/re3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<?x4x?x6x7xf32> {mhlo.sharding = ""}) -> tensor<2x?xf32> {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<i64>
    %1 = stablehlo.constant dense<84> : tensor<i64>
    %2 = stablehlo.multiply %0, %1 : tensor<i64>
    %3 = stablehlo.constant dense<2> : tensor<1xi32>
    %4 = stablehlo.convert %2 : (tensor<i64>) -> tensor<i32>
    %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %3, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = stablehlo.dynamic_reshape %arg2, %6 : (tensor<?x4x?x6x7xf32>, tensor<2xi32>) -> tensor<2x?xf32>
    return %7 : tensor<2x?xf32>
  }
}
// ----- testdata/dynamic/vmap_redimensions_float32_3_4_5_newsizes_3_20_dimensions_2_1_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x3x20xf32> {
    %0 = stablehlo.transpose %arg1, dims = [0, 3, 2, 1] : (tensor<?x3x4x5xf32>) -> tensor<?x5x4x3xf32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.constant dense<20> : tensor<1xi32>
    %5 = stablehlo.concatenate %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_reshape %0, %5 : (tensor<?x5x4x3xf32>, tensor<3xi32>) -> tensor<?x3x20xf32>
    return %6 : tensor<?x3x20xf32>
  }
}
// ----- testdata/dynamic/reduce_all_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    return %6 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/reduce_amax_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    return %6 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/reduce_amin_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    return %6 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/vmap_reduce_and_bool_2_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xi1> {mhlo.sharding = ""}) -> tensor<?x3xi1> {
    %0 = stablehlo.constant dense<true> : tensor<i1>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x2x3xi1>, tensor<i1>) -> tensor<?x3xi1>
     reducer(%arg2: tensor<i1>, %arg3: tensor<i1>)  {
      %2 = stablehlo.and %arg2, %arg3 : tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }
    return %1 : tensor<?x3xi1>
  }
}
// ----- testdata/dynamic/reduce_any_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    return %6 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/vmap_reduce_gen_add_scalar_int32_4_6_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x6xi32> {mhlo.sharding = ""}) -> tensor<?x6xi32> {
    %0 = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x4x6xi32>, tensor<i32>) -> tensor<?x6xi32>
     reducer(%arg2: tensor<i32>, %arg3: tensor<i32>)  {
      %2 = stablehlo.add %arg2, %arg3 : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }
    return %1 : tensor<?x6xi32>
  }
}
// ----- testdata/dynamic/vmap_reduce_min_bfloat16_2_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xbf16> {mhlo.sharding = ""}) -> tensor<?x3xbf16> {
    %0 = stablehlo.constant dense<0x7F80> : tensor<bf16>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x2x3xbf16>, tensor<bf16>) -> tensor<?x3xbf16>
     reducer(%arg2: tensor<bf16>, %arg3: tensor<bf16>)  {
      %2 = stablehlo.minimum %arg2, %arg3 : tensor<bf16>
      stablehlo.return %2 : tensor<bf16>
    }
    return %1 : tensor<?x3xbf16>
  }
}
// ----- testdata/dynamic/vmap_reduce_or_bool_2_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xi1> {mhlo.sharding = ""}) -> tensor<?x3xi1> {
    %0 = stablehlo.constant dense<false> : tensor<i1>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x2x3xi1>, tensor<i1>) -> tensor<?x3xi1>
     reducer(%arg2: tensor<i1>, %arg3: tensor<i1>)  {
      %2 = stablehlo.or %arg2, %arg3 : tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }
    return %1 : tensor<?x3xi1>
  }
}
// ----- testdata/dynamic/vmap_reduce_precision_in_bfloat16_out_float32_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xbf16> {mhlo.sharding = ""}) -> tensor<?xbf16> {
    %0 = stablehlo.reduce_precision %arg1, format = e8m23 : tensor<?xbf16>
    return %0 : tensor<?xbf16>
  }
}
// ----- testdata/dynamic/reduce_prod_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    return %6 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/reduce_sum_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg1 init: %0) across dimensions = [1] : (tensor<?x5xf32>, tensor<f32>) -> tensor<?xf32>
     reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<1> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    return %6 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/reduce_window_min_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x8xf32> {mhlo.sharding = ""}) -> tensor<?x7xf32> {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg1, %0) ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.minimum %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {window_dimensions = array<i64: 2, 2>} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x7xf32>
    return %1 : tensor<?x7xf32>
  }
}
// ----- testdata/dynamic/reissue_9975_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?xf32> {
    %0 = stablehlo.constant dense<4> : tensor<i64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<i64>
    %2 = stablehlo.convert %1 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.dynamic_reshape %arg1, %3 : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
    return %4 : tensor<?xf32>
  }
}
// ----- testdata/dynamic/vmap_rem_broadcast_lhs_float32_2_1_3_rhs_float32_2_4_3_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x1x3xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2x4x3xf32> {mhlo.sharding = ""}) -> tensor<?x2x4x3xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.constant dense<4> : tensor<1xi32>
    %4 = stablehlo.constant dense<3> : tensor<1xi32>
    %5 = stablehlo.concatenate %1, %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %arg1, %5, dims = [0, 1, 2, 3] : (tensor<?x2x1x3xf32>, tensor<4xi32>) -> tensor<?x2x4x3xf32>
    %7 = stablehlo.remainder %6, %arg2 : tensor<?x2x4x3xf32>
    return %7 : tensor<?x2x4x3xf32>
  }
}
// ----- testdata/dynamic/vmap_rem_singularity_0_by_0_lhs_float32_2_rhs_float32_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xf32> {mhlo.sharding = ""}, %arg2: tensor<?x2xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.remainder %arg1, %arg2 : tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/vmap_renew_sizes_float32_3_4_5_newsizes_4_15_dimensions_0_1_2_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x4x15xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<4> : tensor<1xi32>
    %3 = stablehlo.constant dense<15> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_reshape %arg1, %4 : (tensor<?x3x4x5xf32>, tensor<3xi32>) -> tensor<?x4x15xf32>
    return %5 : tensor<?x4x15xf32>
  }
}
// ----- testdata/dynamic/vmap_rev_dimensions_float32_3_4_5_dimensions_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x3x4x5xf32> {
    %0 = stablehlo.reverse %arg1, dims = [] : tensor<?x3x4x5xf32>
    return %0 : tensor<?x3x4x5xf32>
  }
}
// ----- testdata/dynamic/vmap_rev_float32_4_5_dimensions_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x5xf32> {mhlo.sharding = ""}) -> tensor<?x4x5xf32> {
    %0 = stablehlo.reverse %arg1, dims = [1] : tensor<?x4x5xf32>
    return %0 : tensor<?x4x5xf32>
  }
}
// ----- testdata/dynamic/vmap_round_rounding_methods_float32_2_5_roundingmethod_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x5xf32> {mhlo.sharding = ""}) -> tensor<?x2x5xf32> {
    %0 = stablehlo.round_nearest_even %arg1 : tensor<?x2x5xf32>
    return %0 : tensor<?x2x5xf32>
  }
}
// ----- testdata/dynamic/vmap_rsqrt_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.rsqrt %arg1 : tensor<?x20x20xbf16>
    return %0 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_scatter_add_modes_out_of_bounds_float32_1_5_scatter10_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x1x5xf32> {
    %0 = stablehlo.constant dense<10> : tensor<1xi64>
    %1 = "stablehlo.scatter"(%arg1, %0, %arg2) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %2 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>} : (tensor<?x1x5xf32>, tensor<1xi64>, tensor<?x1xf32>) -> tensor<?x1x5xf32>
    return %1 : tensor<?x1x5xf32>
  }
}
// ----- testdata/dynamic/vmap_scatter_float32_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1xf32> {mhlo.sharding = ""}, %arg2: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?x1xf32> {
    %0 = stablehlo.constant dense<0> : tensor<1xi64>
    %1 = "stablehlo.scatter"(%arg1, %0, %arg2) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true} : (tensor<?x1xf32>, tensor<1xi64>, tensor<?xf32>) -> tensor<?x1xf32>
    return %1 : tensor<?x1xf32>
  }
}
// ----- testdata/dynamic/vmap_scatter_max_modes_out_of_bounds_float32_1_5_scatter10_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x1x5xf32> {
    %0 = stablehlo.constant dense<10> : tensor<1xi64>
    %1 = "stablehlo.scatter"(%arg1, %0, %arg2) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %2 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>} : (tensor<?x1x5xf32>, tensor<1xi64>, tensor<?x1xf32>) -> tensor<?x1x5xf32>
    return %1 : tensor<?x1x5xf32>
  }
}
// ----- testdata/dynamic/vmap_scatter_min_and_dimension_numbers_float32_10_scatter_0_0_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x10xf32> {mhlo.sharding = ""}, %arg2: tensor<?x3x2xf32> {mhlo.sharding = ""}) -> tensor<?x10xf32> {
    %0 = stablehlo.constant dense<0> : tensor<3x1xi64>
    %1 = "stablehlo.scatter"(%arg1, %0, %arg2) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %2 = stablehlo.minimum %arg3, %arg4 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<?x10xf32>, tensor<3x1xi64>, tensor<?x3x2xf32>) -> tensor<?x10xf32>
    return %1 : tensor<?x10xf32>
  }
}
// ----- testdata/dynamic/vmap_scatter_modes_out_of_bounds_float32_1_5_scatter10_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x1x5xf32> {
    %0 = stablehlo.constant dense<10> : tensor<1xi64>
    %1 = "stablehlo.scatter"(%arg1, %0, %arg2) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>} : (tensor<?x1x5xf32>, tensor<1xi64>, tensor<?x1xf32>) -> tensor<?x1x5xf32>
    return %1 : tensor<?x1x5xf32>
  }
}
// ----- testdata/dynamic/vmap_scatter_mul_modes_out_of_bounds_float32_1_5_scatter10_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x5xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x1x5xf32> {
    %0 = stablehlo.constant dense<10> : tensor<1xi64>
    %1 = "stablehlo.scatter"(%arg1, %0, %arg2) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %2 = stablehlo.multiply %arg3, %arg4 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>} : (tensor<?x1x5xf32>, tensor<1xi64>, tensor<?x1xf32>) -> tensor<?x1x5xf32>
    return %1 : tensor<?x1x5xf32>
  }
}
// ----- testdata/dynamic/select_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3xf32> {mhlo.sharding = ""}) -> tensor<?x3xf32> {
    %0 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %0, %4, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %6 = stablehlo.compare  GT, %arg1, %5,  FLOAT : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xi1>
    %7 = stablehlo.select %6, %arg1, %arg1 : tensor<?x3xi1>, tensor<?x3xf32>
    return %7 : tensor<?x3xf32>
  }
}
// ----- testdata/dynamic/select_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3xf32> {mhlo.sharding = ""}, %arg2: tensor<3xf32> {mhlo.sharding = ""}) -> tensor<?x3xf32> {
    %0 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %0, %4, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %6 = stablehlo.compare  GT, %arg1, %5,  FLOAT : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xi1>
    %7 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.constant dense<3> : tensor<1xi32>
    %10 = stablehlo.concatenate %8, %9, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %arg2, %10, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %12 = stablehlo.select %6, %arg1, %11 : tensor<?x3xi1>, tensor<?x3xf32>
    return %12 : tensor<?x3xf32>
  }
}
// ----- testdata/dynamic/vmap_select_and_gather_add_float32_4_6_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x6xf32> {mhlo.sharding = ""}, %arg2: tensor<?x4x6xf32> {mhlo.sharding = ""}) -> tensor<?x3x5xf32> {
    %0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2:2 = "stablehlo.reduce_window"(%arg2, %arg1, %0, %1) ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<f32>):
      %3 = stablehlo.compare  LE, %arg3, %arg5,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.select %3, %arg3, %arg5 : tensor<i1>, tensor<f32>
      %5 = stablehlo.select %3, %arg4, %arg6 : tensor<i1>, tensor<f32>
      stablehlo.return %4, %5 : tensor<f32>, tensor<f32>
    }) {window_dimensions = array<i64: 1, 2, 2>} : (tensor<?x4x6xf32>, tensor<?x4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<?x3x5xf32>, tensor<?x3x5xf32>)
    return %2#1 : tensor<?x3x5xf32>
  }
}
// ----- testdata/dynamic/vmap_select_n_shapepred_bool_shapeargs_float32_18_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xi1> {mhlo.sharding = ""}, %arg2: tensor<?x18xf32> {mhlo.sharding = ""}, %arg3: tensor<?x18xf32> {mhlo.sharding = ""}) -> tensor<?x18xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<18> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg1, %3, dims = [0] : (tensor<?xi1>, tensor<2xi32>) -> tensor<?x18xi1>
    %5 = stablehlo.select %4, %arg3, %arg2 : tensor<?x18xi1>, tensor<?x18xf32>
    return %5 : tensor<?x18xf32>
  }
}
// ----- testdata/dynamic/vmap_shift_left_lhs_int32_20_20_rhs_int32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xi32> {mhlo.sharding = ""}) -> tensor<?x20x20xi32> {
    %0 = stablehlo.shift_left %arg1, %arg2 : tensor<?x20x20xi32>
    return %0 : tensor<?x20x20xi32>
  }
}
// ----- testdata/dynamic/vmap_shift_right_arithmetic_lhs_int32_20_20_rhs_int32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xi32> {mhlo.sharding = ""}) -> tensor<?x20x20xi32> {
    %0 = stablehlo.shift_right_arithmetic %arg1, %arg2 : tensor<?x20x20xi32>
    return %0 : tensor<?x20x20xi32>
  }
}
// ----- testdata/dynamic/vmap_sign_uint64_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xui64> {mhlo.sharding = ""}) -> tensor<?x20x20xui64> {
    %0 = stablehlo.constant dense<0> : tensor<ui64>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.constant dense<20> : tensor<1xi32>
    %5 = stablehlo.concatenate %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %0, %5, dims = [] : (tensor<ui64>, tensor<3xi32>) -> tensor<?x20x20xui64>
    %7 = stablehlo.compare  EQ, %arg1, %6,  UNSIGNED : (tensor<?x20x20xui64>, tensor<?x20x20xui64>) -> tensor<?x20x20xi1>
    %8 = stablehlo.constant dense<0> : tensor<ui64>
    %9 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %10 = stablehlo.reshape %9 : (tensor<i32>) -> tensor<1xi32>
    %11 = stablehlo.constant dense<20> : tensor<1xi32>
    %12 = stablehlo.constant dense<20> : tensor<1xi32>
    %13 = stablehlo.concatenate %10, %11, %12, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %14 = stablehlo.dynamic_broadcast_in_dim %8, %13, dims = [] : (tensor<ui64>, tensor<3xi32>) -> tensor<?x20x20xui64>
    %15 = stablehlo.constant dense<1> : tensor<ui64>
    %16 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %17 = stablehlo.reshape %16 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.constant dense<20> : tensor<1xi32>
    %19 = stablehlo.constant dense<20> : tensor<1xi32>
    %20 = stablehlo.concatenate %17, %18, %19, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %21 = stablehlo.dynamic_broadcast_in_dim %15, %20, dims = [] : (tensor<ui64>, tensor<3xi32>) -> tensor<?x20x20xui64>
    %22 = stablehlo.select %7, %14, %21 : tensor<?x20x20xi1>, tensor<?x20x20xui64>
    return %22 : tensor<?x20x20xui64>
  }
}
// ----- testdata/dynamic/vmap_sin_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.sine %arg1 : tensor<?x20x20xbf16>
    return %0 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/vmap_slice_a_float32_8_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x8xf32> {mhlo.sharding = ""}) -> tensor<?x3xf32> {
    %0 = stablehlo.constant dense<0> : tensor<1xi32>
    %1 = stablehlo.constant dense<1> : tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.constant dense<6> : tensor<1xi32>
    %6 = stablehlo.concatenate %4, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = stablehlo.constant dense<1> : tensor<1xi32>
    %8 = stablehlo.constant dense<2> : tensor<1xi32>
    %9 = stablehlo.concatenate %7, %8, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = stablehlo.real_dynamic_slice %arg1, %2, %6, %9 : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
    return %10 : tensor<?x3xf32>
  }
}
// ----- testdata/dynamic/slice_entire_axis_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.constant dense<0> : tensor<1xi32>
    %1 = stablehlo.constant dense<1> : tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.constant dense<3> : tensor<1xi32>
    %6 = stablehlo.concatenate %4, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = stablehlo.constant dense<1> : tensor<1xi32>
    %8 = stablehlo.constant dense<1> : tensor<1xi32>
    %9 = stablehlo.concatenate %7, %8, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = stablehlo.real_dynamic_slice %arg1, %2, %6, %9 : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x2xf32>
    return %10 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/slice_in_dim_stride_2_even_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4xf32> {mhlo.sharding = ""}) -> tensor<?x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<1xi32>
    %1 = stablehlo.constant dense<0> : tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.constant dense<4> : tensor<1xi32>
    %6 = stablehlo.concatenate %4, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = stablehlo.constant dense<2> : tensor<1xi32>
    %8 = stablehlo.constant dense<1> : tensor<1xi32>
    %9 = stablehlo.concatenate %7, %8, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = stablehlo.real_dynamic_slice %arg1, %2, %6, %9 : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
    return %10 : tensor<?x4xf32>
  }
}
// ----- testdata/dynamic/vmap_sort_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x5x7xi32> {mhlo.sharding = ""}) -> tensor<?x5x7xi32> {
    %0 = "stablehlo.sort"(%arg1) ({
    ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>):
      %1 = stablehlo.compare  LT, %arg2, %arg3,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) {dimension = 1 : i64} : (tensor<?x5x7xi32>) -> tensor<?x5x7xi32>
    return %0 : tensor<?x5x7xi32>
  }
}
// ----- testdata/dynamic/vmap_sort_multiple_arrays_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x100xi32> {mhlo.sharding = ""}, %arg2: tensor<?x100xi32> {mhlo.sharding = ""}) -> (tensor<?x100xi32>, tensor<?x100xi32>) {
    %0:2 = "stablehlo.sort"(%arg1, %arg2) ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<i32>, %arg6: tensor<i32>):
      %1 = stablehlo.compare  LT, %arg3, %arg4,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) {dimension = 1 : i64, is_stable = true} : (tensor<?x100xi32>, tensor<?x100xi32>) -> (tensor<?x100xi32>, tensor<?x100xi32>)
    return %0#0, %0#1 : tensor<?x100xi32>, tensor<?x100xi32>
  }
}
// ----- testdata/dynamic/vmap_sqrt_bfloat16_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xbf16> {mhlo.sharding = ""}) -> tensor<?x20x20xbf16> {
    %0 = stablehlo.sqrt %arg1 : tensor<?x20x20xbf16>
    return %0 : tensor<?x20x20xbf16>
  }
}
// ----- testdata/dynamic/squeeze_axis_empty_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?xf32> {mhlo.sharding = ""}) -> tensor<?xf32> {
    return %arg1 : tensor<?xf32>
  }
}
// ----- testdata/dynamic/squeeze_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x1xf32> {mhlo.sharding = ""}) -> tensor<?xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.dynamic_reshape %arg1, %1 : (tensor<?x1x1xf32>, tensor<1xi32>) -> tensor<?xf32>
    return %2 : tensor<?xf32>
  }
}
// ----- testdata/dynamic/vmap_squeeze_infloat32_1_2_dimensions_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1x2xf32> {mhlo.sharding = ""}) -> tensor<?x2xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_reshape %arg1, %3 : (tensor<?x1x2xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    return %4 : tensor<?x2xf32>
  }
}
// ----- testdata/dynamic/vmap_sub_broadcasting_lhs_float32_20_20_rhs_float32_1_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x1x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<20> : tensor<1xi32>
    %3 = stablehlo.constant dense<20> : tensor<1xi32>
    %4 = stablehlo.concatenate %1, %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %arg2, %4, dims = [0, 1, 2] : (tensor<?x1x20xf32>, tensor<3xi32>) -> tensor<?x20x20xf32>
    %6 = stablehlo.subtract %arg1, %5 : tensor<?x20x20xf32>
    return %6 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/vmap_sub_lhs_float32_20_20_rhs_float32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xf32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xf32> {mhlo.sharding = ""}) -> tensor<?x20x20xf32> {
    %0 = stablehlo.subtract %arg1, %arg2 : tensor<?x20x20xf32>
    return %0 : tensor<?x20x20xf32>
  }
}
// ----- testdata/dynamic/tile_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3xf32> {mhlo.sharding = ""}) -> tensor<?x6xf32> {
    %0 = stablehlo.constant dense<1> : tensor<1xi32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.constant dense<3> : tensor<1xi32>
    %5 = stablehlo.concatenate %0, %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %6 = stablehlo.dynamic_reshape %arg1, %5 : (tensor<?x3xf32>, tensor<4xi32>) -> tensor<1x?x1x3xf32>
    %7 = stablehlo.constant dense<1> : tensor<1xi32>
    %8 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %9 = stablehlo.reshape %8 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.constant dense<3> : tensor<1xi32>
    %11 = stablehlo.concatenate %7, %9, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %12 = stablehlo.dynamic_reshape %6, %11 : (tensor<1x?x1x3xf32>, tensor<3xi32>) -> tensor<1x?x3xf32>
    %13 = stablehlo.constant dense<1> : tensor<1xi32>
    %14 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %15 = stablehlo.reshape %14 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.constant dense<2> : tensor<1xi32>
    %17 = stablehlo.constant dense<3> : tensor<1xi32>
    %18 = stablehlo.concatenate %13, %15, %16, %17, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %19 = stablehlo.dynamic_broadcast_in_dim %12, %18, dims = [0, 1, 3] : (tensor<1x?x3xf32>, tensor<4xi32>) -> tensor<1x?x2x3xf32>
    %20 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %21 = stablehlo.reshape %20 : (tensor<i32>) -> tensor<1xi32>
    %22 = stablehlo.constant dense<6> : tensor<1xi32>
    %23 = stablehlo.concatenate %21, %22, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %24 = stablehlo.dynamic_reshape %19, %23 : (tensor<1x?x2x3xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    return %24 : tensor<?x6xf32>
  }
}
// ----- testdata/dynamic/tile_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2xf32> {mhlo.sharding = ""}) -> tensor<?x?xf32> {
    %0 = stablehlo.constant dense<1> : tensor<1xi32>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<1> : tensor<1xi32>
    %4 = stablehlo.constant dense<2> : tensor<1xi32>
    %5 = stablehlo.concatenate %0, %2, %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %6 = stablehlo.dynamic_reshape %arg1, %5 : (tensor<?x2xf32>, tensor<4xi32>) -> tensor<1x?x1x2xf32>
    %7 = stablehlo.constant dense<1> : tensor<1xi32>
    %8 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %9 = stablehlo.reshape %8 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.constant dense<2> : tensor<1xi32>
    %11 = stablehlo.concatenate %7, %9, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %12 = stablehlo.dynamic_reshape %6, %11 : (tensor<1x?x1x2xf32>, tensor<3xi32>) -> tensor<1x?x2xf32>
    %13 = stablehlo.constant dense<1> : tensor<1xi32>
    %14 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %15 = stablehlo.reshape %14 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %17 = stablehlo.reshape %16 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.constant dense<2> : tensor<1xi32>
    %19 = stablehlo.concatenate %13, %15, %17, %18, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %20 = stablehlo.dynamic_broadcast_in_dim %12, %19, dims = [0, 1, 3] : (tensor<1x?x2xf32>, tensor<4xi32>) -> tensor<1x?x?x2xf32>
    %21 = stablehlo.constant dense<2> : tensor<i64>
    %22 = stablehlo.multiply %arg0, %21 : tensor<i64>
    %23 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %24 = stablehlo.reshape %23 : (tensor<i32>) -> tensor<1xi32>
    %25 = stablehlo.convert %22 : (tensor<i64>) -> tensor<i32>
    %26 = stablehlo.reshape %25 : (tensor<i32>) -> tensor<1xi32>
    %27 = stablehlo.concatenate %24, %26, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %28 = stablehlo.dynamic_reshape %20, %27 : (tensor<1x?x?x2xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %28 : tensor<?x?xf32>
  }
}
// ----- testdata/dynamic/vmap_transpose_float32_2_3_permutation_1_0_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x2x3xf32> {mhlo.sharding = ""}) -> tensor<?x3x2xf32> {
    %0 = stablehlo.transpose %arg1, dims = [0, 2, 1] : (tensor<?x2x3xf32>) -> tensor<?x3x2xf32>
    return %0 : tensor<?x3x2xf32>
  }
}
// ----- testdata/dynamic/tri_N_poly_M_None_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x1xf32> {mhlo.sharding = ""}) -> tensor<?x?xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_iota %4, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %8 = stablehlo.reshape %7 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %10 = stablehlo.reshape %9 : (tensor<i32>) -> tensor<1xi32>
    %11 = stablehlo.concatenate %8, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = stablehlo.dynamic_broadcast_in_dim %6, %11, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x?xi32>
    %13 = stablehlo.add %5, %12 : tensor<?x?xi32>
    %14 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %15 = stablehlo.reshape %14 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %17 = stablehlo.reshape %16 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.concatenate %15, %17, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %19 = stablehlo.dynamic_iota %18, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
    %20 = stablehlo.compare  GE, %13, %19,  SIGNED : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi1>
    %21 = stablehlo.convert %20 : (tensor<?x?xi1>) -> tensor<?x?xf32>
    %22 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %23 = stablehlo.reshape %22 : (tensor<i32>) -> tensor<1xi32>
    %24 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %25 = stablehlo.reshape %24 : (tensor<i32>) -> tensor<1xi32>
    %26 = stablehlo.concatenate %23, %25, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %27 = stablehlo.dynamic_broadcast_in_dim %arg1, %26, dims = [0, 1] : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %28 = stablehlo.add %21, %27 : tensor<?x?xf32>
    return %28 : tensor<?x?xf32>
  }
}
// ----- testdata/dynamic/vmap_triangular_solve_a_complex64_4_4_b_complex64_4_1_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x4x4xcomplex<f32>> {mhlo.sharding = ""}, %arg2: tensor<?x4x1xcomplex<f32>> {mhlo.sharding = ""}) -> tensor<?x4x1xcomplex<f32>> {
    %0 = "stablehlo.triangular_solve"(%arg1, %arg2) {left_side = true, lower = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true} : (tensor<?x4x4xcomplex<f32>>, tensor<?x4x1xcomplex<f32>>) -> tensor<?x4x1xcomplex<f32>>
    return %0 : tensor<?x4x1xcomplex<f32>>
  }
}
// ----- testdata/dynamic/vmap_xor_lhs_int32_20_20_rhs_int32_20_20_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x20x20xi32> {mhlo.sharding = ""}, %arg2: tensor<?x20x20xi32> {mhlo.sharding = ""}) -> tensor<?x20x20xi32> {
    %0 = stablehlo.xor %arg1, %arg2 : tensor<?x20x20xi32>
    return %0 : tensor<?x20x20xi32>
  }
}
// ----- testdata/dynamic/vmap_zeros_like_bfloat16_3_4_5_dynamic
module @jit_fun_flat_jax {
  func.func public @main(%arg0: tensor<i64>, %arg1: tensor<?x3x4x5xbf16> {mhlo.sharding = ""}) -> tensor<?x3x4x5xbf16> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.constant dense<3> : tensor<1xi32>
    %4 = stablehlo.constant dense<4> : tensor<1xi32>
    %5 = stablehlo.constant dense<5> : tensor<1xi32>
    %6 = stablehlo.concatenate %2, %3, %4, %5, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %7 = stablehlo.dynamic_broadcast_in_dim %0, %6, dims = [] : (tensor<bf16>, tensor<4xi32>) -> tensor<?x3x4x5xbf16>
    return %7 : tensor<?x3x4x5xbf16>
  }
}
// ----- testdata/dynamic_slice_complex64_3_int64_1
module @jit_main {
  func.func public @main() -> (tensor<1xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<3xcomplex<f32>>, tensor<1xi64>)
    %1 = call @expected() : () -> tensor<1xcomplex<f32>>
    %2 = stablehlo.slice %0#1 [0:1] : (tensor<1xi64>) -> tensor<1xi64>
    %3 = stablehlo.reshape %2 : (tensor<1xi64>) -> tensor<i64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %4 = stablehlo.compare  LT, %3, %c,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<3> : tensor<i64>
    %5 = stablehlo.add %3, %c_0 : tensor<i64>
    %6 = stablehlo.select %4, %5, %3 : tensor<i1>, tensor<i64>
    %7 = stablehlo.dynamic_slice %0#0, %6, sizes = [1] : (tensor<3xcomplex<f32>>, tensor<i64>) -> tensor<1xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%7, %1) {has_side_effect = true} : (tensor<1xcomplex<f32>>, tensor<1xcomplex<f32>>) -> ()
    return %7 : tensor<1xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3xcomplex<f32>>, tensor<1xi64>) {
    %cst = stablehlo.constant dense<[(4.47394419,0.78483057), (3.53778577,1.61704981), (-5.646280e-01,-1.02732503)]> : tensor<3xcomplex<f32>>
    %c = stablehlo.constant dense<1> : tensor<1xi64>
    return %cst, %c : tensor<3xcomplex<f32>>, tensor<1xi64>
  }
  func.func private @expected() -> (tensor<1xcomplex<f32>>) {
    %cst = stablehlo.constant dense<(3.53778577,1.61704981)> : tensor<1xcomplex<f32>>
    return %cst : tensor<1xcomplex<f32>>
  }
}
// ----- testdata/dynamic_update_slice_complex64_3_complex64_1_int64_1
module @jit_main {
  func.func public @main() -> (tensor<3xcomplex<f32>> {jax.result_info = ""}) {
    %0:3 = call @inputs() : () -> (tensor<3xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<1xi64>)
    %1 = call @expected() : () -> tensor<3xcomplex<f32>>
    %2 = stablehlo.slice %0#2 [0:1] : (tensor<1xi64>) -> tensor<1xi64>
    %3 = stablehlo.reshape %2 : (tensor<1xi64>) -> tensor<i64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %4 = stablehlo.compare  LT, %3, %c,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<3> : tensor<i64>
    %5 = stablehlo.add %3, %c_0 : tensor<i64>
    %6 = stablehlo.select %4, %5, %3 : tensor<i1>, tensor<i64>
    %7 = stablehlo.dynamic_update_slice %0#0, %0#1, %6 : (tensor<3xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<i64>) -> tensor<3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%7, %1) {has_side_effect = true} : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> ()
    return %7 : tensor<3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<1xi64>) {
    %cst = stablehlo.constant dense<[(4.28428316,-8.79030799), (-3.83097982,3.72841167), (3.96138382,2.06490088)]> : tensor<3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<(2.787180e+00,-4.52139091)> : tensor<1xcomplex<f32>>
    %c = stablehlo.constant dense<1> : tensor<1xi64>
    return %cst, %cst_0, %c : tensor<3xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<1xi64>
  }
  func.func private @expected() -> (tensor<3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(4.28428316,-8.79030799), (2.787180e+00,-4.52139091), (3.96138382,2.06490088)]> : tensor<3xcomplex<f32>>
    return %cst : tensor<3xcomplex<f32>>
  }
}
// ----- testdata/eq_complex64_complex64
module @jit_main {
  func.func public @main() -> (tensor<i1> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<complex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<i1>
    %2 = stablehlo.compare  EQ, %0#0, %0#1,  FLOAT : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<i1>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<i1>, tensor<i1>) -> ()
    return %2 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<complex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<(3.33855581,0.223617241)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<(-0.893874407,0.322998732)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<complex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<i1>) {
    %c = stablehlo.constant dense<false> : tensor<i1>
    return %c : tensor<i1>
  }
}
// ----- testdata/fft_complex64_14_15_0_17
module @jit_main {
  func.func public @main() -> (tensor<14x15x0x33xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<14x15x0x17xcomplex<f32>>
    %1 = call @expected() : () -> tensor<14x15x0x33xf32>
    %2 = stablehlo.fft %0, type =  IRFFT, length = [33] : (tensor<14x15x0x17xcomplex<f32>>) -> tensor<14x15x0x33xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<14x15x0x33xf32>, tensor<14x15x0x33xf32>) -> ()
    return %2 : tensor<14x15x0x33xf32>
  }
  func.func private @inputs() -> (tensor<14x15x0x17xcomplex<f32>>) {
    %cst = stablehlo.constant dense<(0.0, 0.0)> : tensor<14x15x0x17xcomplex<f32>>
    return %cst : tensor<14x15x0x17xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<14x15x0x33xf32>) {
    %cst = stablehlo.constant dense<> : tensor<14x15x0x33xf32>
    return %cst : tensor<14x15x0x33xf32>
  }
}
// ----- testdata/gather_float32_1_2_int64_1_2
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<1x2xf32>, tensor<1x2xi64>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = "stablehlo.gather"(%0#0, %0#1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<1x2xf32>, tensor<1x2xi64>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1x2xf32>, tensor<1x2xi64>) {
    %cst = stablehlo.constant dense<[[-4.18829679, -0.571287096]]> : tensor<1x2xf32>
    %c = stablehlo.constant dense<[[0, 1]]> : tensor<1x2xi64>
    return %cst, %c : tensor<1x2xf32>, tensor<1x2xi64>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<-0.571287096> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/ge_complex64_complex64
module @jit_main {
  func.func public @main() -> (tensor<i1> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<complex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<i1>
    %2 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %4 = stablehlo.compare  EQ, %2, %3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.imag %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %6 = stablehlo.imag %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %7 = stablehlo.compare  GE, %5, %6,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %9 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %10 = stablehlo.compare  GE, %8, %9,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %11 = stablehlo.select %4, %7, %10 : tensor<i1>, tensor<i1>
    stablehlo.custom_call @check.expect_eq(%11, %1) {has_side_effect = true} : (tensor<i1>, tensor<i1>) -> ()
    return %11 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<complex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<(6.24502802,0.706214964)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<(4.1928339,-0.170854881)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<complex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<i1>) {
    %c = stablehlo.constant dense<true> : tensor<i1>
    return %c : tensor<i1>
  }
}
// ----- testdata/gt_complex64_complex64
module @jit_main {
  func.func public @main() -> (tensor<i1> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<complex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<i1>
    %2 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %4 = stablehlo.compare  EQ, %2, %3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.imag %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %6 = stablehlo.imag %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %7 = stablehlo.compare  GT, %5, %6,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %9 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %10 = stablehlo.compare  GT, %8, %9,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %11 = stablehlo.select %4, %7, %10 : tensor<i1>, tensor<i1>
    stablehlo.custom_call @check.expect_eq(%11, %1) {has_side_effect = true} : (tensor<i1>, tensor<i1>) -> ()
    return %11 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<complex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<(-2.61472321,0.963345229)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<(-1.5713464,-1.46954489)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<complex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<i1>) {
    %c = stablehlo.constant dense<false> : tensor<i1>
    return %c : tensor<i1>
  }
}
// ----- testdata/imag_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<2x3xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<2x3xf32>
    %2 = stablehlo.imag %0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
    return %2 : tensor<2x3xf32>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(3.67362022,-1.66428089), (-1.61224163,-5.23298216), (-2.50501657,2.34280014)], [(-1.23726118,-0.0690847039), (5.48692369,3.16256213), (-0.877287447,5.95690441)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[-1.66428089, -5.23298216, 2.34280014], [-0.0690847039, 3.16256213, 5.95690441]]> : tensor<2x3xf32>
    return %cst : tensor<2x3xf32>
  }
}
// ----- testdata/iota_
module @jit_main {
  func.func public @main() -> (tensor<2x3xui8> {jax.result_info = ""}) {
    %0 = call @expected() : () -> tensor<2x3xui8>
    %1 = stablehlo.iota dim = 0 : tensor<2x3xui8>
    stablehlo.custom_call @check.expect_eq(%1, %0) {has_side_effect = true} : (tensor<2x3xui8>, tensor<2x3xui8>) -> ()
    return %1 : tensor<2x3xui8>
  }
  func.func private @expected() -> (tensor<2x3xui8>) {
    %c = stablehlo.constant dense<[[0, 0, 0], [1, 1, 1]]> : tensor<2x3xui8>
    return %c : tensor<2x3xui8>
  }
}
// ----- testdata/le_complex64_complex64
module @jit_main {
  func.func public @main() -> (tensor<i1> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<complex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<i1>
    %2 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %4 = stablehlo.compare  EQ, %2, %3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.imag %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %6 = stablehlo.imag %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %7 = stablehlo.compare  LE, %5, %6,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %9 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %10 = stablehlo.compare  LE, %8, %9,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %11 = stablehlo.select %4, %7, %10 : tensor<i1>, tensor<i1>
    stablehlo.custom_call @check.expect_eq(%11, %1) {has_side_effect = true} : (tensor<i1>, tensor<i1>) -> ()
    return %11 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<complex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<(1.10811841,-6.992440e-02)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<(3.3754487,-2.81067419)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<complex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<i1>) {
    %c = stablehlo.constant dense<true> : tensor<i1>
    return %c : tensor<i1>
  }
}
// ----- testdata/lt_complex64_complex64
module @jit_main {
  func.func public @main() -> (tensor<i1> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<complex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<i1>
    %2 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %4 = stablehlo.compare  EQ, %2, %3,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.imag %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %6 = stablehlo.imag %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %7 = stablehlo.compare  LT, %5, %6,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.real %0#0 : (tensor<complex<f32>>) -> tensor<f32>
    %9 = stablehlo.real %0#1 : (tensor<complex<f32>>) -> tensor<f32>
    %10 = stablehlo.compare  LT, %8, %9,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %11 = stablehlo.select %4, %7, %10 : tensor<i1>, tensor<i1>
    stablehlo.custom_call @check.expect_eq(%11, %1) {has_side_effect = true} : (tensor<i1>, tensor<i1>) -> ()
    return %11 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<complex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<(2.96914268,0.626138687)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<(-1.49120331,0.420010298)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<complex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<i1>) {
    %c = stablehlo.constant dense<false> : tensor<i1>
    return %c : tensor<i1>
  }
}
// ----- testdata/max_complex64_3_3_complex64_3_3
module @jit_main {
  func.func public @main() -> (tensor<3x3xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
    %1 = call @expected() : () -> tensor<3x3xcomplex<f32>>
    %2 = stablehlo.real %0#0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %3 = stablehlo.real %0#1 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %4 = stablehlo.compare  EQ, %2, %3,  FLOAT : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xi1>
    %5 = stablehlo.compare  GT, %2, %3,  FLOAT : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xi1>
    %6 = stablehlo.imag %0#0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %7 = stablehlo.imag %0#1 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %8 = stablehlo.compare  GT, %6, %7,  FLOAT : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xi1>
    %9 = stablehlo.select %4, %8, %5 : tensor<3x3xi1>, tensor<3x3xi1>
    %10 = stablehlo.select %9, %0#0, %0#1 : tensor<3x3xi1>, tensor<3x3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%10, %1) {has_side_effect = true} : (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) -> ()
    return %10 : tensor<3x3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0x7FC00000,0.000000e+00), (0x7FC00000,0.000000e+00), (0x7FC00000,0.000000e+00)], [(0x7F800000,0.000000e+00), (0x7F800000,0.000000e+00), (0x7F800000,0.000000e+00)], [(0xFF800000,0.000000e+00), (0xFF800000,0.000000e+00), (0xFF800000,0.000000e+00)]]> : tensor<3x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)]]> : tensor<3x3xcomplex<f32>>
    return %cst, %cst_0 : tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0x7F800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)]]> : tensor<3x3xcomplex<f32>>
    return %cst : tensor<3x3xcomplex<f32>>
  }
}
// ----- testdata/min_complex64_3_3_complex64_3_3
module @jit_main {
  func.func public @main() -> (tensor<3x3xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
    %1 = call @expected() : () -> tensor<3x3xcomplex<f32>>
    %2 = stablehlo.real %0#0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %3 = stablehlo.real %0#1 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %4 = stablehlo.compare  EQ, %2, %3,  FLOAT : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xi1>
    %5 = stablehlo.compare  LT, %2, %3,  FLOAT : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xi1>
    %6 = stablehlo.imag %0#0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %7 = stablehlo.imag %0#1 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %8 = stablehlo.compare  LT, %6, %7,  FLOAT : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xi1>
    %9 = stablehlo.select %4, %8, %5 : tensor<3x3xi1>, tensor<3x3xi1>
    %10 = stablehlo.select %9, %0#0, %0#1 : tensor<3x3xi1>, tensor<3x3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%10, %1) {has_side_effect = true} : (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) -> ()
    return %10 : tensor<3x3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0x7FC00000,0.000000e+00), (0x7FC00000,0.000000e+00), (0x7FC00000,0.000000e+00)], [(0x7F800000,0.000000e+00), (0x7F800000,0.000000e+00), (0x7F800000,0.000000e+00)], [(0xFF800000,0.000000e+00), (0xFF800000,0.000000e+00), (0xFF800000,0.000000e+00)]]> : tensor<3x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)]]> : tensor<3x3xcomplex<f32>>
    return %cst, %cst_0 : tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0x7F800000,0.000000e+00), (0xFF800000,0.000000e+00)], [(0x7FC00000,0.000000e+00), (0xFF800000,0.000000e+00), (0xFF800000,0.000000e+00)]]> : tensor<3x3xcomplex<f32>>
    return %cst : tensor<3x3xcomplex<f32>>
  }
}
// ----- testdata/ne_complex64_complex64
module @jit_main {
  func.func public @main() -> (tensor<i1> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<complex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<i1>
    %2 = stablehlo.compare  NE, %0#0, %0#1,  FLOAT : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<i1>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<i1>, tensor<i1>) -> ()
    return %2 : tensor<i1>
  }
  func.func private @inputs() -> (tensor<complex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<(0.144725367,-4.32045507)> : tensor<complex<f32>>
    %cst_0 = stablehlo.constant dense<(3.18933845,-3.05299783)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<complex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<i1>) {
    %c = stablehlo.constant dense<true> : tensor<i1>
    return %c : tensor<i1>
  }
}
// ----- testdata/neg_int8_20_20
module @jit_main {
  func.func public @main() -> (tensor<20x20xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<20x20xi8>
    %1 = call @expected() : () -> tensor<20x20xi8>
    %2 = stablehlo.negate %0 : tensor<20x20xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<20x20xi8>, tensor<20x20xi8>) -> ()
    return %2 : tensor<20x20xi8>
  }
  func.func private @inputs() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0xFFFD00FD0003FDFE05FFFF0401020103FFFC00FEFBFE06000200FEFF05FEFC0102020300FEFD00000002FD030400FB01FC0501FF0104000301FFFB00050300FEF900F8FFFB01F9FF01FDFD0300FAF800FF0301FFFE01FFFC010402FE0503FFFA02FE020200FF040200FFFF02FB000302FE01FBFDFFFF04030000FE00FFFFFF0302FC02FD03FE0202FDFD030103030500F903FC02040303FD0102FD0502FBFE02FF0101FBFD01FEFB0000000003FF0002030100000100FFFF00060403FC030400FCFC0001FE02FE00FF04FBFDFA00FFFF000200FEFD00FF000301F9FD00000001FD010000040303FD050300FF00FF03FE01000200FDFE000001FE0300000001000101FD00000100FE02FCFF03FDFC02FBFCFE03000700FDFE0002020201FF0100FDFEFD000301FB00FD0200010101FC03FF0003000100FF000104030200020102FEFCFE04020000FD00FC03FE0003FE01030200FF000301FD02020000010300FE000000FF0201020202FDFEFF0002020202010003FE0104FD0300FF01FDFFFC00000000FE00FD0001F800FDFF0001FF02"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
  func.func private @expected() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x0103000300FD0302FB0101FCFFFEFFFD010400020502FA00FE000201FB0204FFFEFEFD000203000000FE03FDFC0005FF04FBFF01FFFC00FDFF010500FBFD00020700080105FF0701FF0303FD0006080001FDFF0102FF0104FFFCFE02FBFD0106FE02FEFE0001FCFE000101FE0500FDFE02FF05030101FCFD00000200010101FDFE04FE03FD02FEFE0303FDFFFDFDFB0007FD04FEFCFDFD03FFFE03FBFE0502FE01FFFF0503FF020500000000FD0100FEFDFF0000FF00010100FAFCFD04FDFC00040400FF02FE020001FC05030600010100FE000203000100FDFF0703000000FF03FF0000FCFDFD03FBFD00010001FD02FF00FE0003020000FF02FD000000FF00FFFF030000FF0002FE0401FD0304FE050402FD00F900030200FEFEFEFF01FF0003020300FDFF050003FE00FFFFFF04FD0100FD00FF000100FFFCFDFE00FEFFFE020402FCFE0000030004FD0200FD02FFFDFE000100FDFF03FEFE0000FFFD000200000001FEFFFEFEFE03020100FEFEFEFEFF00FD02FFFC03FD0001FF0301040000000002000300FF0800030100FF01FE"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
}
// ----- testdata/pad_complex64_2_3_complex64
module @jit_main {
  func.func public @main() -> (tensor<6x4xcomplex<f32>> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>)
    %1 = call @expected() : () -> tensor<6x4xcomplex<f32>>
    %2 = stablehlo.pad %0#0, %0#1, low = [1, 0], high = [2, 1], interior = [1, 0] : (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<6x4xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<6x4xcomplex<f32>>, tensor<6x4xcomplex<f32>>) -> ()
    return %2 : tensor<6x4xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) {
    %cst = stablehlo.constant dense<[[(-1.39428914E-4,8.64812405E-4), (-0.00152378506,-0.0014140791), (-0.00155372021,5.68573596E-4)], [(1.94506283E-4,0.00147564197), (-0.00122765638,-2.12210784E-4), (-3.98263692E-5,4.93056548E-4)]]> : tensor<2x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    return %cst, %cst_0 : tensor<2x3xcomplex<f32>>, tensor<complex<f32>>
  }
  func.func private @expected() -> (tensor<6x4xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00)], [(-1.39428914E-4,8.64812405E-4), (-0.00152378506,-0.0014140791), (-0.00155372021,5.68573596E-4), (0.000000e+00,0.000000e+00)], [(0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00)], [(1.94506283E-4,0.00147564197), (-0.00122765638,-2.12210784E-4), (-3.98263692E-5,4.93056548E-4), (0.000000e+00,0.000000e+00)], [(0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00)], [(0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00), (0.000000e+00,0.000000e+00)]]> : tensor<6x4xcomplex<f32>>
    return %cst : tensor<6x4xcomplex<f32>>
  }
}
// ----- testdata/population_count_int8_4
module @jit_main {
  func.func public @main() -> (tensor<4xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<4xi8>
    %1 = call @expected() : () -> tensor<4xi8>
    %2 = stablehlo.popcnt %0 : tensor<4xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<4xi8>, tensor<4xi8>) -> ()
    return %2 : tensor<4xi8>
  }
  func.func private @inputs() -> (tensor<4xi8>) {
    %c = stablehlo.constant dense<[-1, -2, 0, 1]> : tensor<4xi8>
    return %c : tensor<4xi8>
  }
  func.func private @expected() -> (tensor<4xi8>) {
    %c = stablehlo.constant dense<[8, 7, 0, 1]> : tensor<4xi8>
    return %c : tensor<4xi8>
  }
}
// ----- testdata/pow_float32_float32_4_5_6
module @jit_main {
  func.func public @main() -> (tensor<4x5x6xf32> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<f32>, tensor<4x5x6xf32>)
    %1 = call @expected() : () -> tensor<4x5x6xf32>
    %2 = stablehlo.broadcast_in_dim %0#0, dims = [] : (tensor<f32>) -> tensor<4x5x6xf32>
    %3 = stablehlo.power %2, %0#1 : tensor<4x5x6xf32>
    stablehlo.custom_call @check.expect_close(%3, %1) {has_side_effect = true} : (tensor<4x5x6xf32>, tensor<4x5x6xf32>) -> ()
    return %3 : tensor<4x5x6xf32>
  }
  func.func private @inputs() -> (tensor<f32>, tensor<4x5x6xf32>) {
    %cst = stablehlo.constant dense<"0x7CE558C029AFCAC01AF2D63F1568DDBF92C768BF57FCF1C079BBB8BF2CB3CBBD1E9377BF2889CA3F1C12823F9A68CFBF4E220DC07D5D0BC1C98781C04926384022A93DC05F7A0141185A1640A2EA3640AB68263E4298D0BF5B95D0BF1A0507C068D6CF3FF20246C018ECA6BFC08F09BF32E96240B46DF13F4122D4C089DE3B40D0563B400EF9D53F1783F3BFE00DFFC05FBC8D400F41C9C0B992174004C2C9BF79F36FC011B4CF3E19000B407188863F5AC6B53C174544BF647490C0951D41C0B4EB98C053E64FC004EA0340AA5314409DF09EBE9614A5C08A29C83E2C0F6EC03FF265406FF1C1BF9FAC31C0DAE3E4BF510618BF0AFD9740296A9C3FF715BABF99346040235AFE3F57E25140BC8001BF46084B4081327DC078254BC0CDD0E83FA06478C0E25DBD402B118B40693628BEF591A0BF8415ADBF9D84DEC0901211BFC47C09C02E0D9FC0DD537A407194034037009A3F0D8AD63F80DB6BC0F7C887C04196DEBFE6F7173F2E03A93FEFC6F9C0C3A21BC0204BE5BE670B4D4026473A40A18B8B40E83C94C08C7B91C097A5B8BF5E38F13D751867BF56ED96BF20E1273FFCF191BFA71AC8BFD8C5A6BFBC7407400378CABF15611BC096270C3F0A37063FCF6E65404D6483C0AEF4E23EB9381EC086A512C0528EAD40A090A73F37ECAABF"> : tensor<4x5x6xf32>
    %cst_0 = stablehlo.constant dense<-1.75889099> : tensor<f32>
    return %cst_0, %cst : tensor<f32>, tensor<4x5x6xf32>
  }
  func.func private @expected() -> (tensor<4x5x6xf32>) {
    %cst = stablehlo.constant dense<0xFFC00000> : tensor<4x5x6xf32>
    return %cst : tensor<4x5x6xf32>
  }
}
// ----- testdata/real_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<2x3xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<2x3xf32>
    %2 = stablehlo.real %0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
    return %2 : tensor<2x3xf32>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-0.132573813,0.224451914), (3.45699096,-1.8876127), (-2.03585815,-4.21114063)], [(-0.65348196,-0.266635329), (0.264353186,-1.13852882), (0.951290428,-2.83588266)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[-0.132573813, 3.45699096, -2.03585815], [-0.65348196, 0.264353186, 0.951290428]]> : tensor<2x3xf32>
    return %cst : tensor<2x3xf32>
  }
}
// ----- testdata/reduce_float32_4_6_int32_4_6
module @jit_main {
  func.func public @main() -> (tensor<6xf32> {jax.result_info = "[0]"}, tensor<6xi32> {jax.result_info = "[1]"}) {
    %0:2 = call @inputs() : () -> (tensor<4x6xf32>, tensor<4x6xi32>)
    %1:2 = call @expected() : () -> (tensor<6xf32>, tensor<6xi32>)
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:2 = stablehlo.reduce(%0#0 init: %cst), (%0#1 init: %c) across dimensions = [0] : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<6xf32>, tensor<6xi32>)
     reducer(%arg0: tensor<f32>, %arg2: tensor<f32>) (%arg1: tensor<i32>, %arg3: tensor<i32>)  {
      %3 = stablehlo.maximum %arg0, %arg2 : tensor<f32>
      %4 = stablehlo.minimum %arg1, %arg3 : tensor<i32>
      stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
    }
    stablehlo.custom_call @check.expect_close(%2#0, %1#0) {has_side_effect = true} : (tensor<6xf32>, tensor<6xf32>) -> ()
    stablehlo.custom_call @check.expect_eq(%2#1, %1#1) {has_side_effect = true} : (tensor<6xi32>, tensor<6xi32>) -> ()
    return %2#0, %2#1 : tensor<6xf32>, tensor<6xi32>
  }
  func.func private @inputs() -> (tensor<4x6xf32>, tensor<4x6xi32>) {
    %cst = stablehlo.constant dense<[[-0.310264707, -1.99879205, -1.81809437, -0.426923692, -0.390648484, 1.98554444], [-1.17653537, -5.20831203, 0.447554022, -2.48738694, -2.55485487, 4.22119665], [5.650640e+00, 4.86770153, 5.00692511, -3.77362943, 2.78308082, 0.220573112], [-3.25627398, -4.64873171, -2.7951088, -0.643593251, 1.89478385, -3.40890503]]> : tensor<4x6xf32>
    %c = stablehlo.constant dense<[[1, 5, -1, 0, -5, 1], [3, -2, -3, -4, 0, 1], [0, -5, 0, 0, 0, -3], [-2, 1, 0, 0, -4, 2]]> : tensor<4x6xi32>
    return %cst, %c : tensor<4x6xf32>, tensor<4x6xi32>
  }
  func.func private @expected() -> (tensor<6xf32>, tensor<6xi32>) {
    %cst = stablehlo.constant dense<[5.650640e+00, 4.86770153, 5.00692511, 3.000000e+00, 3.000000e+00, 4.22119665]> : tensor<6xf32>
    %c = stablehlo.constant dense<[-2, -5, -3, -4, -5, -3]> : tensor<6xi32>
    return %cst, %c : tensor<6xf32>, tensor<6xi32>
  }
}
// ----- testdata/reduce_max_bool_2_3
module @jit_main {
  func.func public @main() -> (tensor<3xi1> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xi1>
    %1 = call @expected() : () -> tensor<3xi1>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %2 = stablehlo.reduce(%0 init: %c) applies stablehlo.maximum across dimensions = [0] : (tensor<2x3xi1>, tensor<i1>) -> tensor<3xi1>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<3xi1>, tensor<3xi1>) -> ()
    return %2 : tensor<3xi1>
  }
  func.func private @inputs() -> (tensor<2x3xi1>) {
    %c = stablehlo.constant dense<true> : tensor<2x3xi1>
    return %c : tensor<2x3xi1>
  }
  func.func private @expected() -> (tensor<3xi1>) {
    %c = stablehlo.constant dense<true> : tensor<3xi1>
    return %c : tensor<3xi1>
  }
}
// ----- testdata/reduce_min_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<3xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3xcomplex<f32>>
    %cst = stablehlo.constant dense<(0x7F800000,0.000000e+00)> : tensor<complex<f32>>
    %2 = stablehlo.reduce(%0 init: %cst) across dimensions = [0] : (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
     reducer(%arg0: tensor<complex<f32>>, %arg1: tensor<complex<f32>>)  {
      %3 = stablehlo.real %arg0 : (tensor<complex<f32>>) -> tensor<f32>
      %4 = stablehlo.real %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %5 = stablehlo.compare  EQ, %3, %4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare  LT, %3, %4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = stablehlo.imag %arg0 : (tensor<complex<f32>>) -> tensor<f32>
      %8 = stablehlo.imag %arg1 : (tensor<complex<f32>>) -> tensor<f32>
      %9 = stablehlo.compare  LT, %7, %8,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.select %5, %9, %6 : tensor<i1>, tensor<i1>
      %11 = stablehlo.select %10, %arg0, %arg1 : tensor<i1>, tensor<complex<f32>>
      stablehlo.return %11 : tensor<complex<f32>>
    }
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> ()
    return %2 : tensor<3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.45971477,-0.530904412), (3.91971016,1.38173568), (0.591264247,-0.429937601)], [(-4.28235674,6.83627414), (3.58333111,2.12905931), (0.620722293,3.66264701)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-4.28235674,6.83627414), (3.58333111,2.12905931), (0.591264247,-0.429937601)]> : tensor<3xcomplex<f32>>
    return %cst : tensor<3xcomplex<f32>>
  }
}
// ----- testdata/reduce_precision_float32
module @jit_main {
  func.func public @main() -> (tensor<f32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<f32>
    %1 = call @expected() : () -> tensor<f32>
    %2 = stablehlo.reduce_precision %0, format = e11m52 : tensor<f32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<f32>, tensor<f32>) -> ()
    return %2 : tensor<f32>
  }
  func.func private @inputs() -> (tensor<f32>) {
    %cst = stablehlo.constant dense<-0.81502068> : tensor<f32>
    return %cst : tensor<f32>
  }
  func.func private @expected() -> (tensor<f32>) {
    %cst = stablehlo.constant dense<-0.81502068> : tensor<f32>
    return %cst : tensor<f32>
  }
}
// ----- testdata/reduce_prod_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<3xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3xcomplex<f32>>
    %cst = stablehlo.constant dense<(1.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %2 = stablehlo.reduce(%0 init: %cst) applies stablehlo.multiply across dimensions = [0] : (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> ()
    return %2 : tensor<3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-1.21528089,-2.54824376), (2.66414642,-0.670537173), (-1.84409964,-2.86288095)], [(-1.61518693,2.00412917), (0.720621347,-0.149525791), (1.0502249,4.87241888)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(7.06991577,1.68031025), (1.81957817,-8.815620e-01), (12.0124359,-11.9918947)]> : tensor<3xcomplex<f32>>
    return %cst : tensor<3xcomplex<f32>>
  }
}
// ----- testdata/reduce_sum_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<3xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3xcomplex<f32>>
    %cst = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %2 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> ()
    return %2 : tensor<3xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(4.09386396,2.19344378), (-3.96042085,-4.04716253), (-0.0249252561,3.71205926)], [(-4.58772039,-0.995992541), (-0.0576205179,0.514490902), (3.764940e+00,-1.50847459)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-0.49385643,1.19745123), (-4.01804113,-3.53267169), (3.74001479,2.20358467)]> : tensor<3xcomplex<f32>>
    return %cst : tensor<3xcomplex<f32>>
  }
}
// ----- testdata/reduce_window_add_float32_4_6
module @jit_main {
  func.func public @main() -> (tensor<3x5xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<4x6xf32>
    %1 = call @expected() : () -> tensor<3x5xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = "stablehlo.reduce_window"(%0, %cst) <{window_dimensions = array<i64: 2, 2>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %3 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x5xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<3x5xf32>, tensor<3x5xf32>) -> ()
    return %2 : tensor<3x5xf32>
  }
  func.func private @inputs() -> (tensor<4x6xf32>) {
    %cst = stablehlo.constant dense<[[-6.80302143, 0.321375608, -1.86038101, 3.62991023, 0.598879099, -5.04817581], [-0.74092257, -0.301740915, -2.58586526, 6.663420e-01, 2.39137483, 6.18894672], [-4.40329695, 1.96387827, 2.2082417, -2.70424533, 1.05929911, -0.497613579], [3.7442131, -2.94033289, -4.3009696, -1.19836605, 1.62041414, -0.197622195]]> : tensor<4x6xf32>
    return %cst : tensor<4x6xf32>
  }
  func.func private @expected() -> (tensor<3x5xf32>) {
    %cst = stablehlo.constant dense<[[-6.52430916, -3.42661142, 0.850006103, 8.28650569, 5.13102484], [-2.48208237, 2.28451395, -1.41552687, 2.41277075, 10.1420069], [-0.635538578, -2.0691824, -4.99533939, -0.222898126, 2.98447728]]> : tensor<3x5xf32>
    return %cst : tensor<3x5xf32>
  }
}
// ----- testdata/reduce_window_max_float32_2
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2xf32>
    %1 = call @expected() : () -> tensor<1xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %3 = "stablehlo.reduce_window"(%0, %2) <{window_dimensions = array<i64: 2>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %4 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%3, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %3 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<2xf32>) {
    %cst = stablehlo.constant dense<[1.57310617, -1.76841259]> : tensor<2xf32>
    return %cst : tensor<2xf32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<1.57310617> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/reduce_window_min_float32_4_6
module @jit_main {
  func.func public @main() -> (tensor<3x5xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<4x6xf32>
    %1 = call @expected() : () -> tensor<3x5xf32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %3 = "stablehlo.reduce_window"(%0, %2) <{window_dimensions = array<i64: 2, 2>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %4 = stablehlo.minimum %arg0, %arg1 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x5xf32>
    stablehlo.custom_call @check.expect_close(%3, %1) {has_side_effect = true} : (tensor<3x5xf32>, tensor<3x5xf32>) -> ()
    return %3 : tensor<3x5xf32>
  }
  func.func private @inputs() -> (tensor<4x6xf32>) {
    %cst = stablehlo.constant dense<[[-0.587396801, 1.41679704, 1.57286632, 2.75978231, -1.49650061, -2.30756736], [3.0710969, 4.19341516, 2.3716979, -3.34889412, 2.2374773, -1.73396564], [1.05131531, -0.597165704, 5.87361765, -0.149147883, -1.62176561, 0.108428128], [-2.76762557, 2.69764709, -1.18576527, -1.25375938, -2.87609529, 2.79383397]]> : tensor<4x6xf32>
    return %cst : tensor<4x6xf32>
  }
  func.func private @expected() -> (tensor<3x5xf32>) {
    %cst = stablehlo.constant dense<[[-0.587396801, 1.41679704, -3.34889412, -3.34889412, -2.30756736], [-0.597165704, -0.597165704, -3.34889412, -3.34889412, -1.73396564], [-2.76762557, -1.18576527, -1.25375938, -2.87609529, -2.87609529]]> : tensor<3x5xf32>
    return %cst : tensor<3x5xf32>
  }
}
// ----- testdata/rem_float32_1_float32_1
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<1xf32>, tensor<1xf32>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = stablehlo.remainder %0#0, %0#1 : tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1xf32>, tensor<1xf32>) {
    %cst = stablehlo.constant dense<0x7F800000> : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<0x7F800000> : tensor<1xf32>
    return %cst, %cst_0 : tensor<1xf32>, tensor<1xf32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/reshape_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<3x2xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3x2xcomplex<f32>>
    %2 = stablehlo.reshape %0 : (tensor<2x3xcomplex<f32>>) -> tensor<3x2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<3x2xcomplex<f32>>, tensor<3x2xcomplex<f32>>) -> ()
    return %2 : tensor<3x2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0.617260575,-0.0616655722), (-5.14312601,0.740792274), (-8.860930e+00,-2.22399831)], [(0.265819639,2.97546291), (1.72794175,7.77228832), (0.378611773,0.622524082)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3x2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(0.617260575,-0.0616655722), (-5.14312601,0.740792274)], [(-8.860930e+00,-2.22399831), (0.265819639,2.97546291)], [(1.72794175,7.77228832), (0.378611773,0.622524082)]]> : tensor<3x2xcomplex<f32>>
    return %cst : tensor<3x2xcomplex<f32>>
  }
}
// ----- testdata/rev_complex64_4_5
module @jit_main {
  func.func public @main() -> (tensor<4x5xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<4x5xcomplex<f32>>
    %1 = call @expected() : () -> tensor<4x5xcomplex<f32>>
    %2 = stablehlo.reverse %0, dims = [0] : tensor<4x5xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<4x5xcomplex<f32>>, tensor<4x5xcomplex<f32>>) -> ()
    return %2 : tensor<4x5xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<4x5xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.64156401,2.43617129), (-0.821430087,2.41240335), (6.91338158,2.4461894), (1.46334195,1.03390598), (3.88088608,-0.164413869)], [(-0.445322603,5.50484324), (-5.34640217,-4.61504793), (-2.96519136,-0.0412336588), (3.10464835,1.50602651), (0.975138604,-3.05653954)], [(-1.34973919,-1.22588968), (-0.13968581,-0.337649882), (4.62552118,2.57984948), (-0.534202218,2.66017938), (-0.312704831,1.53405464)], [(-0.866462588,0.111736268), (-2.33610892,-5.868590e-01), (5.45916462,4.405040e+00), (6.02274752,3.01540041), (-0.704937577,-3.68470764)]]> : tensor<4x5xcomplex<f32>>
    return %cst : tensor<4x5xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<4x5xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-0.866462588,0.111736268), (-2.33610892,-5.868590e-01), (5.45916462,4.405040e+00), (6.02274752,3.01540041), (-0.704937577,-3.68470764)], [(-1.34973919,-1.22588968), (-0.13968581,-0.337649882), (4.62552118,2.57984948), (-0.534202218,2.66017938), (-0.312704831,1.53405464)], [(-0.445322603,5.50484324), (-5.34640217,-4.61504793), (-2.96519136,-0.0412336588), (3.10464835,1.50602651), (0.975138604,-3.05653954)], [(1.64156401,2.43617129), (-0.821430087,2.41240335), (6.91338158,2.4461894), (1.46334195,1.03390598), (3.88088608,-0.164413869)]]> : tensor<4x5xcomplex<f32>>
    return %cst : tensor<4x5xcomplex<f32>>
  }
}
// ----- testdata/rng_bit_generator_uint64_2
module @jit_main {
  func.func public @main() -> (tensor<2xui64> {jax.result_info = "[0]"}, tensor<ui64> {jax.result_info = "[1]"}) {
    %0 = call @inputs() : () -> tensor<2xui64>
    %1:2 = call @expected() : () -> (tensor<2xui64>, tensor<ui64>)
    %output_state, %output = stablehlo.rng_bit_generator %0, algorithm =  THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui64>)
    stablehlo.custom_call @check.expect_eq(%output_state, %1#0) {has_side_effect = true} : (tensor<2xui64>, tensor<2xui64>) -> ()
    stablehlo.custom_call @check.expect_eq(%output, %1#1) {has_side_effect = true} : (tensor<ui64>, tensor<ui64>) -> ()
    return %output_state, %output : tensor<2xui64>, tensor<ui64>
  }
  func.func private @inputs() -> (tensor<2xui64>) {
    %c = stablehlo.constant dense<3> : tensor<2xui64>
    return %c : tensor<2xui64>
  }
  func.func private @expected() -> (tensor<2xui64>, tensor<ui64>) {
    %c = stablehlo.constant dense<[3, 4]> : tensor<2xui64>
    %c_0 = stablehlo.constant dense<3349939604322698703> : tensor<ui64>
    return %c, %c_0 : tensor<2xui64>, tensor<ui64>
  }
}
// ----- testdata/round_float32_2_5
module @jit_main {
  func.func public @main() -> (tensor<2x5xf32> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x5xf32>
    %1 = call @expected() : () -> tensor<2x5xf32>
    %2 = stablehlo.round_nearest_even %0 : tensor<2x5xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2x5xf32>, tensor<2x5xf32>) -> ()
    return %2 : tensor<2x5xf32>
  }
  func.func private @inputs() -> (tensor<2x5xf32>) {
    %cst = stablehlo.constant dense<[[5.000000e-01, 1.200000e+00, 1.500000e+00, 1.700000e+00, 2.500000e+00], [-5.000000e-01, -1.200000e+00, -1.500000e+00, -1.700000e+00, -2.500000e+00]]> : tensor<2x5xf32>
    return %cst : tensor<2x5xf32>
  }
  func.func private @expected() -> (tensor<2x5xf32>) {
    %cst = stablehlo.constant dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 2.000000e+00, 2.000000e+00], [-0.000000e+00, -1.000000e+00, -2.000000e+00, -2.000000e+00, -2.000000e+00]]> : tensor<2x5xf32>
    return %cst : tensor<2x5xf32>
  }
}
// ----- testdata/scatter_float32_1_float32
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<1xi64>
    %0:2 = call @inputs() : () -> (tensor<1xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = "stablehlo.scatter"(%0#0, %c, %0#1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      stablehlo.return %arg1 : tensor<f32>
    }) : (tensor<1xf32>, tensor<1xi64>, tensor<f32>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<-0.168408513> : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<-1.17023897> : tensor<f32>
    return %cst, %cst_0 : tensor<1xf32>, tensor<f32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<-1.17023897> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/scatter_add_float32_1_float32
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<1xi64>
    %0:2 = call @inputs() : () -> (tensor<1xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = "stablehlo.scatter"(%0#0, %c, %0#1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %3 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<1xf32>, tensor<1xi64>, tensor<f32>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<2.66847229> : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<6.47477054> : tensor<f32>
    return %cst, %cst_0 : tensor<1xf32>, tensor<f32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<9.14324283> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/scatter_max_float32_1_float32
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<1xi64>
    %0:2 = call @inputs() : () -> (tensor<1xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = "stablehlo.scatter"(%0#0, %c, %0#1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %3 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<1xf32>, tensor<1xi64>, tensor<f32>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<-0.836051523> : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<0.122255228> : tensor<f32>
    return %cst, %cst_0 : tensor<1xf32>, tensor<f32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<0.122255228> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/scatter_min_float32_1_float32
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<1xi64>
    %0:2 = call @inputs() : () -> (tensor<1xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = "stablehlo.scatter"(%0#0, %c, %0#1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %3 = stablehlo.minimum %arg0, %arg1 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<1xf32>, tensor<1xi64>, tensor<f32>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<-1.23624635> : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<6.53969526> : tensor<f32>
    return %cst, %cst_0 : tensor<1xf32>, tensor<f32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<-1.23624635> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/scatter_mul_float32_1_float32
module @jit_main {
  func.func public @main() -> (tensor<1xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<1xi64>
    %0:2 = call @inputs() : () -> (tensor<1xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<1xf32>
    %2 = "stablehlo.scatter"(%0#0, %c, %0#1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %3 = stablehlo.multiply %arg0, %arg1 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<1xf32>, tensor<1xi64>, tensor<f32>) -> tensor<1xf32>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xf32>, tensor<1xf32>) -> ()
    return %2 : tensor<1xf32>
  }
  func.func private @inputs() -> (tensor<1xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<-1.70529008> : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<3.385310e+00> : tensor<f32>
    return %cst, %cst_0 : tensor<1xf32>, tensor<f32>
  }
  func.func private @expected() -> (tensor<1xf32>) {
    %cst = stablehlo.constant dense<-5.77293539> : tensor<1xf32>
    return %cst : tensor<1xf32>
  }
}
// ----- testdata/select_and_gather_add_float32_4_6_float32_4_6
module @jit_main {
  func.func public @main() -> (tensor<2x2xf32> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<4x6xf32>, tensor<4x6xf32>)
    %1 = call @expected() : () -> tensor<2x2xf32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2:2 = "stablehlo.reduce_window"(%0#1, %0#0, %cst, %cst_0) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 3>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = stablehlo.compare  LE, %arg0, %arg2,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.select %3, %arg0, %arg2 : tensor<i1>, tensor<f32>
      %5 = stablehlo.select %3, %arg1, %arg3 : tensor<i1>, tensor<f32>
      stablehlo.return %4, %5 : tensor<f32>, tensor<f32>
    }) : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
    stablehlo.custom_call @check.expect_close(%2#1, %1) {has_side_effect = true} : (tensor<2x2xf32>, tensor<2x2xf32>) -> ()
    return %2#1 : tensor<2x2xf32>
  }
  func.func private @inputs() -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %cst = stablehlo.constant dense<[[-1.13653708, 3.850970e+00, 1.41188276, 5.03700876, 1.48468447, 0.925753116], [-0.248426422, -4.28072739, -4.20720768, -1.19028091, 0.54057169, -6.95183658], [-1.31342614, 3.07995915, 5.3993783, -1.28211379, 1.39402068, 2.28532982], [-2.4763267, -2.75141668, 0.0943910331, 4.40151119, 1.8391434, -4.97099495]]> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<[[-0.614279747, 0.590600848, 3.51997685, -2.04704905, -0.412673563, 1.09668195], [-0.0427753292, 2.34471607, 1.80304348, -5.56420183, 0.834002256, -3.3200314], [-0.92481637, -1.27236295, -2.63647914, -0.438251436, -1.3858273, -1.73599696], [3.89021254, -0.658202826, -5.43405294, -2.19236541, 6.30242633, -3.99410748]]> : tensor<4x6xf32>
    return %cst, %cst_0 : tensor<4x6xf32>, tensor<4x6xf32>
  }
  func.func private @expected() -> (tensor<2x2xf32>) {
    %cst = stablehlo.constant dense<[[-1.13653708, -1.19028091], [3.07995915, 4.40151119]]> : tensor<2x2xf32>
    return %cst : tensor<2x2xf32>
  }
}
// ----- testdata/select_and_scatter_add_int8_1_3_5_int8_2_4_6
module @jit_main {
  func.func public @main() -> (tensor<2x4x6xi8> {jax.result_info = ""}) {
    %0:2 = call @inputs() : () -> (tensor<1x3x5xi8>, tensor<2x4x6xi8>)
    %1 = call @expected() : () -> tensor<2x4x6xi8>
    %c = stablehlo.constant dense<-128> : tensor<i8>
    %2 = stablehlo.pad %0#1, %c, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<2x4x6xi8>, tensor<i8>) -> tensor<2x4x6xi8>
    %c_0 = stablehlo.constant dense<0> : tensor<i8>
    %3 = "stablehlo.select_and_scatter"(%2, %0#0, %c_0) <{window_dimensions = array<i64: 2, 2, 2>}> ({
    ^bb0(%arg0: tensor<i8>, %arg1: tensor<i8>):
      %5 = stablehlo.compare  GE, %arg0, %arg1,  SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }, {
    ^bb0(%arg0: tensor<i8>, %arg1: tensor<i8>):
      %5 = stablehlo.add %arg0, %arg1 : tensor<i8>
      stablehlo.return %5 : tensor<i8>
    }) : (tensor<2x4x6xi8>, tensor<1x3x5xi8>, tensor<i8>) -> tensor<2x4x6xi8>
    %4 = stablehlo.slice %3 [0:2, 0:4, 0:6] : (tensor<2x4x6xi8>) -> tensor<2x4x6xi8>
    stablehlo.custom_call @check.expect_eq(%4, %1) {has_side_effect = true} : (tensor<2x4x6xi8>, tensor<2x4x6xi8>) -> ()
    return %4 : tensor<2x4x6xi8>
  }
  func.func private @inputs() -> (tensor<1x3x5xi8>, tensor<2x4x6xi8>) {
    %c = stablehlo.constant dense<[[[-5, 1, 2, -1, 0], [-1, 4, 4, -3, 0], [2, 0, -3, 0, -7]]]> : tensor<1x3x5xi8>
    %c_0 = stablehlo.constant dense<[[[-3, -6, 3, -4, 4, 0], [2, 2, -1, 2, 5, 2], [-1, 3, 5, 5, -1, 3], [0, 0, 1, 3, -1, -2]], [[1, 1, -3, -5, 0, 2], [-3, -4, -6, 2, 6, -1], [-3, 2, -1, 0, 2, 1], [4, 2, 2, -2, 1, 2]]]> : tensor<2x4x6xi8>
    return %c, %c_0 : tensor<1x3x5xi8>, tensor<2x4x6xi8>
  }
  func.func private @expected() -> (tensor<2x4x6xi8>) {
    %c = stablehlo.constant dense<[[[0, 0, 3, 0, 0, 0], [-5, 0, 0, 0, 0, 0], [0, -1, 5, 0, 0, -7], [0, 0, 0, 0, 0, 0]], [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, -4, 0], [0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]]]> : tensor<2x4x6xi8>
    return %c : tensor<2x4x6xi8>
  }
}
// ----- testdata/select_n_int32_2_3_bool_2_3_bool_2_3_bool_2_3
module @jit_main {
  func.func public @main() -> (tensor<2x3xi1> {jax.result_info = ""}) {
    %0:4 = call @inputs() : () -> (tensor<2x3xi32>, tensor<2x3xi1>, tensor<2x3xi1>, tensor<2x3xi1>)
    %1 = call @expected() : () -> tensor<2x3xi1>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %3 = stablehlo.compare  LT, %0#0, %2,  SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %5 = stablehlo.compare  LT, %0#0, %4,  SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %6 = stablehlo.select %5, %0#2, %0#3 : tensor<2x3xi1>, tensor<2x3xi1>
    %7 = stablehlo.select %3, %0#1, %6 : tensor<2x3xi1>, tensor<2x3xi1>
    stablehlo.custom_call @check.expect_eq(%7, %1) {has_side_effect = true} : (tensor<2x3xi1>, tensor<2x3xi1>) -> ()
    return %7 : tensor<2x3xi1>
  }
  func.func private @inputs() -> (tensor<2x3xi32>, tensor<2x3xi1>, tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[1, 2, 2], [0, 2, 1]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<true> : tensor<2x3xi1>
    %c_1 = stablehlo.constant dense<true> : tensor<2x3xi1>
    %c_2 = stablehlo.constant dense<true> : tensor<2x3xi1>
    return %c, %c_0, %c_1, %c_2 : tensor<2x3xi32>, tensor<2x3xi1>, tensor<2x3xi1>, tensor<2x3xi1>
  }
  func.func private @expected() -> (tensor<2x3xi1>) {
    %c = stablehlo.constant dense<true> : tensor<2x3xi1>
    return %c : tensor<2x3xi1>
  }
}
// ----- testdata/sign_int8_20_20
module @jit_main {
  func.func public @main() -> (tensor<20x20xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<20x20xi8>
    %1 = call @expected() : () -> tensor<20x20xi8>
    %2 = stablehlo.sign %0 : tensor<20x20xi8>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<20x20xi8>, tensor<20x20xi8>) -> ()
    return %2 : tensor<20x20xi8>
  }
  func.func private @inputs() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x00040002FF02FDFF00000200040501FBFFFF0100FF01030000FCFE01FFFE0101F90002000201FF0000FE00000004FC040306FCFF01FF00000007FF01FE00030101FF03010004FD04FB000101FF01FFFFFE00FBFF01FCFEFD00000001FFFE03FC000201000001F8FE0300FF03FD0001000305040200FCFDFB00FF000004FBFC010000000000FEFC00FE00000100030504FB0003FEFE0100FD0202FD03FEFFFD03FF00050502FE0704000000FE0000FE0000030204060300FC0000010101FF09000106FFFFFFFF040005020003FDFF06FF01FE02FEFF02030201020000FF00FA01FDFE0003FFFF01FFFB06FE00FEFC01FFFCFD04FFFFFF04FC02FD00FD00FE01030203FE00FDFDFFFD00010100FC020004FE00FFFDFE01FBFF0100FD00010200FE02000C020000000002FFFDFC00FFFD01000000040100FC0000FF0003FF02FE03FFFE000100000106FB00040000FE0000FDFC00FF0203FF0200FEFDFEFE0200FD000404FE04FFFE01010000FB000101000100FEFE03030000FE0000FF0303FE03020100FC00FCFFFEFF00FA05FB060102"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
  func.func private @expected() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x00010001FF01FFFF00000100010101FFFFFF0100FF01010000FFFF01FFFF0101FF0001000101FF0000FF00000001FF010101FFFF01FF00000001FF01FF00010101FF01010001FF01FF000101FF01FFFFFF00FFFF01FFFFFF00000001FFFF01FF000101000001FFFF0100FF01FF0001000101010100FFFFFF00FF000001FFFF010000000000FFFF00FF00000100010101FF0001FFFF0100FF0101FF01FFFFFF01FF00010101FF0101000000FF0000FF0000010101010100FF0000010101FF01000101FFFFFFFF010001010001FFFF01FF01FF01FFFF01010101010000FF00FF01FFFF0001FFFF01FFFF01FF00FFFF01FFFFFF01FFFFFF01FF01FF00FF00FF01010101FF00FFFFFFFF00010100FF010001FF00FFFFFF01FFFF0100FF00010100FF010001010000000001FFFFFF00FFFF01000000010100FF0000FF0001FF01FF01FFFF000100000101FF00010000FF0000FFFF00FF0101FF0100FFFFFFFF0100FF000101FF01FFFF01010000FF000101000100FFFF01010000FF0000FF0101FF01010100FF00FFFFFFFF00FF01FF010101"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
}
// ----- testdata/sign_
module @jit_main {
  func.func public @main() -> (tensor<2x2xui16> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<2x2xui16>
    %0 = call @expected() : () -> tensor<2x2xui16>
    %c_0 = stablehlo.constant dense<0> : tensor<ui16>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui16>) -> tensor<2x2xui16>
    %2 = stablehlo.compare  EQ, %c, %1,  UNSIGNED : (tensor<2x2xui16>, tensor<2x2xui16>) -> tensor<2x2xi1>
    %c_1 = stablehlo.constant dense<0> : tensor<ui16>
    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui16>) -> tensor<2x2xui16>
    %c_2 = stablehlo.constant dense<1> : tensor<ui16>
    %4 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui16>) -> tensor<2x2xui16>
    %5 = stablehlo.select %2, %3, %4 : tensor<2x2xi1>, tensor<2x2xui16>
    stablehlo.custom_call @check.expect_eq(%5, %0) {has_side_effect = true} : (tensor<2x2xui16>, tensor<2x2xui16>) -> ()
    return %5 : tensor<2x2xui16>
  }
  func.func private @expected() -> (tensor<2x2xui16>) {
    %c = stablehlo.constant dense<0> : tensor<2x2xui16>
    return %c : tensor<2x2xui16>
  }
}
// ----- testdata/slice_complex64_3
module @jit_main {
  func.func public @main() -> (tensor<1xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<1xcomplex<f32>>
    %2 = stablehlo.slice %0 [1:2] : (tensor<3xcomplex<f32>>) -> tensor<1xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<1xcomplex<f32>>, tensor<1xcomplex<f32>>) -> ()
    return %2 : tensor<1xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(1.87978518,-1.79707468), (3.20142984,-3.70751119), (0.516356587,2.9530642)]> : tensor<3xcomplex<f32>>
    return %cst : tensor<3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<1xcomplex<f32>>) {
    %cst = stablehlo.constant dense<(3.20142984,-3.70751119)> : tensor<1xcomplex<f32>>
    return %cst : tensor<1xcomplex<f32>>
  }
}
// ----- testdata/sort_bool_5_7
module @jit_main {
  func.func public @main() -> (tensor<5x7xi1> {jax.result_info = "[0]"}) {
    %0 = call @inputs() : () -> tensor<5x7xi1>
    %1 = call @expected() : () -> tensor<5x7xi1>
    %2 = "stablehlo.sort"(%0) <{dimension = 0 : i64}> ({
    ^bb0(%arg0: tensor<i1>, %arg1: tensor<i1>):
      %3 = stablehlo.compare  LT, %arg0, %arg1,  UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<5x7xi1>) -> tensor<5x7xi1>
    stablehlo.custom_call @check.expect_eq(%2, %1) {has_side_effect = true} : (tensor<5x7xi1>, tensor<5x7xi1>) -> ()
    return %2 : tensor<5x7xi1>
  }
  func.func private @inputs() -> (tensor<5x7xi1>) {
    %c = stablehlo.constant dense<true> : tensor<5x7xi1>
    return %c : tensor<5x7xi1>
  }
  func.func private @expected() -> (tensor<5x7xi1>) {
    %c = stablehlo.constant dense<true> : tensor<5x7xi1>
    return %c : tensor<5x7xi1>
  }
}
// ----- testdata/squeeze_complex64_1_2
module @jit_main {
  func.func public @main() -> (tensor<2xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<1x2xcomplex<f32>>
    %1 = call @expected() : () -> tensor<2xcomplex<f32>>
    %2 = stablehlo.reshape %0 : (tensor<1x2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> ()
    return %2 : tensor<2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<1x2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-3.2024498,0.125245288), (0.197059527,5.34506941)]]> : tensor<1x2xcomplex<f32>>
    return %cst : tensor<1x2xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[(-3.2024498,0.125245288), (0.197059527,5.34506941)]> : tensor<2xcomplex<f32>>
    return %cst : tensor<2xcomplex<f32>>
  }
}
// ----- testdata/stop_gradient_int8_20_20
module @jit_main {
  func.func public @main() -> (tensor<20x20xi8> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<20x20xi8>
    %1 = call @expected() : () -> tensor<20x20xi8>
    stablehlo.custom_call @check.expect_eq(%0, %1) {has_side_effect = true} : (tensor<20x20xi8>, tensor<20x20xi8>) -> ()
    return %0 : tensor<20x20xi8>
  }
  func.func private @inputs() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x000500FF000003F90301FE01020201FFFD02FFF906FDFF0103010000010300FB01FC0100FEFF0402FF00FD04FD01FE01FD0001FF0100FDFC0001FE00FF02FE04FCFF0000010406FE0000000002FA0000FE0100FFFF00FCFE00FF000200FF010202FD0004000500FD01000100FAFE01FC030001040102F9000201FFFB0002040500FFFE000300FEFCFF00FEFF0003000002FD000404FE00010103FFFC03FC00FFFDFF0000FEFD0000FF03FE050000020101FEFFFEFE05FE020000FF00FE000000FFFF030100F9FF00FEF9FF01FC00FBFD01FF0002040003FEFC01FEFFFD02FEFF00FF0100FD040000FCFEFB00FE0103FDFFFC00020104FDFD00020003000300FE040000FEFE020900010100FF01FEFE00020100FEFCFF000200FF0003FA00FF00FFFEFE040001FB0000FE0203FC020101000000FE00000300020002FE060004FE0200FC02030305FD04FD0002030203FD000400FF00FB0603030100000002FF0301FD000302010104FF00FAFE04FF03FCFE00020104FF00FB020103020100FDFE00FE0102FA0100FEFE0100FF00000500"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
  func.func private @expected() -> (tensor<20x20xi8>) {
    %c = stablehlo.constant dense<"0x000500FF000003F90301FE01020201FFFD02FFF906FDFF0103010000010300FB01FC0100FEFF0402FF00FD04FD01FE01FD0001FF0100FDFC0001FE00FF02FE04FCFF0000010406FE0000000002FA0000FE0100FFFF00FCFE00FF000200FF010202FD0004000500FD01000100FAFE01FC030001040102F9000201FFFB0002040500FFFE000300FEFCFF00FEFF0003000002FD000404FE00010103FFFC03FC00FFFDFF0000FEFD0000FF03FE050000020101FEFFFEFE05FE020000FF00FE000000FFFF030100F9FF00FEF9FF01FC00FBFD01FF0002040003FEFC01FEFFFD02FEFF00FF0100FD040000FCFEFB00FE0103FDFFFC00020104FDFD00020003000300FE040000FEFE020900010100FF01FEFE00020100FEFCFF000200FF0003FA00FF00FFFEFE040001FB0000FE0203FC020101000000FE00000300020002FE060004FE0200FC02030305FD04FD0002030203FD000400FF00FB0603030100000002FF0301FD000302010104FF00FAFE04FF03FCFE00020104FF00FB020103020100FDFE00FE0102FA0100FEFE0100FF00000500"> : tensor<20x20xi8>
    return %c : tensor<20x20xi8>
  }
}
// ----- testdata/top_k_bool_5_3_chlo
module @jit_main {
  func.func public @main() -> (tensor<5x2xi1> {jax.result_info = "[0]"}, tensor<5x2xi32> {jax.result_info = "[1]"}) {
    %0 = call @inputs() : () -> tensor<5x3xi1>
    %1:2 = call @expected() : () -> (tensor<5x2xi1>, tensor<5x2xi32>)
    %values, %indices = chlo.top_k(%0, k = 2) : tensor<5x3xi1> -> (tensor<5x2xi1>, tensor<5x2xi32>)
    stablehlo.custom_call @check.expect_eq(%values, %1#0) {has_side_effect = true} : (tensor<5x2xi1>, tensor<5x2xi1>) -> ()
    stablehlo.custom_call @check.expect_eq(%indices, %1#1) {has_side_effect = true} : (tensor<5x2xi32>, tensor<5x2xi32>) -> ()
    return %values, %indices : tensor<5x2xi1>, tensor<5x2xi32>
  }
  func.func private @inputs() -> (tensor<5x3xi1>) {
    %c = stablehlo.constant dense<true> : tensor<5x3xi1>
    return %c : tensor<5x3xi1>
  }
  func.func private @expected() -> (tensor<5x2xi1>, tensor<5x2xi32>) {
    %c = stablehlo.constant dense<true> : tensor<5x2xi1>
    %c_0 = stablehlo.constant dense<[[0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]> : tensor<5x2xi32>
    return %c, %c_0 : tensor<5x2xi1>, tensor<5x2xi32>
  }
}
// ----- testdata/transpose_complex64_2_3
module @jit_main {
  func.func public @main() -> (tensor<3x2xcomplex<f32>> {jax.result_info = ""}) {
    %0 = call @inputs() : () -> tensor<2x3xcomplex<f32>>
    %1 = call @expected() : () -> tensor<3x2xcomplex<f32>>
    %2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xcomplex<f32>>) -> tensor<3x2xcomplex<f32>>
    stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true} : (tensor<3x2xcomplex<f32>>, tensor<3x2xcomplex<f32>>) -> ()
    return %2 : tensor<3x2xcomplex<f32>>
  }
  func.func private @inputs() -> (tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-5.08990383,2.25510144), (-5.3642478,-0.41310975), (-0.010698243,-0.417641759)], [(-5.15686893,-8.785930e-01), (2.19871163,-1.17818773), (-5.12186956,2.18995166)]]> : tensor<2x3xcomplex<f32>>
    return %cst : tensor<2x3xcomplex<f32>>
  }
  func.func private @expected() -> (tensor<3x2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(-5.08990383,2.25510144), (-5.15686893,-8.785930e-01)], [(-5.3642478,-0.41310975), (2.19871163,-1.17818773)], [(-0.010698243,-0.417641759), (-5.12186956,2.18995166)]]> : tensor<3x2xcomplex<f32>>
    return %cst : tensor<3x2xcomplex<f32>>
  }
}
