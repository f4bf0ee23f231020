//! Tensors that loops carry and update in part, such as the rows that a `jax.lax.scan` stacks: they are updated where they are.
//!
//! A turn copies its arguments before it updates them, because somebody else may have their memory: a loop can begin with one
//! tensor in two places, and can return one in two. Here it is proved of an argument that nobody has.

use super::{Graph, Op, Region, Tensor, in_place::UPDATES};
use crate::types::signed_type;

/// Ops that read a part of a tensor, and whose result is never where that is.
const READS: [&str; 2] = ["stablehlo.dynamic_slice", "stablehlo.gather"];

impl Graph {
    /// Makes the turns of a loop that carries `operands` update arguments where they are, as far as nobody else has their memory.
    pub(super) fn carry_in_place(
        &mut self,
        operands: &mut [Tensor],
        regions: &mut [Region],
        results: &[Tensor],
    ) {
        let [condition, turn] = regions else { return };
        for index in 0..results.len().min(operands.len()).min(turn.arguments.len()).min(turn.results.len()) {
            if self.is_carried(operands[index]) || self.is_carried(turn.results[index]) {
                self.note_carried(&results[index..=index]);
            }
            let Some(copy) = self.needless_copy(condition, turn, index) else { continue };
            let argument = turn.arguments[index];
            let readers = turn.ops.iter_mut().flat_map(|op| &mut op.operands);
            readers.filter(|operand| **operand == copy).for_each(|operand| *operand = argument);
            remove_unused(turn, copy);
            self.copies.remove(&copy);
            self.in_place += 1;
            // The first turn finds memory that is the loop's own, and that has been written: without the barrier, which waits
            // for it, a first turn's update was lost now and then with IREE 3.13 on several threads, for reasons unknown. There
            // are no barriers of unsigned integers, which are signed ones when they are compiled.
            let dtype = self.dtype(operands[index]);
            let own = self.copy(operands[index]);
            let own = self.bitcast_convert(own, signed_type(dtype));
            let own = self.barrier(own);
            operands[index] = self.bitcast_convert(own, dtype);
        }
    }

    /// Returns the copy of an argument that a turn updates and returns in its place, if the argument could be updated itself:
    /// the turn reads nothing but parts of it, and returns neither it nor the result twice.
    fn needless_copy(&self, condition: &Region, turn: &Region, index: usize) -> Option<Tensor> {
        let (argument, result) = (turn.arguments[index], turn.results[index]);
        let asked = condition.arguments.get(index).map_or(0, |argument| uses(condition, *argument));
        if asked > 0 || returns(turn, result) != 1 || returns(turn, argument) > 0 {
            return None;
        }
        // From the last update to the first. Nothing but the next one sees what one makes.
        let (mut updated, mut readers) = (result, 0);
        while self.copies.get(&updated) != Some(&argument) {
            let op = turn.ops.iter().find(|op| op.results == [updated])?;
            if !UPDATES.contains(&op.name.as_ref()) || uses(turn, updated) != readers {
                return None;
            }
            (updated, readers) = (*op.operands.first()?, 1);
        }
        let reads = turn.ops.iter().filter(|op| self.reads_part(op, argument)).count();
        (uses(turn, updated) == 1 && uses(turn, argument) == reads + of_copy(turn, updated, argument))
            .then_some(updated)
    }

    /// Returns whether an op reads a part of a tensor. A slice of everything can be the tensor itself.
    fn reads_part(&self, op: &Op, tensor: Tensor) -> bool {
        let size = |tensor: &Tensor| self.type_of(*tensor).elements();
        let is_part =
            op.name != "stablehlo.dynamic_slice" || op.results.first().map(size) != Some(size(&tensor));
        READS.contains(&op.name.as_ref()) && op.operands.first() == Some(&tensor) && is_part
    }
}

/// Returns how often the ops that make a copy use what they copy.
fn of_copy(turn: &Region, copy: Tensor, argument: Tensor) -> usize {
    if copy == argument {
        return 0;
    }
    let producer = turn.ops.iter().find(|op| op.results.contains(&copy));
    let operands = producer.map_or(&[][..], |op| &op.operands);
    operands.iter().map(|operand| usize::from(*operand == argument) + of_copy(turn, *operand, argument)).sum()
}

/// Removes the op that makes a value, and those before it whose results nobody uses then.
fn remove_unused(region: &mut Region, value: Tensor) {
    if uses(region, value) + returns(region, value) > 0 {
        return;
    }
    let Some(at) = region.ops.iter().position(|op| op.results == [value]) else { return };
    let op = region.ops.remove(at);
    op.operands.iter().for_each(|operand| remove_unused(region, *operand));
}

