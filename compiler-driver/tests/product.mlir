"builtin.module"() <{sym_name = "model"}> ({
  "util.global"() <{
    initial_value = #flow.parameter.named<"model"::"weight"> : tensor<64x32xSTORED>,
    sym_name = "weight", sym_visibility = "private", type = tensor<64x32xSTORED>
  }> : () -> ()
  "func.func"() <{function_type = (tensor<4x32xf32>) -> tensor<4x64xf32>, sym_name = "product"}> ({
  ^bb0(%x: tensor<4x32xf32>):
    %stored = "util.global.load"() <{global = @weight}> : () -> tensor<64x32xSTORED>
    %weight = "stablehlo.convert"(%stored) : (tensor<64x32xSTORED>) -> tensor<64x32xCOMPUTED>
    %input = "stablehlo.convert"(%x) : (tensor<4x32xf32>) -> tensor<4x32xCOMPUTED>
    %y = "stablehlo.dot_general"(%input, %weight) <{
      dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>
    }> : (tensor<4x32xCOMPUTED>, tensor<64x32xCOMPUTED>) -> tensor<4x64xf32>
    "func.return"(%y) : (tensor<4x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
