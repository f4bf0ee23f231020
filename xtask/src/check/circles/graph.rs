//! Files and what they take from each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Edges from each file to those that define what it takes, with the names.
#[derive(Default)]
pub(super) struct Graph<'a> {
    edges: BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>,
}

impl<'a> Graph<'a> {
    pub(super) fn add(&mut self, from: &'a str, to: &'a str, name: String) {
        if from != to {
            self.edges.entry(from).or_default().entry(to).or_default().insert(name);
        }
    }

    /// Returns circles until every one there is has an edge in one of them: the shortest first, a line for each edge.
    pub(super) fn circles(mut self) -> Vec<Vec<String>> {
        let mut circles = Vec::new();
        while let Some(files) = self.shortest_circle() {
            let next = files.iter().cycle().skip(1);
            let edges: Vec<(&str, &str)> = files.iter().copied().zip(next.copied()).collect();
            let mut lines = Vec::new();
            for (from, to) in edges {
                let names = self.edges.get_mut(from).and_then(|edges| edges.remove(to)).unwrap_or_default();
                let names = names.into_iter().collect::<Vec<_>>().join(", ");
                lines.push(format!("  {from} takes {names} from {to}"));
            }
            circles.push(lines);
        }
        circles
    }

    fn shortest_circle(&self) -> Option<Vec<&'a str>> {
        let circles = self.edges.keys().filter_map(|file| self.circle_through(file));
        circles.min_by_key(Vec::len)
    }

    /// Searches breadth first for the shortest way from a file back to itself.
    fn circle_through(&self, start: &'a str) -> Option<Vec<&'a str>> {
        let mut before: BTreeMap<&str, &'a str> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(file) = queue.pop_front() {
            for &next in self.edges.get(file).into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    let way = std::iter::successors(Some(file), |file| before.get(file).copied());
                    let mut files: Vec<&str> = way.collect();
                    files.reverse();
                    return Some(files);
                }
                if !before.contains_key(next) {
                    before.insert(next, file);
                    queue.push_back(next);
                }
            }
        }
        None
    }
}
