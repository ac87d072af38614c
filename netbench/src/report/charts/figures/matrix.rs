//! Axes that vary between the cells: one is shown by colours, the others as panels.

use std::collections::BTreeMap;

use crate::report::results::{CellResult, Results};
use crate::scenario::axes::Cell;

/// The arranged cells.
pub(crate) struct Matrix<'a> {
    /// Every axis that varies: `group`, `stack`, a parameter. The first one has colours.
    pub(crate) varying: Vec<String>,
    pub(crate) panels: Vec<Panel<'a>>,
}

/// Cells that differ only in the coloured axis.
pub(crate) struct Panel<'a> {
    /// Values that distinguish it from other panels; empty if there is one panel.
    pub(crate) title: String,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// A cell in its panel.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) result: &'a CellResult,
    /// Value of the coloured axis.
    pub(crate) name: String,
    /// Index of its colour, the same wherever that value appears.
    pub(crate) series: usize,
}

/// Groups in the order of their fixed colours.
const GROUPS: [&str; 8] = [
    "X25519",
    "X25519MLKEM768",
    "MLKEM768",
    "SecP384r1MLKEM1024",
    "secp256r1",
    "SecP256r1MLKEM768",
    "secp384r1",
    "MLKEM1024",
];

/// Stacks in the order of their fixed colours.
const STACKS: [&str; 5] = ["hybriq", "s2n-quic", "quinn", "quiche", "tcp-tls"];

impl<'a> Matrix<'a> {
    /// Arranges the measured cells.
    pub(crate) fn of(results: &'a Results) -> Self {
        Self::arrange(measured(results), None)
    }

    /// Returns the matrix with this axis in colours.
    pub(crate) fn along(results: &'a Results, axis: &str) -> Self {
        Self::arrange(measured(results), Some(axis))
    }

    fn arrange(cells: Vec<&'a CellResult>, along: Option<&str>) -> Self {
        let values: Vec<_> = cells.iter().map(|cell| values(&cell.cell)).collect();
        let mut varying = varying(&values);
        if let Some(place) = varying.iter().position(|axis| Some(axis.as_str()) == along) {
            varying[..=place].rotate_right(1);
        }
        let axis = varying.first().cloned();
        let mut names: Vec<String> = Vec::new();
        let mut panels: Vec<Panel> = Vec::new();
        for (result, values) in cells.into_iter().zip(&values) {
            let value = |axis: &String| values.get(axis).cloned().unwrap_or_default();
            let name = match &axis {
                Some(axis) => value(axis),
                None => result.name.clone(),
            };
            let known = names.iter().position(|known| *known == name);
            let order = known.unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            });
            let title = panel_title(&varying, values);
            let entry = Entry {
                result,
                series: colour(axis.as_deref(), &name, order),
                name,
            };
            match panels.iter_mut().find(|panel| panel.title == title) {
                Some(panel) => panel.entries.push(entry),
                None => panels.push(Panel {
                    title,
                    entries: vec![entry],
                }),
            }
        }
        Self { varying, panels }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Panel<'a>, &Entry<'a>)> {
        self.panels
            .iter()
            .flat_map(|panel| panel.entries.iter().map(move |entry| (panel, entry)))
    }

    /// Returns true if there is something to compare.
    pub(crate) fn is_comparison(&self) -> bool {
        self.panels.iter().any(|panel| panel.entries.len() > 1)
    }
}

impl<'a> Panel<'a> {
    /// Returns the baseline of this panel: the most used classical group, our own stack, a full
    /// handshake; otherwise the first entry.
    pub(crate) fn baseline(&self) -> Option<&Entry<'a>> {
        let preferred = [
            "X25519",
            "secp256r1",
            "hybriq",
            "full",
            "ecdsa-p256",
            "rustls",
        ];
        preferred
            .iter()
            .find_map(|name| self.entries.iter().find(|entry| entry.name == *name))
            .or(self.entries.first())
    }
}

impl Entry<'_> {
    /// Returns its name with that of its panel.
    pub(crate) fn full_name(&self, panel: &Panel) -> String {
        match panel.title.as_str() {
            "" => self.name.clone(),
            title => format!("{} ({title})", self.name),
        }
    }
}

fn measured(results: &Results) -> Vec<&CellResult> {
    let cells = results.cells.iter();
    cells.filter(|cell| !cell.repetitions.is_empty()).collect()
}

/// Returns a cell's values by axis; the axes that vary most often come first in [`order`].
fn values(cell: &Cell) -> BTreeMap<String, String> {
    let stack = if cell.client == cell.driver {
        cell.driver.to_string()
    } else {
        format!("{} from {}", cell.driver, cell.client)
    };
    let link = match cell.link.as_str() {
        "" => "no link".to_owned(),
        link => link.to_owned(),
    };
    let congestion = match cell.congestion.as_str() {
        "" => "default congestion",
        name => name,
    };
    let congestion = congestion.to_owned();
    let either = |is: bool, yes: &str, no: &str| if is { yes } else { no }.to_owned();
    let mut values: BTreeMap<String, String> = [
        ("group", cell.group.to_string()),
        ("stack", stack),
        ("resumption", cell.resumption.to_string()),
        ("certificate", cell.certificate.to_string()),
        ("provider", cell.provider.to_string()),
        ("suite", cell.suite.to_string()),
        ("congestion", congestion),
        ("link", link),
        ("chain", format!("chain of {}", cell.chain)),
        ("workers", format!("workers {}", cell.workers)),
        (
            "hello_retry",
            either(
                cell.hello_retry,
                "HelloRetryRequest",
                "no HelloRetryRequest",
            ),
        ),
        (
            "client_auth",
            either(
                cell.client_auth,
                "client certificate",
                "no client certificate",
            ),
        ),
    ]
    .map(|(axis, value)| (axis.to_owned(), value))
    .into();
    for (param, value) in &cell.params {
        values.insert(
            param.clone(),
            format!("{} {value}", param.replace('_', " ")),
        );
    }
    values
}

