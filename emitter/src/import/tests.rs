//! Tests of programs as a whole: what their author wrote, and what becomes of it.

use super::*;
use crate::types::TensorType;
use safetensors::Dtype;

const STEP: &str = r#"
    #loc1 = loc("/there/a/step.py":3:4)
    "builtin.module"() ({
      "func.func"() <{
        arg_attrs = [{tf.aliasing_output = 1 : i32}, {}],
        function_type = (tensor<100xf32>, tensor<?x100xf32>) -> (tensor<f32>, tensor<100xf32>),
        res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = ""}],
        sym_name = "main", sym_visibility = "public"
      }> ({
      ^bb0(%w: tensor<100xf32> loc("p['w']"), %x: tensor<?x100xf32> loc("step.py":3:4)):
        %0 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32> loc(#loc1)
        %1 = "stablehlo.reduce"(%w, %0) <{dimensions = array<i64: 0>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %2 = "stablehlo.subtract"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%2) : (tensor<f32>) -> ()
        }) : (tensor<100xf32>, tensor<f32>) -> tensor<f32>
        %3 = "func.call"(%1, %x) <{callee = @inner}> : (tensor<f32>, tensor<?x100xf32>) -> tensor<?x100xf32>
        "func.return"(%1, %w) : (tensor<f32>, tensor<100xf32>) -> ()
      }) : () -> ()
      "func.func"() <{function_type = (tensor<f32>, tensor<?x100xf32>) -> tensor<?x100xf32>, sym_name = "inner",
          sym_visibility = "private"}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<?x100xf32>):
        %0 = "stablehlo.negate"(%b) : (tensor<?x100xf32>) -> tensor<?x100xf32>
        "func.return"(%0) : (tensor<?x100xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
"#;

fn sized(name: &str, shape: &[usize]) -> ProgramOptions {
    ProgramOptions { sizes: vec![[(name.to_owned(), shape.to_vec())].into()], ..ProgramOptions::default() }
}

fn refused(text: &str, options: &ProgramOptions) -> String {
    import_program(text, options).unwrap_err().to_string()
}

/// Returns a program whose only function takes `%x`, a `tensor<4xf32>`, and returns `%r` of these lines.
fn program(lines: &str, ty: &str) -> String {
    format!(
        r#""builtin.module"() ({{
          "func.func"() <{{function_type = (tensor<4xf32>) -> {ty}, sym_name = "main"}}> ({{
          ^bb0(%x: tensor<4xf32>):
            {lines}
            "func.return"(%r) : ({ty}) -> ()
          }}) : () -> ()
        }}) : () -> ()"#
    )
}

#[test]
fn public_functions_are_read_with_the_names_that_the_program_says() {
    let ImportedProgram { functions, ops } = import(STEP).unwrap();
    let [main] = functions.as_slice() else { panic!("{functions:?}") };
    let argument = |name: Option<&str>, ty: &str, donated_to| ImportedArgument {
        name: name.map(Into::into),
        ty: ty.into(),
        donated_to,
    };
    assert_eq!(main.name, "main");
    assert_eq!(
        main.arguments,
        [argument(Some("p['w']"), "tensor<100xf32>", Some(1)), argument(None, "tensor<?x100xf32>", None)]
    );
    let result = |name: Option<&str>, ty: &str| ImportedResult { name: name.map(Into::into), ty: ty.into() };
    assert_eq!(main.results, [result(Some("result[0]"), "tensor<f32>"), result(None, "tensor<100xf32>")]);
    let ops: Vec<_> = ops.iter().map(|(name, count)| format!("{name} {count}")).collect();
    assert_eq!(
        ops,
        [
            "func.call 1",
            "stablehlo.constant 1",
            "stablehlo.negate 1",
            "stablehlo.reduce 1",
            "stablehlo.subtract 1"
        ]
    );
}

#[test]
fn a_program_becomes_functions_with_fixed_shapes_state_and_storage() {
    let made = import_program(STEP, &sized("arg1", &[7, 100])).unwrap();
    insta::assert_snapshot!(made.mlir);
    let kinds: Vec<_> = made.functions[0].arguments.iter().map(|argument| argument.kind).collect();
    use ProgramArgumentKind::{Input, State, Storage};
    assert_eq!(kinds, [State { result: 1 }, Input, Storage { result: 1 }]);
    assert_eq!(made.functions[0].arguments[1].ty, TensorType::new(Dtype::F32, [7, 100]));
}

#[test]
fn each_set_of_sizes_is_a_function() {
    let mut options = sized("arg1", &[7, 100]);
    options.sizes.push([("arg1".to_owned(), vec![8, 100])].into());
    options.state = StateArguments::None;
    let made = import_program(STEP, &options).unwrap();
    let names: Vec<_> =
        made.functions.iter().map(|function| (function.name.as_str(), function.arguments.len())).collect();
    assert_eq!(names, [("main_arg17x100", 2), ("main_arg18x100", 2)]);
}

