//! The table on the terminal: the columns that apply to what was measured.

use std::io::{self, Write};

use crate::report::charts::Table;
use crate::report::results::{CellResult, MUCH, Results, Summary};

/// A column of texts: its heading, and a text for each cell.
type Column = (String, Vec<String>);

/// Format of a value: the divisor, and the number of digits behind the point.
#[derive(Clone, Copy)]
struct Form {
    divisor: f64,
    digits: usize,
}

const WHOLE: Form = Form {
    divisor: 1.0,
    digits: 0,
};
const TENTHS: Form = Form {
    divisor: 1.0,
    digits: 1,
};
const GIGA: Form = Form {
    divisor: 1e9,
    digits: 2,
};

/// The load average up to which a machine counts as quiet. A run itself adds less than 2.
const QUIET: f64 = 1.0;

impl Results {
    /// Prints where and what was measured, and the table.
    pub(crate) fn print(&self, out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
        let machine = &self.about.machine;
        let pinned = match (machine.server_core, machine.client_core) {
            (Some(server), Some(client)) => {
                format!("server on core {server}, client on core {client}")
            }
            _ => "not pinned: there is only one core".to_owned(),
        };
        writeln!(
            out,
            "{}, {} cores, {}, load {}; {pinned}",
            machine.cpu, machine.cores, machine.kernel, machine.load
        )?;
        if let Some(noise) = self.noise() {
            writeln!(out, "{noise}")?;
        } else if machine.load > QUIET {
            writeln!(out, "other work on this machine may disturb these figures")?;
        }
        if cfg!(debug_assertions) {
            writeln!(out, "debug build: these figures say nothing, use --release")?;
        }
        writeln!(out, "{}\n", self.describe())?;
        self.print_table(out, width)?;
        self.print_foot(out)
    }

    /// The scenario, and its parameters that do not vary.
    fn describe(&self) -> String {
        let params = self.scenario.params.iter();
        let fixed: Vec<String> = params
            .filter(|(name, _)| {
                let values = self.scenario.axes.params.get(*name);
                values.is_none_or(|values| values.len() < 2)
            })
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        format!("{}: {}", self.scenario.name, fixed.join(", "))
    }

    fn print_foot(&self, out: &mut impl Write) -> io::Result<()> {
        let repetitions = self.cells.iter().flat_map(|cell| cell.summary.values());
        let most = repetitions.map(|summary| summary.n).max().unwrap_or(0);
        writeln!(out)?;
        if most > 1 {
            writeln!(
                out,
                "medians of {most} repetitions; ±: where the median of a repeat lies, 95 times of 100"
            )?;
        }
        writeln!(
            out,
            "p50, p99: from the intended start to handshake complete; CPU, bytes, datagrams: per connection"
        )
    }

    /// Prints a line for each cell that was measured, at most `width` columns wide where that is
    /// given.
    pub(crate) fn print_table(&self, out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
        let measured: Vec<&CellResult> = self
            .cells
            .iter()
            .filter(|cell| !cell.summary.is_empty())
            .collect();
        if measured.is_empty() {
            return Ok(());
        }
        let mut columns = columns(&measured, Detail::WithIntervals);
        let is_wide =
            |columns: &[Column]| width.is_some_and(|width| table(columns).width() > width);
        if is_wide(&columns) {
            columns = self::columns(&measured, Detail::MediansAlone);
        }
        let mut left_out = Vec::new();
        while is_wide(&columns) && columns.len() > 2 {
            left_out.extend(columns.pop().map(|(head, _)| head));
        }
        table(&columns).print(out, 0)?;
        if !left_out.is_empty() {
            left_out.reverse();
            writeln!(out, "\nno room for: {}", left_out.join(", "))?;
        }
        Ok(())
    }
}

/// Detail of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Each median has its 95 % interval behind it.
    WithIntervals,
    /// Medians stand alone, so that more columns fit.
    MediansAlone,
}

