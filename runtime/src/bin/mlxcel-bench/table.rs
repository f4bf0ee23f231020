//! Aligned Markdown tables, and comma-separated values.

/// Renders a Markdown table.
pub(crate) fn table(names: &[&str], rows: &[Vec<String>]) -> String {
    let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let columns: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let cells = || rows.iter().map(|row| row[index].as_str());
            Column::new(name, cells(), cells().all(is_number))
        })
        .collect();
    header(&columns) + &rows.iter().map(|row| line(&columns, row)).collect::<String>()
}

/// A column of a table.
pub(crate) struct Column {
    name: String,
    width: usize,
    /// True if cells are aligned to the right.
    right: bool,
}

impl Column {
    /// Makes a column that is wide enough for these cells.
    pub(crate) fn new<'a>(name: &'a str, cells: impl Iterator<Item = &'a str>, right: bool) -> Self {
        let width = cells.chain([name]).map(|cell| cell.chars().count()).max().unwrap_or_default();
        Self { name: name.into(), width, right }
    }
}

/// Renders the header of a Markdown table.
pub(crate) fn header(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| &column.name).collect();
    let rule = |Column { width, right, .. }: &Column| {
        let dashes = "-".repeat(width.saturating_sub(1).max(1));
        if *right { dashes + ":" } else { format!("-{dashes}") }
    };
    line(columns, &names) + &line(columns, &columns.iter().map(rule).collect::<Vec<_>>())
}

/// Renders a row of a Markdown table.
pub(crate) fn line(columns: &[Column], cells: &[impl AsRef<str>]) -> String {
    let padded = cells.iter().zip(columns).map(|(cell, &Column { width, right, .. })| {
        // A `|` would end the cell.
        let cell = cell.as_ref().replace('|', "\\|");
        if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
}

/// Renders a line of comma-separated values.
pub(crate) fn values(cells: &[impl AsRef<str>]) -> String {
    cells.iter().map(|cell| quoted(cell.as_ref())).collect::<Vec<_>>().join(",") + "\n"
}

/// Quotes a cell of CSV if needed (RFC 4180).
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