#[test]
fn arguments_can_be_parameters() {
    let mut options = sized("arg1", &[7, 100]);
    options.parameters.insert("p['w']".into(), "layer.weight".into());
    let made = import_program(STEP, &options).unwrap();
    assert_eq!(made.functions[0].arguments.len(), 1);
    assert_eq!(made.parameters["layer.weight"], TensorType::new(Dtype::F32, [100]));
    assert!(made.mlir.contains("#flow.parameter.named<\"model\"::\"layer.weight\">"), "{}", made.mlir);
}

#[test]
fn open_shapes_are_refused_with_what_to_give() {
    let error = refused(STEP, &ProgramOptions::default());
    assert_eq!(
        error,
        "main: argument 1 \"arg1\": found tensor<?x100xf32>, expected a fixed shape\nhint: --shape ARGUMENT=8x100"
    );
    let error = refused(STEP, &sized("arg1", &[7, 99]));
    assert!(error.contains("found shape [7, 99], expected one of tensor<?x100xf32>"), "{error}");
    let error = refused(STEP, &sized("rows", &[7]));
    assert!(error.starts_with("main: arguments: found no dimension or argument 'rows'"), "{error}");
}

#[test]
fn what_cannot_be_compiled_is_refused_with_its_place() {
    let call = |target: &str| {
        let line = format!(
            r#"%r = "stablehlo.custom_call"(%x) <{{call_target_name = "{target}"}}> : (tensor<4xf32>) -> tensor<4xf32> loc("/there/a/train.py":170:8)"#
        );
        refused(&program(&line, "tensor<4xf32>"), &ProgramOptions::default())
    };
    assert_eq!(
        call("lapack_ssyevd_ffi"),
        "main: custom_call at train.py:170: found a call of LAPACK, @lapack_ssyevd_ffi, expected ops that are compiled\n\
         hint: replace the decomposition: cholesky, lu, solve, inv, det and triangular solves are compiled, of square matrices"
    );
    assert!(call("xla_python_cpu_callback").contains("a call of a Python function"));
    assert!(call("mine").contains("a call of another runtime, @mine"));
    let line = r#"%r:2 = "stablehlo.custom_call"(%x) <{call_target_name = "mhlo.topk"}> {mhlo.attributes =
        {k = 2 : i64, largest = false}} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)"#;
    let error = refused(&program(line, "tensor<2xf32>"), &ProgramOptions::default());
    assert!(
        error.starts_with("main: custom_call: found the smallest elements of @mhlo.topk, expected"),
        "{error}"
    );
    let line = r#"%r = "stablehlo.convert"(%x) : (tensor<4xf32>) -> tensor<4xi4>"#;
    let error = refused(&program(line, "tensor<4xi4>"), &ProgramOptions::default());
    assert!(error.starts_with("main: convert: found tensor<4xi4>, expected a tensor of bool"), "{error}");
    let line = r#"%r = "torch.aten.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let error = refused(&program(line, "tensor<4xf32>"), &ProgramOptions::default());
    assert!(
        error.starts_with("main: torch.aten.relu: found torch.aten.relu, expected ops of StableHLO and CHLO that iree-compile knows"),
        "{error}"
    );
    let line = r#"%r = "func.call"(%x) <{callee = @main}> : (tensor<4xf32>) -> tensor<4xf32>"#;
    let error = refused(&program(line, "tensor<4xf32>"), &ProgramOptions::default());
    assert!(error.contains("programs must not call themselves"), "{error}");
}

#[test]
fn booleans_are_added_as_the_specification_says() {
    let line = r#"%c = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>}>
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
        %r = "stablehlo.add"(%c, %c) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>"#;
    let made = import_program(&program(line, "tensor<4xi1>"), &ProgramOptions::default()).unwrap();
    assert!(made.mlir.contains("stablehlo.or") && !made.mlir.contains("stablehlo.add"), "{}", made.mlir);
}

#[test]
fn text_that_is_cut_off_is_refused() {
    let whole = STEP.trim_end();
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        assert!(import(&whole[..end]).is_err(), "{}", &whole[..end]);
    }
    assert!(import(whole).is_ok());
}

/// Returns a function that takes `%x` and returns `%r` of these lines, both `tensor<4xf32>`.
fn function(name: &str, lines: &str) -> String {
    format!(
        r#""func.func"() <{{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "{name}"}}> ({{
          ^bb0(%x: tensor<4xf32>):
            {lines}
            "func.return"(%r) : (tensor<4xf32>) -> ()
          }}) : () -> ()
        "#
    )
}