/// Returns the columns in the order of their importance.
fn columns(cells: &[&CellResult], detail: Detail) -> Vec<Column> {
    let table = Columns { cells, detail };
    let marked = |cell: &&CellResult| {
        if cell.disturbed {
            format!("{} !", cell.name).trim_start().to_owned()
        } else {
            cell.name.clone()
        }
    };
    let names = cells.iter().map(marked).collect();
    let mut columns = vec![(String::new(), names)];
    let mut add = |column: Option<Column>| columns.extend(column);
    let throughput = table.bits_per_connection() >= MUCH;
    let cpu = if throughput { WHOLE } else { TENTHS };
    if throughput {
        add(table.figure("Gbit/s", "goodput_bits_per_second", GIGA));
    } else {
        add(table.figure("conn/s", "connections_per_second", WHOLE));
    }
    if table.per_connection("requests_per_second") > 1.5 {
        add(table.figure("req/s", "requests_per_second", WHOLE));
        add(table.figure("req p50 µs", "request_p50_us", WHOLE));
        add(table.figure("req p99 µs", "request_p99_us", WHOLE));
    }
    add(table.figure("dgram p50 µs", "datagram_p50_us", WHOLE));
    add(table.figure("dgram p99 µs", "datagram_p99_us", WHOLE));
    add(table.figure("lost %", "datagrams_lost_percent", TENTHS));
    add(table.figure("p50 µs", "handshake_p50_us", WHOLE));
    add(table.figure("p99 µs", "handshake_p99_us", WHOLE));
    add(table.figure("server CPU µs", "server_cpu_us", cpu));
    add(table.figure("client CPU µs", "client_cpu_us", cpu));
    add(table.pair("B/dgrams up", "bytes_to_server", "datagrams_to_server"));
    add(table.pair("B/dgrams down", "bytes_to_client", "datagrams_to_client"));
    add(table.retry());
    if table.any(|summary| summary.high > 0.0, "failed_percent") {
        add(table.figure("failed %", "failed_percent", TENTHS));
    }
    columns
}

struct Columns<'a> {
    cells: &'a [&'a CellResult],
    detail: Detail,
}

impl Columns<'_> {
    fn any(&self, is: impl Fn(&Summary) -> bool, name: &str) -> bool {
        self.cells
            .iter()
            .filter_map(|cell| cell.summary.get(name))
            .any(is)
    }

    /// A rate, for each connection.
    fn per_connection(&self, name: &str) -> f64 {
        let ratio = |cell: &&CellResult| {
            let connections = cell.summary.get("connections_per_second")?.median;
            Some(cell.summary.get(name)?.median / connections)
        };
        self.cells.iter().filter_map(ratio).fold(0.0, f64::max)
    }

    fn bits_per_connection(&self) -> f64 {
        self.per_connection("goodput_bits_per_second")
    }

    /// A column of one figure. `None`: no cell has it.
    fn figure(&self, head: &str, name: &str, form: Form) -> Option<Column> {
        self.any(|_| true, name).then(|| {
            let summaries = self.cells.iter().map(|cell| cell.summary.get(name));
            (
                head.to_owned(),
                summaries
                    .map(|summary| summary.map_or_else(missing, |it| self.write(it, form)))
                    .collect(),
            )
        })
    }

    fn write(&self, summary: &Summary, form: Form) -> String {
        let Form { divisor, digits } = form;
        let median = summary.median / divisor;
        if self.detail == Detail::MediansAlone || summary.n < 2 {
            return format!("{median:.digits$}");
        }
        let half = (summary.high - summary.median) / divisor;
        format!("{median:.digits$} ±{half:.digits$}")
    }

    fn pair(&self, head: &str, first: &str, second: &str) -> Option<Column> {
        self.any(|_| true, first).then(|| {
            let write = |cell: &&CellResult| {
                let median = |name| cell.summary.get(name).map(|summary| summary.median);
                match (median(first), median(second)) {
                    (Some(bytes), Some(datagrams)) => format!("{bytes:.0}/{datagrams:.1}"),
                    _ => missing(),
                }
            };
            (head.to_owned(), self.cells.iter().map(write).collect())
        })
    }

    /// Returns a column that says whether the server asked for another share, if any stack tells.
    fn retry(&self) -> Option<Column> {
        let told = |cell: &&CellResult| {
            let mut known = cell.repetitions.iter();
            known.find_map(|repetition| repetition.negotiated.hello_retry)
        };
        self.cells.iter().any(|cell| told(cell).is_some()).then(|| {
            let write = |cell| match told(cell) {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => missing(),
            };
            ("retry".to_owned(), self.cells.iter().map(write).collect())
        })
    }
}

