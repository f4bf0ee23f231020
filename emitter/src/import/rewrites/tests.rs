//! Snapshots of what ops become. That it computes what the specification says, StableHLO's own tests show.

use crate::import::{ProgramOptions, import_program};

/// Returns the module that a function of these arguments and lines becomes, whose last value is `%r`.
fn rewritten(arguments: &str, lines: &str, ty: &str) -> String {
    let types: Vec<_> =
        arguments.split(", ").filter_map(|argument| Some(argument.split_once(": ")?.1)).collect();
    let text = format!(
        r#""builtin.module"() ({{
          "func.func"() <{{function_type = ({}) -> {ty}, sym_name = "main"}}> ({{
          ^bb0({arguments}):
            {lines}
            "func.return"(%r) : ({ty}) -> ()
          }}) : () -> ()
        }}) : () -> ()"#,
        types.join(", ")
    );
    import_program(&text, &ProgramOptions::default()).unwrap().mlir
}

#[test]
fn a_power_follows_c() {
    let line = r#"%r = "stablehlo.power"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<4xf32>, %y: tensor<4xf32>", line, "tensor<4xf32>"));
    let line = r#"%r = "stablehlo.power"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>"#;
    let integers = rewritten("%x: tensor<4xi32>, %y: tensor<4xi32>", line, "tensor<4xi32>");
    assert!(integers.contains("stablehlo.power") && !integers.contains("stablehlo.select"), "{integers}");
}

#[test]
fn the_total_order_is_that_of_integers() {
    let line = r#"%r = "stablehlo.compare"(%x, %y) <{compare_type = #stablehlo<comparison_type TOTALORDER>,
        comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<f64>, %y: tensor<f64>", line, "tensor<i1>"));
}

#[test]
fn a_stable_sort_compares_places() {
    let line = r#"%r:2 = "stablehlo.sort"(%x, %y) <{dimension = -1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
          %0 = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction GT>}>
            : (tensor<f32>, tensor<f32>) -> tensor<i1>
          "stablehlo.return"(%0) : (tensor<i1>) -> ()
        }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
        %s = "stablehlo.negate"(%r#1) : (tensor<4xi32>) -> tensor<4xi32>"#;
    let lines = line.to_owned() + r#" %r = "stablehlo.negate"(%s) : (tensor<4xi32>) -> tensor<4xi32>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<4xf32>, %y: tensor<4xi32>", &lines, "tensor<4xi32>"));
}

