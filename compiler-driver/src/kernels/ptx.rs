//! The entries of PTX, and what they take.

use super::problem::KernelError;

/// A kernel in PTX.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The sizes of its parameters in bits.
    pub(super) parameter_bits: Vec<u32>,
}

/// Returns whether text is PTX: a directive with a version comes first.
pub(super) fn is_ptx(text: &str) -> bool {
    let code = without_comments(text);
    code.trim_start().starts_with(".version")
}

/// Returns the kernels that others can call.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, KernelError> {
    let code = without_comments(text);
    let mut words = code.split_whitespace();
    if !words.by_ref().any(|word| word == ".address_size") || words.next() != Some("64") {
        return Err(KernelError::AddressSize);
    }
    let undefined = undefined(&code);
    if !undefined.is_empty() {
        return Err(KernelError::Undefined { names: undefined });
    }
    if code.matches('{').count() != code.matches('}').count() {
        return Err(KernelError::Damaged { problem: "a brace is not closed".to_owned() });
    }
    let mut entries = Vec::new();
    for rest in code.split(".visible").skip(1) {
        let Some(rest) = rest.trim_start().strip_prefix(".entry") else { continue };
        let name_end = rest.find(['(', '{', '\n']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(name_end);
        // A kernel without parameters may have no list.
        let list = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let list = list.map_or("", |(list, _)| list);
        let parameters = list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
        let parameter_bits = parameters.map(bits).collect();
        entries.push(Entry { name: name.trim().to_owned(), parameter_bits });
    }
    Ok(entries)
}

/// Returns the functions that code declares to be elsewhere, without those that drivers have.
fn undefined(code: &str) -> Vec<String> {
    const OF_DRIVERS: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];
    let declared = code.split(".extern").skip(1).filter_map(|rest| rest.trim_start().strip_prefix(".func"));
    let name = |rest: &str| {
        // What it returns, in parentheses, comes before its name.
        let rest = rest.trim_start();
        let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
        let name = rest.trim_start().split(|c: char| c.is_whitespace() || "(;".contains(c)).next()?;
        Some(name.to_owned())
    };
    declared.filter_map(name).filter(|name| !OF_DRIVERS.contains(&name.as_str())).collect()
}

/// Returns the bits of a parameter such as `.param .u64 .ptr .align 1 name` or `.param .align 8 .b8 name[16]`.
fn bits(parameter: &str) -> u32 {
    let ty = parameter.split_whitespace().filter_map(|word| word.strip_prefix(['.'])).find_map(|word| {
        let digits = word.strip_prefix(['u', 's', 'b', 'f'])?;
        digits.parse::<u32>().ok()
    });
    let count = parameter.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let count = count.and_then(|(count, _)| count.trim().parse().ok()).unwrap_or(1);
    ty.unwrap_or(0).saturating_mul(count)
}

/// Returns code without comments, which may have words of the language in them.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('/') {
        code.push_str(before);
        let comment = after.strip_prefix('/').map(|comment| (comment, "\n"));
        let Some((comment, end)) = comment.or_else(|| Some((after.strip_prefix('*')?, "*/"))) else {
            code.push('/');
            rest = after;
            continue;
        };
        rest = comment.split_once(end).map_or("", |(_, after)| after);
        code.push('\n');
    }
    code + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_the_sizes_of_what_they_take_are_found() {
        let text = "//\n// .visible .entry no()\n\n.version 7.6\n.target sm_80\n.address_size 64\n
            .visible .func helper(.param .b32 x) { ret; }
            .visible .entry scale(
                .param .u64 .ptr .global .align 1 scale_param_0,
                .param .u64 scale_param_1,\n.param .f32 scale_param_2, .param .align 8 .b8 scale_param_3[16]
            )\n{ ret; }
            .entry hidden(.param .u32 x) { ret; }
            .visible .entry nothing()\n{ ret; }";
        assert!(is_ptx(text));
        let entry = |name: &str, bits: &[u32]| Entry { name: name.into(), parameter_bits: bits.to_vec() };
        assert_eq!(entries(text).unwrap(), [entry("scale", &[64, 64, 32, 128]), entry("nothing", &[])]);
        let narrow = text.replace(".address_size 64", ".address_size 32");
        assert_eq!(entries(&narrow), Err(KernelError::AddressSize));
        let calls = text.replace(
            ".visible .func",
            ".extern .func (.param .b32 r) expf(.param .b32 x);\n.extern .func vprintf(.param .b64 x);\n.visible .func",
        );
        assert_eq!(entries(&calls), Err(KernelError::Undefined { names: vec!["expf".into()] }));
        assert!(matches!(entries(text.trim_end_matches('}')), Err(KernelError::Damaged { .. })));
        for other in ["", "// .version 7.6", "int main() {}"] {
            assert!(!is_ptx(other), "{other}");
        }
    }

    #[test]
    fn our_own_kernels_are_found() {
        for object in mlxcel_emitter::objects().filter(|object| object.name.ends_with(".ptx")) {
            let text = std::str::from_utf8(&object.bytes).unwrap();
            let entries = entries(text).unwrap();
            assert!(is_ptx(text) && !entries.is_empty(), "{}", object.name);
            let are_words = |entry: &Entry| entry.parameter_bits.iter().all(|bits| matches!(bits, 32 | 64));
            assert!(entries.iter().all(are_words), "{}: {entries:?}", object.name);
        }
    }
}
