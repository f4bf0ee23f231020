//! Other names of a checkpoint's tensors.

/// The ways in which checkpoints of a family name tensors differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aliases {
    /// Prefix of every name, which some checkpoints omit.
    pub prefix: Option<&'static str>,
    /// Pairs of name endings that stand for each other.
    pub endings: &'static [(&'static str, &'static str)],
}

impl Aliases {
    /// Returns the other names of the tensor `name`.
    #[must_use]
    pub fn of(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        let swapped = |(one, other): &(&str, &str)| {
            let swap = |from, to| name.strip_suffix(from).map(|start| format!("{start}{to}"));
            swap(*one, *other).or_else(|| swap(*other, *one))
        };
        names.extend(self.endings.iter().find_map(swapped));
        if let Some(prefix) = self.prefix {
            let with_or_without = |name: &String| {
                name.strip_prefix(prefix).map_or_else(|| format!("{prefix}{name}"), str::to_owned)
            };
            let others: Vec<_> = names.iter().map(with_or_without).collect();
            names.extend(others);
        }
        names.split_off(1)
    }
}