#[test]
fn a_stable_sort_of_one_operand_compares_places_unless_equals_are_the_same() {
    // Returns how many places a sort compares whose region makes `%p` of `%a` and `%q` of `%b`.
    let places = |element: &str, lines: &str| {
        let line = format!(
            r#"%r = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
            ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
              {}
              {}
              %0 = "stablehlo.compare"(%p, %q) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>
                : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
              "stablehlo.return"(%0) : (tensor<i1>) -> ()
            }}) : (tensor<4x{element}>) -> tensor<4x{element}>"#,
            lines,
            lines.replace("%a", "%b").replace("%p", "%q")
        );
        let line = if lines.is_empty() { line.replace("(%p, %q)", "(%b, %a)") } else { line };
        let ty = format!("tensor<4x{element}>");
        rewritten(&format!("%x: {ty}"), &line, &ty).matches("stablehlo.iota").count()
    };
    assert_eq!((places("i32", ""), places("f32", "")), (0, 0));
    let magnitude = |element: &str| {
        places(element, &format!(r#"%p = "stablehlo.abs"(%a) : (tensor<{element}>) -> tensor<{element}>"#))
    };
    assert_eq!((magnitude("i32"), magnitude("f32")), (1, 1));
    let jax = r#"%pz = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %pn = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
        %p0 = "stablehlo.compare"(%a, %pz) <{comparison_direction = #stablehlo<comparison_direction EQ>}>
            : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %p1 = "stablehlo.select"(%p0, %pz, %a) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
        %p2 = "stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction NE>}>
            : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %p = "stablehlo.select"(%p2, %pn, %p1) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>"#;
    assert_eq!(places("f32", jax), 0);
    // Numbers below zero are one with it.
    assert_eq!(places("f32", &jax.replace("direction EQ", "direction LE")), 1);
    assert_eq!(places("f32", &jax.replace("dense<0.0", "dense<1.0")), 1);
}

#[test]
fn the_largest_elements_come_from_a_stable_sort() {
    let line = r#"%v:2 = "chlo.top_k"(%x) <{k = 2 : i64}> : (tensor<3x4xui8>) -> (tensor<3x2xui8>, tensor<3x2xi32>)
        %r = "stablehlo.negate"(%v#1) : (tensor<3x2xi32>) -> tensor<3x2xi32>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<3x4xui8>", line, "tensor<3x2xi32>"));
}

#[test]
fn sums_of_narrow_floats_are_wide() {
    let line = r#"%r = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers =
        #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}>
        : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<bf16>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<4xbf16>", line, "tensor<bf16>"));
}

#[test]
fn numbers_that_are_not_normal_are_rounded_by_their_bits() {
    let line = r#"%0 = "stablehlo.floor"(%x) : (tensor<f32>) -> tensor<f32>
        %r = "stablehlo.ceil"(%0) : (tensor<f32>) -> tensor<f32>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<f32>", line, "tensor<f32>"));
}

#[test]
fn complex_numbers_have_an_order() {
    let line = r#"%r = "stablehlo.maximum"(%x, %x) : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<2xcomplex<f32>>", line, "tensor<2xcomplex<f32>>"));
}

#[test]
fn integers_become_narrow_floats_in_two_steps() {
    let line = r#"%r = "stablehlo.convert"(%x) : (tensor<2xi64>) -> tensor<2xbf16>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<2xi64>", line, "tensor<2xbf16>"));
}

#[test]
fn barriers_and_places_among_devices_are_no_work() {
    let line = r#"%0 = "stablehlo.optimization_barrier"(%x) : (tensor<2xui32>) -> tensor<2xui32>
        %1 = "stablehlo.replica_id"() : () -> tensor<ui32>
        %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
        %r = "stablehlo.add"(%0, %2) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>"#;
    let made = rewritten("%x: tensor<2xui32>", line, "tensor<2xui32>");
    assert!(!made.contains("barrier") && !made.contains("replica"), "{made}");
}

#[test]
fn a_loop_of_a_few_turns_has_none() {
    let of = |turns: usize| {
        let lines = format!(
            r#"%i = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
            %n = "stablehlo.constant"() <{{value = dense<{turns}> : tensor<i32>}}> : () -> tensor<i32>
            %w:3 = "stablehlo.while"(%i, %x, %y) ({{
            ^bb0(%a: tensor<i32>, %b: tensor<f32>, %c: tensor<f32>):
              %0 = "stablehlo.compare"(%a, %n) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>
                : (tensor<i32>, tensor<i32>) -> tensor<i1>
              "stablehlo.return"(%0) : (tensor<i1>) -> ()
            }}, {{
            ^bb0(%a: tensor<i32>, %b: tensor<f32>, %c: tensor<f32>):
              %1 = "stablehlo.constant"() <{{value = dense<2> : tensor<i32>}}> : () -> tensor<i32>
              %2 = "stablehlo.add"(%a, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
              %3 = "stablehlo.negate"(%b) : (tensor<f32>) -> tensor<f32>
              "stablehlo.return"(%2, %c, %3) : (tensor<i32>, tensor<f32>, tensor<f32>) -> ()
            }}) : (tensor<i32>, tensor<f32>, tensor<f32>) -> (tensor<i32>, tensor<f32>, tensor<f32>)
            %r = "stablehlo.subtract"(%w#1, %w#2) : (tensor<f32>, tensor<f32>) -> tensor<f32>"#
        );
        rewritten("%x: tensor<f32>, %y: tensor<f32>", &lines, "tensor<f32>")
    };
    let unrolled = of(5);
    assert_eq!(
        (unrolled.matches("stablehlo.while").count(), unrolled.matches("stablehlo.negate").count()),
        (0, 3)
    );
    let loops = of(17);
    assert_eq!((loops.matches("stablehlo.while").count(), loops.matches("stablehlo.negate").count()), (1, 1));
}

#[test]
fn a_loop_does_not_end_where_one_before_it_did() {
    // MLIR gives the parts of both loops arguments of the same names.
    let lines = r#"%zero = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
        %three = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %v:2 = "stablehlo.while"(%x, %zero) ({
        ^bb0(%a: tensor<f32>, %b: tensor<i32>):
          %0 = "stablehlo.compare"(%b, %three) <{comparison_direction = #stablehlo<comparison_direction LT>}>
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
          "stablehlo.return"(%0) : (tensor<i1>) -> ()
        }, {
        ^bb0(%a: tensor<f32>, %b: tensor<i32>):
          %0 = "stablehlo.add"(%b, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %1 = "stablehlo.multiply"(%a, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%1, %0) : (tensor<f32>, tensor<i32>) -> ()
        }) : (tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
        %w:3 = "stablehlo.while"(%zero, %n, %v#0) ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>):
          %0 = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
          "stablehlo.return"(%0) : (tensor<i1>) -> ()
        }, {
        ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>):
          %0 = "stablehlo.add"(%a, STEP) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          %1 = "stablehlo.negate"(%c) : (tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%0, %b, %1) : (tensor<i32>, tensor<i32>, tensor<f32>) -> ()
        }) : (tensor<i32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<i32>, tensor<f32>)
        %r = "stablehlo.abs"(%w#2) : (tensor<f32>) -> tensor<f32>"#;
    let counts = |lines: &str| {
        let made = rewritten("%x: tensor<f32>, %n: tensor<i32>", lines, "tensor<f32>");
        (made.matches("stablehlo.while").count(), made.matches("stablehlo.negate").count())
    };
    let one = lines.replace("STEP", "%one");
    assert_eq!(counts(&one), (1, 1));
    // The end is one of several results.
    let pair = r#"):
          %5:2 = "stablehlo.optimization_barrier"(%b, %b) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
          %0 ="#;
    let several = one.replace("):\n          %0 =", pair).replace("\"(%a, %b) <{", "\"(%a, %5#1) <{");
    assert_eq!((several.matches("%5:2").count(), counts(&several)), (4, (1, 1)));
    // The step is an argument, and the end is known.
    let step = lines.replace("STEP", "%b").replace("\"(%a, %b) <{", "\"(%a, %three) <{");
    assert_eq!(counts(&step), (1, 1));
    assert_eq!(counts(&step.replace("\"(%a, %b) :", "\"(%a, %one) :")), (0, 3));
}

#[test]
fn arguments_are_copied_before_they_are_updated() {
    let line = r#"%0 = "stablehlo.reshape"(%x) : (tensor<2x2xf32>) -> tensor<4xf32>
        %i = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %r = "stablehlo.dynamic_update_slice"(%0, %y, %i) : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>"#;
    insta::assert_snapshot!(rewritten("%x: tensor<2x2xf32>, %y: tensor<1xf32>", line, "tensor<4xf32>"));
    let computed =
        line.replace("\"stablehlo.reshape\"(%x)", "\"stablehlo.negate\"(%x)").replace("2x2x", "4x");
    let made = rewritten("%x: tensor<4xf32>, %y: tensor<1xf32>", &computed, "tensor<4xf32>");
    assert!(!made.contains("barrier"), "{made}");
}

#[test]
fn what_can_be_folded_to_an_argument_is_copied_too() {
    let is_copied = |lines: &str| {
        let update = r#"
            %i = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
            %r = "stablehlo.dynamic_update_slice"(%0, %y, %i)
                : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>"#;
        let arguments = "%x: tensor<4xf32>, %y: tensor<1xf32>, %at: tensor<i32>";
        rewritten(arguments, &(lines.to_owned() + update), "tensor<4xf32>").contains("barrier")
    };
    let op = |op: &str| is_copied(&format!(r#"%0 = "stablehlo.{op} -> tensor<4xf32>"#));
    assert!(op(r#"broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>)"#));
    assert!(op(r#"transpose"(%x) <{permutation = array<i64: 0>}> : (tensor<4xf32>)"#));
    assert!(op(r#"convert"(%x) : (tensor<4xf32>)"#));
    assert!(op(r#"dynamic_slice"(%x, %at) <{slice_sizes = array<i64: 4>}> : (tensor<4xf32>, tensor<i32>)"#));
    assert!(op(r#"maximum"(%x, %x) : (tensor<4xf32>, tensor<4xf32>)"#));
    assert!(!op(r#"add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>)"#));
    let with = |number: &str, op: &str| {
        is_copied(&format!(
            r#"%n = "stablehlo.constant"() <{{value = dense<{number}> : tensor<f32>}}> : () -> tensor<f32>
            %c = "stablehlo.broadcast_in_dim"(%n) <{{broadcast_dimensions = array<i64>}}> : (tensor<f32>) -> tensor<4xf32>
            %0 = "stablehlo.{op}"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#
        ))
    };
    assert!(with("-0.000000e+00", "add") && with("1.000000e+00", "multiply"));
    assert!(!with("2.000000e+00", "add") && !with("5.000000e-01", "multiply"));
    let twice = |first: &str, second: &str| {
        is_copied(&format!(
            r#"%b = "stablehlo.bitcast_convert"(%x) : (tensor<4xf32>) -> tensor<4xi32>
            %k = "stablehlo.broadcast_in_dim"(%at) <{{broadcast_dimensions = array<i64>}}> : (tensor<i32>) -> tensor<4xi32>
            %c = "stablehlo.{first}"(%b, %k) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
            %d = "stablehlo.{second}"(%c, %k) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
            %0 = "stablehlo.bitcast_convert"(%d) : (tensor<4xi32>) -> tensor<4xf32>"#
        ))
    };
    assert!(twice("add", "subtract"));
    assert!(!twice("add", "multiply"));
    assert!(is_copied(
        r#"%n = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        %z = "stablehlo.complex"(%x, %n) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
        %0 = "stablehlo.real"(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>"#
    ));
}

#[test]
fn loops_copy_what_they_update_from_outside() {
    let line = r#"%x = "stablehlo.negate"(%y) : (tensor<4xf32>) -> tensor<4xf32>
        %w:2 = "stablehlo.while"(%n, %x) ({
        ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):
          %0 = "stablehlo.compare"(%a, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
          "stablehlo.return"(%0) : (tensor<i1>) -> ()
        }, {
        ^bb0(%a: tensor<i32>, %b: tensor<4xf32>):
          %1 = "stablehlo.slice"(%b) <{start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>}>
            : (tensor<4xf32>) -> tensor<1xf32>
          %2 = "stablehlo.dynamic_update_slice"(%OUTSIDE, %1, %a) : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
          "stablehlo.return"(%a, %2) : (tensor<i32>, tensor<4xf32>) -> ()
        }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
        %r = "stablehlo.negate"(%w#1) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let of = |value: &str| {
        rewritten("%y: tensor<4xf32>, %n: tensor<i32>", &line.replace("%OUTSIDE", value), "tensor<4xf32>")
    };
    assert_eq!(of("%x").matches("optimization_barrier").count(), 1);
    // What the loop carries is its own.
    assert_eq!(of("%b").matches("optimization_barrier").count(), 0);
}

#[test]
fn turns_read_all_that_a_loop_carries() {
    let of = |next: &str| {
        let lines = format!(
            r#"%0:2 = "stablehlo.while"(%x, %y) ({{
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                  %1 = "stablehlo.compare"(%a, %b) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>
                    : (tensor<f32>, tensor<f32>) -> tensor<i1>
                  "stablehlo.return"(%1) : (tensor<i1>) -> ()
                }}, {{
                ^bb0(%c: tensor<f32>, %d: tensor<f32>):
                  %2 = "stablehlo.add"(%d, {next}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
                  "stablehlo.return"(%2, %d) : (tensor<f32>, tensor<f32>) -> ()
                }}) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
            %r = "stablehlo.negate"(%0#0) : (tensor<f32>) -> tensor<f32>"#
        );
        rewritten("%x: tensor<f32>, %y: tensor<f32>", &lines, "tensor<f32>")
    };
    assert!(!of("%c").contains("stablehlo.select"));
    insta::assert_snapshot!(of("%d"));
}
