//! Entries of chains: a loop over groups for each link, see `kernels/cpu/chain.c`.

use safetensors::Dtype;

use super::parameters::{binding_address, constant, declaration, declare, entry_parameters};
use crate::{
    kernels::{
        chain::{Chain, LINK_WORDS, Link, Place},
        executable::Grid,
    },
    types::TensorType,
};

/// The most bytes that a waiting thread reads ahead, so that they stay in its core's cache.
const MAX_READ_AHEAD: usize = 512 << 10;

/// Returns the declarations of the functions that a chain calls.
pub(super) fn declarations(chain: &Chain) -> impl Iterator<Item = String> {
    let own = [
        declare("chain_take", &["index"; 3], " -> index"),
        declare("chain_finish_and_take", &["index"; 3], " -> index"),
        declare("chain_wait", &["index"; 5], " -> index"),
    ];
    own.into_iter().chain(chain.links.iter().map(|link| declaration(&link.executable)))
}

/// Returns the function of an entry. Its bindings are the operands, the counters, the results and the scratch memory.
pub(super) fn function(entry: &str, chain: &Chain) -> String {
    let counters = TensorType::new(Dtype::I32, [chain.links.len() * LINK_WORDS]);
    let scratch = TensorType::new(Dtype::I8, [chain.scratch]);
    let bindings: Vec<_> =
        chain.operands.iter().chain([&counters]).chain(&chain.results).chain([&scratch]).collect();
    let parameters = entry_parameters(bindings.len(), chain.numbers + 1);
    let addresses = bindings.into_iter().enumerate().map(|(index, ty)| binding_address(index, ty));
    format!(
        "      func.func @{entry}({parameters}) {{
        %zero = arith.constant 0 : index
        %true = arith.constant true
        %false = arith.constant false
{addresses}{links}        return
      }}
",
        addresses = addresses.collect::<String>(),
        links = (0..chain.links.len()).map(|index| link(chain, index)).collect::<String>(),
    )
}

/// Returns the ops that do some groups of a link. `%goN` is true if all groups of the links before link N are done.
fn link(chain: &Chain, index: usize) -> String {
    let Link { executable, places, numbers } = &chain.links[index];
    let Grid { items, grain } = executable.grid;
    let mut body = String::new();
    let mut arguments: Vec<_> = (0..places.len()).map(|place| format!("%at{place}")).collect();
    for (at, &place) in places.iter().enumerate() {
        body.push_str(&address(chain, place, &format!("%at{at}")));
    }
    arguments.extend(numbers.iter().map(|number| format!("%number{number}")));
    for (at, size) in executable.sizes().enumerate() {
        body.push_str(&constant(&format!("  %size{at}"), size));
        arguments.push(format!("%size{at}"));
    }
    let go = if index == 0 { "%true".to_owned() } else { format!("%go{index}") };
    format!(
        "        %number_of_link{index} = arith.constant {index} : index
        %link{index} = arith.addi %number{first}, %number_of_link{index} : index
        %go{next} = scf.if {go} -> (i1) {{
          %groups = arith.constant {groups} : index
          %grain = arith.constant {grain} : index
          %items = arith.constant {items} : index
{body}          %taken = func.call @chain_take(%pointer{counters}, %link{index}, %groups) : (index, index, index) -> index
          %none = scf.while (%group = %taken) : (index) -> index {{
            %is_group = arith.cmpi ult, %group, %groups : index
            scf.condition(%is_group) %group : index
          }} do {{
          ^bb0(%group: index):
            %begin = arith.muli %group, %grain : index
            %next = arith.addi %begin, %grain : index
            %end = arith.minui %next, %items : index
            func.call @{kernel}({arguments}, %begin, %end) : ({types}) -> ()
            %other = func.call @chain_finish_and_take(%pointer{counters}, %link{index}, %groups) : (index, index, index) -> index
            scf.yield %other : index
          }}
{wait}          scf.yield %stay : i1
        }} else {{
          scf.yield %false : i1
        }}
",
        first = chain.numbers,
        next = index + 1,
        groups = items.div_ceil(grain.max(1)),
        counters = chain.operands.len(),
        kernel = executable.function_name(),
        arguments = arguments.join(", "),
        types = executable.parameter_types().join(", "),
        wait = wait(chain, index),
    )
}

/// Returns the ops that wait for the end of a link, if there are others after it.
fn wait(chain: &Chain, index: usize) -> String {
    if index + 1 == chain.links.len() {
        return "          %stay = arith.constant false\n".to_owned();
    }
    let weights = chain.weights_after(index);
    let (place, bytes) = weights.map_or((Place::Operand(0), 0), |weights| (weights.place, weights.bytes));
    format!(
        "{address}          %bytes = arith.constant {bytes} : index
          %waited = func.call @chain_wait(%pointer{counters}, %link{index}, %groups, %ahead, %bytes) : (index, index, index, index, index) -> index
          %stay = arith.cmpi ne, %waited, %zero : index
",
        address = address(chain, place, "%ahead"),
        bytes = bytes.min(MAX_READ_AHEAD),
        counters = chain.operands.len(),
    )
}

/// Returns the ops that compute the address of a tensor.
fn address(chain: &Chain, place: Place, name: &str) -> String {
    let results = chain.operands.len() + 1;
    let (binding, offset) = match place {
        Place::Operand(index) => (index, 0),
        Place::Result(index) => (results + index, 0),
        Place::Scratch(offset) => (results + chain.results.len(), offset),
    };
    let local = name.trim_start_matches('%');
    format!(
        "          %offset_{local} = arith.constant {offset} : index
          {name} = arith.addi %pointer{binding}, %offset_{local} : index
"
    )
}