/// Returns how often a value is an operand in a region and in those within it.
fn uses(region: &Region, value: Tensor) -> usize {
    let of_op = |op: &Op| {
        let within: usize =
            op.regions.iter().map(|region| uses(region, value) + returns(region, value)).sum();
        op.operands.iter().filter(|operand| **operand == value).count() + within
    };
    region.ops.iter().map(of_op).sum()
}

/// Returns how often a region returns a value.
fn returns(region: &Region, value: Tensor) -> usize {
    region.results.iter().filter(|result| **result == value).count()
}

#[cfg(test)]
mod tests {
    use crate::import::{ProgramOptions, import_program};

    /// Returns whether a loop carries `tensor<8x4xf32>`s in place, and how many copies its program makes. `turn` makes the two that
    /// are `returned` of the index `%i`, the row `%row` and the tensors `%x` and `%y`.
    fn carried(turn: &str, returned: &str) -> (bool, usize) {
        let text = format!(
            r#""builtin.module"() ({{
              "func.func"() <{{function_type = (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>, sym_name = "main"}}> ({{
              ^bb0(%0: tensor<8x4xf32>, %row: tensor<1x4xf32>):
                %zero = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
                %end = "stablehlo.constant"() <{{value = dense<1000> : tensor<i32>}}> : () -> tensor<i32>
                %r:3 = "stablehlo.while"(%zero, %0, %0) ({{
                ^bb0(%i: tensor<i32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>):
                  %go = "stablehlo.compare"(%i, %end) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>
                    : (tensor<i32>, tensor<i32>) -> tensor<i1>
                  "stablehlo.return"(%go) : (tensor<i1>) -> ()
                }}, {{
                ^bb0(%i: tensor<i32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>):
                  %one = "stablehlo.constant"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
                  %j = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
                  {turn}
                  "stablehlo.return"(%j, {returned}) : (tensor<i32>, tensor<8x4xf32>, tensor<8x4xf32>) -> ()
                }}) : (tensor<i32>, tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<i32>, tensor<8x4xf32>, tensor<8x4xf32>)
                %sum = "stablehlo.add"(%r#1, %r#2) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
                "func.return"(%sum) : (tensor<8x4xf32>) -> ()
              }}) : () -> ()
            }}) : () -> ()"#
        );
        let made = import_program(&text, &ProgramOptions::default()).unwrap();
        (made.loops_in_place, made.mlir.matches("stablehlo.or").count())
    }

    /// Returns the line that changes a row of a tensor.
    fn update(result: &str, tensor: &str) -> String {
        format!(
            r#"{result} = "stablehlo.dynamic_update_slice"({tensor}, %row, %i, %zero)
            : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
            "#
        )
    }

    const NEGATED: &str = r#"%n = "stablehlo.negate"(%y) : (tensor<8x4xf32>) -> tensor<8x4xf32>"#;

    #[test]
    fn what_nobody_else_has_is_updated_in_place() {
        let negated = |lines: String| carried(&(lines + NEGATED), "%a, %n");
        // The copy is that before the loop.
        assert_eq!(negated(update("%a", "%x")), (true, 1));
        assert_eq!(negated(update("%b", "%x") + &update("%a", "%b")), (true, 1));
        let read = r#"%s = "stablehlo.dynamic_slice"(%x, %j, %zero) <{slice_sizes = array<i64: 1, 4>}>
            : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
            "#;
        assert_eq!(negated(read.to_owned() + &update("%a", "%x")), (true, 1));
        assert_eq!(carried(&(update("%a", "%x") + &update("%b", "%y")), "%a, %b"), (true, 2));
    }

    #[test]
    fn other_loops_are_left_to_the_compiler() {
        // Returned in two places, in the other's place, as it was too, and without an update.
        assert_eq!(carried(&update("%a", "%x"), "%a, %a"), (false, 0));
        assert_eq!(carried(&(update("%a", "%x") + NEGATED), "%n, %a"), (false, 0));
        assert_eq!(carried(&update("%a", "%x"), "%a, %x"), (false, 0));
        assert_eq!(carried(NEGATED, "%x, %n"), (false, 0));
        // Read as a whole, before and after.
        let read = r#"%n = "stablehlo.add"(%x, %y) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>"#;
        assert_eq!(carried(&(update("%a", "%x") + read), "%a, %n"), (false, 0));
        let read = read.replace("%x", "%a");
        assert_eq!(carried(&(update("%a", "%x") + &read), "%a, %n"), (false, 0));
        // One of two.
        let one = update("%a", "%x") + &update("%b", "%y");
        let read = r#"%n = "stablehlo.add"(%y, %b) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>"#;
        assert_eq!(carried(&(one + read), "%a, %n"), (false, 0));
    }
}