fn missing() -> String {
    "-".to_owned()
}

fn table(columns: &[Column]) -> Table {
    let rows = columns.first().map_or(0, |(_, texts)| texts.len());
    let row = |row| {
        let texts = columns.iter().filter_map(|(_, texts)| texts.get(row));
        texts.cloned().collect()
    };
    let heads = columns.iter().map(|(head, _)| head.clone());
    Table::of_texts(heads, (0..rows).map(row))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{CellResult, Detail, Summary, columns, table};
    use crate::scenario::axes::Cell;

    fn cell(name: &str, figures: &[(&str, f64)]) -> CellResult {
        let summary = |value: f64| Summary {
            median: value,
            low: value * 0.9,
            high: value * 1.1,
            n: 5,
        };
        CellResult {
            cell: Cell::default(),
            name: name.to_owned(),
            summary: figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), summary(*value)))
                .collect::<BTreeMap<_, _>>(),
            ..CellResult::default()
        }
    }

    fn heads(cells: &[&CellResult]) -> Vec<String> {
        columns(cells, Detail::WithIntervals)
            .into_iter()
            .map(|(head, _)| head)
            .collect()
    }

    #[test]
    fn only_columns_that_somebody_has_are_shown() {
        let quick = cell(
            "X25519",
            &[
                ("connections_per_second", 1000.0),
                ("requests_per_second", 1000.0),
                ("goodput_bits_per_second", 16_000.0),
                ("handshake_p50_us", 400.0),
                ("failed_percent", 0.0),
            ],
        );
        assert_eq!(heads(&[&quick]), ["", "conn/s", "p50 µs"]);

        let many = cell(
            "X25519",
            &[
                ("connections_per_second", 10.0),
                ("requests_per_second", 1000.0),
                ("failed_percent", 1.0),
            ],
        );
        assert_eq!(heads(&[&many]), ["", "conn/s", "req/s", "failed %"]);

        let bulk = cell(
            "X25519",
            &[
                ("connections_per_second", 0.5),
                ("goodput_bits_per_second", 8e9),
            ],
        );
        assert_eq!(heads(&[&bulk]), ["", "Gbit/s"]);
    }

    #[test]
    fn a_disturbed_cell_is_marked() {
        let mut noisy = cell("X25519", &[("handshake_p50_us", 400.0)]);
        noisy.disturbed = true;
        let texts = &columns(&[&noisy], Detail::MediansAlone)[0].1;
        assert_eq!(*texts, ["X25519 !"]);
    }

    #[test]
    fn figures_stand_to_the_right_with_their_interval() {
        let long = cell("X25519MLKEM768", &[("connections_per_second", 1000.0)]);
        let short = cell("X25519", &[("handshake_p50_us", 400.0)]);
        let mut out = Vec::new();
        let columns = columns(&[&long, &short], Detail::WithIntervals);
        table(&columns).print(&mut out, 0).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "                   conn/s   p50 µs\n\
             X25519MLKEM768  1000 ±100        -\n\
             X25519                  -  400 ±40\n"
        );
        assert_eq!(table(&columns).width(), 34);
    }
}