const ORDER: [&str; 12] = [
    "group",
    "stack",
    "resumption",
    "certificate",
    "provider",
    "suite",
    "hello_retry",
    "chain",
    "workers",
    "client_auth",
    "congestion",
    "link",
];

/// Returns the axes with more than one value, without those that follow from another axis, such as
/// the provider of a stack that has no choice.
fn varying(cells: &[BTreeMap<String, String>]) -> Vec<String> {
    let mut axes: Vec<String> = ORDER.map(str::to_owned).into();
    let params = cells.iter().flat_map(|cell| cell.keys());
    for param in params {
        if !axes.contains(param) {
            axes.push(param.clone());
        }
    }
    let mut kept: Vec<String> = Vec::new();
    for axis in axes {
        let varies = cells
            .iter()
            .any(|cell| cell.get(&axis) != cells[0].get(&axis));
        if varies && !kept.iter().any(|known| determines(known, &axis, cells)) {
            kept.push(axis);
        }
    }
    kept
}

/// Returns true if cells with the same value on one axis have the same value on the other.
fn determines(known: &str, axis: &str, cells: &[BTreeMap<String, String>]) -> bool {
    let mut pairs = BTreeMap::new();
    cells
        .iter()
        .all(|cell| *pairs.entry(cell.get(known)).or_insert(cell.get(axis)) == cell.get(axis))
}

fn panel_title(varying: &[String], values: &BTreeMap<String, String>) -> String {
    let others = varying.iter().skip(1);
    let titles: Vec<_> = others
        .filter_map(|axis| values.get(axis))
        .filter(|value| !value.is_empty())
        .cloned()
        .collect();
    titles.join(", ")
}

fn colour(axis: Option<&str>, name: &str, order: usize) -> usize {
    let fixed: &[&str] = match axis {
        Some("group") => &GROUPS,
        Some("stack") => &STACKS,
        _ => return order,
    };
    match fixed.iter().position(|known| *known == name) {
        Some(index) => index,
        None => fixed.len() + order,
    }
}

#[cfg(test)]
mod tests {
    use super::Matrix;
    use hybriq::{Backend, Group};

    use crate::report::results::{CellResult, Repetition};
    use crate::scenario::axes::{Cell, Resumption, Stack};

    fn result(cell: Cell) -> CellResult {
        CellResult {
            name: cell.group.to_string(),
            cell,
            repetitions: vec![Repetition::default()],
            ..CellResult::default()
        }
    }

    fn cell(stack: Stack, provider: Backend, group: Group) -> CellResult {
        result(Cell {
            driver: stack,
            client: stack,
            provider,
            group,
            ..Cell::default()
        })
    }

    #[test]
    fn groups_have_colours_and_stacks_panels() {
        let cells = [
            cell(Stack::Hybriq, Backend::Rustls, Group::X25519),
            cell(Stack::Hybriq, Backend::Rustls, Group::X25519MLKEM768),
            cell(Stack::S2nQuic, Backend::S2nTls, Group::X25519),
            cell(Stack::S2nQuic, Backend::S2nTls, Group::X25519MLKEM768),
        ];
        let matrix = Matrix::arrange(cells.iter().collect(), None);
        assert_eq!(matrix.varying, ["group", "stack"]);
        let titles: Vec<_> = matrix.panels.iter().map(|panel| &panel.title).collect();
        assert_eq!(
            titles,
            ["hybriq", "s2n-quic"],
            "the provider says nothing more"
        );
        let colours: Vec<_> = matrix.entries().map(|(_, entry)| entry.series).collect();
        assert_eq!(colours, [0, 1, 0, 1]);
        let matrix = Matrix::arrange(cells.iter().collect(), Some("stack"));
        let titles: Vec<_> = matrix.panels.iter().map(|panel| &panel.title).collect();
        assert_eq!(titles, ["X25519", "X25519MLKEM768"]);
    }

    #[test]
    fn what_does_not_vary_is_not_named() {
        let cells = [
            cell(Stack::Hybriq, Backend::Rustls, Group::X25519),
            result(Cell {
                group: Group::X25519,
                resumption: Resumption::Psk,
                ..Cell::default()
            }),
        ];
        let matrix = Matrix::arrange(cells.iter().collect(), None);
        assert_eq!(matrix.varying, ["resumption"]);
        assert_eq!(matrix.panels.len(), 1);
        assert_eq!(matrix.panels[0].baseline().unwrap().name, "full");
        assert!(matrix.is_comparison());
    }

    #[test]
    fn one_cell_has_its_own_name_and_nothing_to_compare_with() {
        let cells = [cell(Stack::Hybriq, Backend::Rustls, Group::X25519)];
        let matrix = Matrix::arrange(cells.iter().collect(), None);
        assert_eq!(matrix.varying, [""; 0]);
        assert_eq!(matrix.panels[0].entries[0].name, "X25519");
        assert!(!matrix.is_comparison());
        assert!(Matrix::arrange(Vec::new(), None).panels.is_empty());
    }
}
