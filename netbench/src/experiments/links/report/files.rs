//! Files of a comparison.

use std::path::Path;

use csv::{Terminator, WriterBuilder};

use super::{Outcome, Report};
use crate::report::outputs::Outputs;
use crate::report::{charts, csv as rows, outputs, page};
use crate::system::failure::Failure;
use crate::system::files;

const COLUMNS: [&str; 16] = [
    "case",
    "stack",
    "version",
    "congestion",
    "repetition",
    "goodput_mbit",
    "second_half_mbit",
    "connected_ms",
    "packets_sent",
    "packets_lost",
    "mean_queue_ms",
    "max_queue_ms",
    "server_cpu_s",
    "client_cpu_s",
    "error",
    "link_command",
];

impl Report {
    /// Writes the JSON file with the runs so far.
    pub(crate) fn write_part(&self, outputs: &Outputs) -> Result<(), Failure> {
        match &outputs.json {
            Some(path) if files::is_replaced(path) => self.write_json(path),
            _ => Ok(()),
        }
    }

    /// Writes all files, after the table was printed. The failure of one does not keep the others
    /// from being written, and runs that are in no file are rescued to another place.
    ///
    /// # Errors
    ///
    /// All failures, that of printing too, in one line with the name of the file that has the runs.
    pub(crate) fn write(
        &self,
        outputs: &Outputs,
        printed: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failures: Vec<Failure> = printed.err().into_iter().collect();
        let mut stands_in = None;
        if let Some(path) = &outputs.json {
            match self.write_json(path) {
                Ok(()) => stands_in = files::is_replaced(path).then(|| path.clone()),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(path) = &outputs.csv {
            let written = self.csv().and_then(|text| rows::save(path, &text));
            failures.extend(written.err());
        }
        let figures = self.figures();
        if let Some(path) = &outputs.html {
            let mut head = Vec::new();
            self.print_head(&mut head)?;
            let head = String::from_utf8_lossy(&head);
            let chapter = page::Drawn {
                title: "links",
                headline: "Downloads over emulated links",
                intro: head.lines().collect(),
                figures: &figures,
                table: &self.table(),
            };
            failures.extend(page::write_drawn(&chapter, path).err());
        }
        if let Some(folder) = &outputs.charts {
            failures.extend(charts::write_figures(&figures, folder).err());
        }
        if failures.is_empty() {
            return Ok(());
        }
        let rescue = || files::rescue(&serde_json::to_vec(self).ok()?);
        Err(outputs::told(&failures, stands_in.or_else(rescue)))
    }

    fn write_json(&self, path: &Path) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(self)?;
        files::write(path, &json)
            .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
    }

    /// Returns a row for each run.
    pub(super) fn csv(&self) -> Result<Vec<u8>, Failure> {
        let mut table = WriterBuilder::new()
            .terminator(Terminator::CRLF)
            .from_writer(Vec::new());
        table.write_record(COLUMNS)?;
        for run in &self.runs {
            let stack = self.stacks.iter().find(|stack| stack.label == run.stack);
            let mut row = vec![
                run.case.to_owned(),
                run.stack.clone(),
                stack.map(|it| it.version.to_owned()).unwrap_or_default(),
                stack.map(|it| it.congestion.clone()).unwrap_or_default(),
                run.repetition.to_string(),
            ];
            match &run.outcome {
                Outcome::Done(done) => {
                    let down = &done.link.down;
                    row.extend([
                        done.goodput_mbit.to_string(),
                        done.second_half_mbit.to_string(),
                        done.client.connected_ms.to_string(),
                        done.server.packets_sent.to_string(),
                        done.server.packets_lost.to_string(),
                        (down.mean_queue_delay_us / 1e3).to_string(),
                        (down.max_queue_delay_us / 1e3).to_string(),
                        done.server.cpu_s.to_string(),
                        done.client.cpu_s.to_string(),
                        String::new(),
                    ]);
                }
                Outcome::Failed(reason) => {
                    row.extend(std::iter::repeat_n(String::new(), 9));
                    row.push(reason.clone());
                }
            }
            row.push(run.link_command.clone());
            table.write_record(&row)?;
        }
        Ok(table.into_inner().map_err(|error| error.to_string())?)
    }
}
