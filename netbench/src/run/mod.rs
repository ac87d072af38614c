//! `netbench run`: runs a scenario repeatedly for each cell of its matrix.
//!
//! ```text
//!  Template ─┐                       ┌─► server process ┐
//!  axes ─────┴─► matrix ─► repetition┼─► link process   ├─ one JSON value a line
//!                 (cells)    │       └─► client process ┘
//!                            ▼
//!                   record ─► results: table, JSON, CSV, HTML, charts
//! ```
//! Within a repetition the cells take turns, each with fresh processes, so that other load on the
//! machine and the temperature of its cores affect all alike.

pub(crate) mod args;
pub(crate) mod distributed;
pub(crate) mod link;
mod live;
mod matrix;
mod place;
mod record;
mod repetition;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::drivers::Transport;
use crate::report::outputs;
use crate::report::outputs::Outputs;
use crate::scenario::axes::Axes;
use crate::system::failure::Failure;
use crate::system::machine::Machine;

use crate::report::results::Results;
use crate::scenario::Template;
use crate::system::terminal;
use crate::system::terminal::{complain, print};

pub(crate) use place::Place;

use live::Live;
use live::allowance::Allowance;
use live::interrupt::Interrupt;
use matrix::Planned;
use record::Record;
use repetition::Task;

/// Request for measurements.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) template: Template,
    /// Axes of the command line, which replace those of the scenario's file.
    pub(crate) axes: Axes,
    /// Names of axes whose values must not all be left out.
    pub(crate) named: BTreeSet<String>,
    pub(crate) repetitions: u32,
    /// Time limit for all of it, which may reduce the repetitions.
    pub(crate) time: Option<Duration>,
    /// Number of further turns in which cells are measured again that other work disturbed.
    pub(crate) retries: u32,
    /// True if a cell is not measured again after all of its connections failed.
    pub(crate) gives_up: bool,
    /// Number of processes for each client of the scenario.
    pub(crate) clients: u32,
    pub(crate) place: Place,
    /// Settings of the command line.
    pub(crate) transport: Transport,
    pub(crate) outputs: Outputs,
}

impl Request {
    /// Makes a request for a scenario on this machine, without files.
    pub(crate) fn new(template: Template) -> Self {
        Self {
            template,
            axes: Axes::default(),
            named: BTreeSet::new(),
            repetitions: 5,
            time: None,
            retries: 2,
            gives_up: false,
            clients: 1,
            place: Place::Here(([127, 0, 0, 1], 0).into()),
            transport: Transport::default(),
            outputs: Outputs::default(),
        }
    }
}