fn module(functions: &[String]) -> String {
    format!(r#""builtin.module"() ({{ {} }}) : () -> ()"#, functions.concat())
}

#[test]
fn functions_that_call_others_many_times_are_not_counted_to_the_end() {
    let turn = r#"%zero = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %end = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %w:2 = "stablehlo.while"(%zero, %x) ({
        ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):
          %0 = "stablehlo.compare"(%a, %end) <{comparison_direction = #stablehlo<comparison_direction LT>}>
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
          "stablehlo.return"(%0) : (tensor<i1>) -> ()
        }, {
        ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):
          %1 = "stablehlo.add"(%a, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %2 = "func.call"(%b) <{callee = @f0}> : (tensor<4xf32>) -> tensor<4xf32>
          "stablehlo.return"(%1, %2) : (tensor<i32>, tensor<4xf32>) -> ()
        }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
        %r = "stablehlo.negate"(%w#1) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let mut functions = vec![function("main", turn)];
    for index in 0..7 {
        let call = format!(
            r#"%r = "func.call"(%x) <{{callee = @f{}}}> : (tensor<4xf32>) -> tensor<4xf32> "#,
            index + 1
        );
        functions.push(function(&format!("f{index}"), &call.repeat(100)));
    }
    functions.push(function("f7", r#"%r = "torch.aten.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#));
    let error = refused(&module(&functions), &ProgramOptions::default());
    assert!(error.contains("found torch.aten.relu"), "{error}");
}

#[test]
fn tuples_of_tuples_have_few_parts() {
    let mut lines = r#"%t0 = "stablehlo.tuple"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tuple<>
        "#
    .to_owned();
    for index in 0..60 {
        let next = index + 1;
        lines += &format!(
            r#"%t{next} = "stablehlo.tuple"(%t{index}, %t{index}) : (tuple<>, tuple<>) -> tuple<>
            "#
        );
    }
    lines += r#"%r = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let error = refused(&module(&[function("main", &lines)]), &ProgramOptions::default());
    assert!(error.starts_with("main: tuple: found more than 1048576 ops with all calls inlined"), "{error}");
}

#[test]
fn parts_of_tuples_are_found_by_their_numbers() {
    let lines = r#"%y = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        %a = "stablehlo.tuple"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tuple<>
        %b = "stablehlo.tuple"(%y, %a) : (tensor<4xf32>, tuple<>) -> tuple<>
        %c = "stablehlo.get_tuple_element"(%b) <{index = 1 : i32}> : (tuple<>) -> tuple<>
        %d = "stablehlo.get_tuple_element"(%c) <{index = 0 : i32}> : (tuple<>) -> tensor<4xf32>
        %r = "stablehlo.abs"(%d) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let made = import_program(&module(&[function("main", lines)]), &ProgramOptions::default()).unwrap();
    assert!(made.mlir.contains("\"stablehlo.abs\"(%arg0)"), "{}", made.mlir);
}

#[test]
fn regions_within_regions_end_somewhere_through_all_calls() {
    let nested = |callee: &str| {
        let mut lines =
            format!(r#"%0 = "func.call"(%x) <{{callee = @{callee}}}> : (tensor<4xf32>) -> tensor<4xf32>"#);
        for depth in 0..60 {
            lines = format!(
                r#"%{} = "stablehlo.case"(%i) ({{
                {lines}
                "stablehlo.return"(%{depth}) : (tensor<4xf32>) -> () }}) : (tensor<i32>) -> tensor<4xf32>"#,
                depth + 1
            );
        }
        format!(
            r#"%i = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
            {lines}
            %r = "stablehlo.negate"(%60) : (tensor<4xf32>) -> tensor<4xf32>"#
        )
    };
    let last = function("last", r#"%r = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#);
    let once = module(&[function("main", &nested("last")), last.clone()]);
    assert!(import_program(&once, &ProgramOptions::default()).is_ok());
    let twice = module(&[function("main", &nested("next")), function("next", &nested("last")), last]);
    let error = refused(&twice, &ProgramOptions::default());
    assert!(error.contains("found regions 100 deep through all calls, expected fewer"), "{error}");
}

#[test]
fn sizes_follow_from_dimension_variables_and_assertions() {
    let text = r#""builtin.module"() ({
      "func.func"() <{function_type = (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>, sym_name = "main"}> ({
      ^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>):
        %0 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
        %c = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
        %1 = "stablehlo.multiply"(%0, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %2 = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
        %3 = "stablehlo.compare"(%2, %1) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.custom_call"(%3, %2, %1) <{call_target_name = "shape_assertion"}> {error_message = "found {0}, expected {1}."}
            : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
        %4 = "func.call"(%0, %x, %y) <{callee = @inner}> : (tensor<i32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        "func.return"(%4) : (tensor<?xf32>) -> ()
      }) : () -> ()
      "func.func"() <{arg_attrs = [{jax.global_constant = "n"}, {}, {}], sym_visibility = "private", sym_name = "inner",
          function_type = (tensor<i32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>}> ({
      ^bb0(%n: tensor<i32>, %x: tensor<?xf32>, %y: tensor<?xf32>):
        %0 = "stablehlo.concatenate"(%x, %y) <{dimension = 0 : i64}> : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        %1 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
        %2 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
        %3 = "stablehlo.concatenate"(%2, %1) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %4 = "stablehlo.dynamic_reshape"(%0, %3) : (tensor<?xf32>, tensor<2xi32>) -> tensor<3x?xf32>
        "func.return"(%4) : (tensor<3x?xf32>) -> ()
      }) : () -> ()
    }) : () -> ()"#;
    let made = import_program(text, &sized("n", &[5])).unwrap();
    let [main] = made.functions.as_slice() else { panic!() };
    let types: Vec<_> = main.arguments.iter().map(|argument| argument.ty.to_string()).collect();
    assert_eq!(types, ["tensor<5xf32>", "tensor<10xf32>"]);
    assert_eq!(main.results[0].1.to_string(), "tensor<3x5xf32>");

    // As JAX exports it if it computes with 64 bits.
    let wide = text
        .replace(
            "%4 = \"func.call\"(%0",
            "%w = \"stablehlo.convert\"(%0) : (tensor<i32>) -> tensor<i64>\n%4 = \"func.call\"(%w",
        )
        .replace(
            ": (tensor<i32>, tensor<?xf32>, tensor<?xf32>) ->",
            ": (tensor<i64>, tensor<?xf32>, tensor<?xf32>) ->",
        )
        .replace("function_type = (tensor<i32>,", "function_type = (tensor<i64>,")
        .replace("^bb0(%n: tensor<i32>", "^bb0(%k: tensor<i64>")
        .replace(
            "%1 = \"stablehlo.reshape\"(%n)",
            "%n = \"stablehlo.convert\"(%k) : (tensor<i64>) -> tensor<i32>\n%1 = \"stablehlo.reshape\"(%n)",
        );
    let wide = import_program(&wide, &sized("n", &[5])).unwrap();
    assert_eq!(wide.functions[0].results, main.results);

    let mut options = sized("arg0", &[5]);
    options.sizes[0].insert("arg1".into(), vec![11]);
    let error = refused(text, &options);
    assert!(error.starts_with("main: custom_call: found 11, expected 10."), "{error}");
    let error = refused(text, &ProgramOptions::default());
    assert!(error.ends_with("hint: --shape n=SIZE"), "{error}");
}

#[test]
fn elements_that_a_target_cannot_load_are_refused() {
    let options = ProgramOptions { words_only: true, ..ProgramOptions::default() };
    let line = r#"%0 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>}>
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
        %r = "stablehlo.select"(%0, %x, %x) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#;
    assert!(import_program(&program(line, "tensor<4xf32>"), &options).is_ok());
    let line = r#"%r = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>}>
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"#;
    assert_eq!(
        refused(&program(line, "tensor<4xi1>"), &options).lines().next(),
        Some(
            "main: program: found tensor<4xi1>, expected f32, integers of 32 or 64 bits or complex<f32>, because a target \
             has no others"
        )
    );
    let line = r#"%0 = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<1x2x2xf32>
        %1 = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<2x1x2xf32>
        %2 = "stablehlo.convolution"(%0, %1) <{batch_group_count = 1 : i64, feature_group_count = 2 : i64,
            dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}>
            : (tensor<1x2x2xf32>, tensor<2x1x2xf32>) -> tensor<1x1x2xf32>
        %3 = "stablehlo.reshape"(%2) : (tensor<1x1x2xf32>) -> tensor<2xf32>
        %r = "stablehlo.concatenate"(%3, %3) <{dimension = 0 : i64}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>"#;
    let error = refused(&program(line, "tensor<4xf32>"), &options);
    assert!(error.starts_with("main: convolution: found more than one of feature_group_count"), "{error}");
    let line = r#"%0 = "stablehlo.convert"(%x) : (tensor<4xf32>) -> tensor<4xf64>
        %r = "stablehlo.convert"(%0) : (tensor<4xf64>) -> tensor<4xf32>"#;
    let error = refused(&program(line, "tensor<4xf32>"), &options);
    assert!(error.starts_with("main: convert: found tensor<4xf64>, expected f32, integers"), "{error}");
    assert!(import_program(&program(line, "tensor<4xf32>"), &ProgramOptions::default()).is_ok());
}
