//! Tables as text, laid out as by the Python package (`bentpipe.cli.tables`).

use std::io::IsTerminal;

const GAP: &str = "  ";

/// Rows of text below headings. The first `left` columns are aligned to the left.
#[derive(Debug)]
pub(super) struct Table {
    headings: Vec<&'static str>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(headings: &[&'static str], left: usize) -> Self {
        Self {
            headings: headings.to_vec(),
            left,
            rows: Vec::new(),
        }
    }

    /// Adds a row, which has a cell for each heading.
    pub(super) fn add(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the text for a terminal of that width, in several pieces if it is narrow; or for a
    /// pipe (`None`).
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let pieces: Vec<String> = (self.pieces(width).iter())
            .map(|columns| self.piece(columns, width.is_some()))
            .collect();
        pieces.join("\n")
    }

    /// Returns the columns that are beside each other: the first one, and as many as fit.
    fn pieces(&self, width: Option<usize>) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.headings.len()).collect();
        let Some(width) = width.filter(|width| self.width(&all) > *width) else {
            return vec![all];
        };
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        for column in 1..self.headings.len() {
            match pieces.last_mut() {
                Some(piece) if self.width(&[piece.as_slice(), &[column]].concat()) <= width => {
                    piece.push(column);
                }
                _ => pieces.push(vec![0, column]),
            }
        }
        pieces
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells
            .max()
            .unwrap_or(0)
            .max(self.headings[column].chars().count())
    }

    fn width(&self, columns: &[usize]) -> usize {
        let widths: usize = columns
            .iter()
            .map(|column| self.column_width(*column))
            .sum();
        widths + GAP.len() * columns.len().saturating_sub(1)
    }

    fn piece(&self, columns: &[usize], is_ruled: bool) -> String {
        let line = |cells: &dyn Fn(usize) -> String| {
            let cells: Vec<String> = (columns.iter())
                .map(|&column| {
                    let (cell, width) = (cells(column), self.column_width(column));
                    if column < self.left {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                })
                .collect();
            format!("{}\n", cells.join(GAP).trim_end())
        };
        let mut text = line(&|column| self.headings[column].to_owned());
        if is_ruled {
            text += &format!("{}\n", "─".repeat(self.width(columns)));
        }
        for row in &self.rows {
            text += &line(&|column| row[column].clone());
        }
        text
    }
}

/// Returns the width of the terminal on standard output, or `None` if there is none.
pub(super) fn terminal_width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let wanted = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let wanted = wanted.filter(|columns: &usize| *columns > 0);
    let real = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    Some(wanted.or_else(real).unwrap_or(80))
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table() -> Table {
        let mut table = Table::new(&["link", "kind", "packets"], 2);
        table.add(vec!["satellite".into(), "µ".into(), "12".into()]);
        table.add(vec!["lan".into(), "fast".into(), "1,234".into()]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let text = "link       kind  packets\n\
                    satellite  µ          12\n\
                    lan        fast    1,234\n";
        assert_eq!(table().text(None), text);
    }

    #[test]
    fn narrow_terminals_get_pieces_that_begin_with_the_first_column() {
        let text = "link       kind\n\
                    ───────────────\n\
                    satellite  µ\n\
                    lan        fast\n\
                    \n\
                    link       packets\n\
                    ──────────────────\n\
                    satellite       12\n\
                    lan          1,234\n";
        assert_eq!(table().text(Some(20)), text);
    }
}