/// Measures and prints the table. Measurements before a failure are kept.
pub(crate) async fn run(request: Request) -> Result<ExitCode, Failure> {
    let (results, told) = Measuring::prepare(&request)?.measure().await?;
    let printed = if request.outputs.print_json {
        let line = serde_json::to_string(&results)?;
        print(|out| writeln!(out, "{line}"))
    } else {
        print(|out| results.print(out, terminal::width()))
    };
    let written = request.outputs.write(&results, printed);
    for problem in results.problems.iter().skip(told) {
        complain(problem);
    }
    written?;
    Ok(if results.was_interrupted() {
        ExitCode::from(outputs::INTERRUPTED)
    } else if results.complete && results.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures and shows the progress; the caller prints and writes. Fails if nothing was measured.
pub(crate) async fn measure(request: &Request) -> Result<Results, Failure> {
    let (results, _) = Measuring::prepare(request)?.measure().await?;
    Ok(results)
}

/// A run in progress.
struct Measuring<'a> {
    request: &'a Request,
    plan: Vec<Planned>,
    certificates: matrix::setup::CertificatesByKind,
    interrupt: Interrupt,
    machine: Machine,
}

impl<'a> Measuring<'a> {
    fn prepare(request: &'a Request) -> Result<Self, Failure> {
        let axes = matrix::setup::axes(request)?;
        let plan = matrix::plan(&request.template, &axes, &request.named)?;
        matrix::setup::check_place(&request.place, &plan)?;
        request.outputs.check()?;
        Ok(Self {
            request,
            plan,
            certificates: matrix::setup::CertificatesByKind::default(),
            interrupt: Interrupt::listen()?,
            machine: Machine::detect(),
        })
    }

    /// Measures; also returns the number of problems already reported.
    async fn measure(mut self) -> Result<(Results, usize), Failure> {
        let started = Instant::now();
        let mut record = Record::new(self.request, &self.plan, self.machine.clone())?;
        let measurable = record.measurable();
        let names = self.plan.iter().map(|planned| planned.name.clone());
        let mut live = Live::start(
            names.collect(),
            self.request.repetitions,
            measurable.len() * self.request.repetitions as usize,
        );
        for reason in record.left_out() {
            live.say(&reason);
        }
        let mut allowance = Allowance::new(self.request.time, started);
        let mut parts = Some(&self.request.outputs);
        for repetition in 1..=self.request.repetitions {
            if !allowance.begins_turn(Instant::now()) {
                break;
            }
            for &cell in &in_turn(&measurable, repetition) {
                if self.is_cut_short() || allowance.is_overdrawn(Instant::now()) {
                    break;
                }
                if record.is_given_up(cell) {
                    live.skip(1);
                    continue;
                }
                live.begin(cell, repetition);
                let measured = self.repetition(cell, repetition, started, &live).await;
                record.add(cell, repetition, measured, &mut live);
                if let Some(outputs) = parts
                    && let Err(failure) = outputs.write_part(&record.results)
                {
                    // The measurement continues: its end writes the files again.
                    live.say(&failure.to_string());
                    parts = None;
                }
            }
        }
        self.measure_again(&mut record, &mut allowance, started, &live)
            .await;
        if !self.is_cut_short() {
            record.note_unmeasured();
        }
        record.tell(&live);
        drop(live);
        let told = record.results.problems.len();
        Ok((record.finish(&self.interrupt)?, told))
    }

    /// Measures cells again that other work on this machine disturbed, as often as the request and
    /// its time allow. Clients of other hosts' servers keep to their common rounds.
    async fn measure_again(
        &mut self,
        record: &mut Record,
        allowance: &mut Allowance,
        started: Instant,
        live: &Live,
    ) {
        if !matches!(self.request.place, Place::Here(_)) {
            return;
        }
        for turn in 1..=self.request.retries {
            let disturbed = record.disturbed();
            if disturbed.is_empty() || !allowance.begins_turn(Instant::now()) {
                return;
            }
            let number = disturbed.len();
            live.say(&format!(
                "other work on this machine disturbed {number} cells: measuring them again"
            ));
            let repetition = self.request.repetitions + turn;
            for cell in in_turn(&disturbed, repetition) {
                if self.is_cut_short() || allowance.is_overdrawn(Instant::now()) {
                    return;
                }
                let measured = self.repetition(cell, repetition, started, live).await;
                record.add_again(cell, measured);
            }
        }
    }

    /// Returns true if nothing more should or can be measured.
    fn is_cut_short(&self) -> bool {
        self.interrupt.is_asked() || self.request.place.is_lost()
    }

    async fn repetition(
        &mut self,
        cell: usize,
        repetition: u32,
        started: Instant,
        live: &Live,
    ) -> Result<repetition::measurement::Measured, Failure> {
        let planned = self.plan.get(cell).ok_or("a cell that was never planned")?;
        let transport =
            matrix::setup::transport(&self.request.transport, &planned.cell, &planned.scenario);
        let task = Task {
            cell: &planned.cell,
            scenario: &planned.scenario,
            certificates: self.certificates.of(&planned.cell)?,
            transport: &transport,
            machine: &self.machine,
            place: &self.request.place,
            clients: self.request.clients as usize,
            seed: repetition.into(),
            started,
            interrupt: &self.interrupt,
        };
        task.run(|progress| live.update(cell, repetition, progress))
            .await
    }
}

/// Returns the order of the cells. Every other repetition goes backwards, so that no cell always
/// follows the same one.
fn in_turn(cells: &[usize], repetition: u32) -> Vec<usize> {
    let mut cells = cells.to_vec();
    if repetition.is_multiple_of(2) {
        cells.reverse();
    }
    cells
}
