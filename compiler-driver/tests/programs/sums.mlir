// A sum that is kept from call to call, of as many numbers as `--shape` says.
module @sums {
  func.func public @main(%total: tensor<f32> {tf.aliasing_output = 0 : i32} loc("total"), %factor: tensor<f32> loc("factor"), %x: tensor<?xf32> loc("x")) -> (tensor<f32> {jax.result_info = "next"}, tensor<f32> {jax.result_info = "sum"}) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %all = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
    %sum = stablehlo.multiply %all, %factor : tensor<f32>
    %next = stablehlo.add %total, %sum : tensor<f32>
    return %next, %sum : tensor<f32>, tensor<f32>
  }
}
