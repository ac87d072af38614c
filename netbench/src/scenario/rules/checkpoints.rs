//! Checks that every script that waits at a checkpoint is released.

use crate::scenario::{Client, ClientOp, Iterate, Op};

/// Step on the way from the start of a script to one of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The n-th of sequential operations.
    Next(usize),
    /// The n-th of concurrent scripts.
    Thread(usize),
}

/// A `park` or an `unpark`.
struct Place {
    checkpoint: u64,
    way: Vec<Step>,
    path: String,
}

/// Checkpoints of a client, or of one end of a connection.
#[derive(Default)]
pub(crate) struct Checkpoints {
    parks: Vec<Place>,
    unparks: Vec<Place>,
}

/// Parts of a script that matter to checkpoints.
enum Parts<'a, T> {
    Park(u64),
    Unpark(u64),
    Threads(&'a [Vec<T>]),
    Loop(&'static str, &'a [T]),
    Other,
}

trait Script: Sized {
    fn parts(&self) -> Parts<'_, Self>;
}

impl Script for ClientOp {
    fn parts(&self) -> Parts<'_, Self> {
        match self {
            Self::Park(checkpoint) => Parts::Park(*checkpoint),
            Self::Unpark(checkpoint) => Parts::Unpark(*checkpoint),
            Self::Scope(threads) => Parts::Threads(threads),
            Self::Iterate(Iterate { ops, .. }) => Parts::Loop("iterate", ops),
            Self::Connect(_) | Self::Pool(_) | Self::Hold(_) | Self::Sleep(_) => Parts::Other,
        }
    }
}

impl Script for Op {
    fn parts(&self) -> Parts<'_, Self> {
        match self {
            Self::Park(checkpoint) => Parts::Park(*checkpoint),
            Self::Unpark(checkpoint) => Parts::Unpark(*checkpoint),
            Self::Scope(threads) => Parts::Threads(threads),
            Self::Iterate(Iterate { ops, .. }) => Parts::Loop("iterate", ops),
            Self::Request(request) => Parts::Loop("request", &request.ops),
            _ => Parts::Other,
        }
    }
}

impl Checkpoints {
    pub(crate) fn of_client(path: &str, client: &Client) -> Self {
        let mut found = Self::default();
        found.collect(path, &client.ops, &[]);
        found
    }

    /// Checks both ends of a connection. An end runs its own script and those of the streams that
    /// the other end opens, all concurrently.
    pub(crate) fn of_connection(path: &str, client: &[Op], server: &[Op]) -> Result<(), String> {
        let mut ends = [Self::default(), Self::default()];
        let mut scripts = vec![
            (format!("{path}.ops"), client, 0),
            (format!("{path}.server_ops"), server, 1),
        ];
        let mut number = 0;
        while let Some((path, ops, end)) = scripts.pop() {
            ends[end].collect(&path, ops, &[Step::Thread(number)]);
            number += 1;
            let mut opened = Vec::new();
            peers(&path, ops, &mut opened);
            scripts.extend(opened.into_iter().map(|(path, ops)| (path, ops, 1 - end)));
        }
        ends.iter().try_for_each(Self::check)
    }

    fn collect<T: Script>(&mut self, path: &str, ops: &[T], way: &[Step]) {
        for (index, op) in ops.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let way = [way, &[Step::Next(index)]].concat();
            let place = |checkpoint, name: &str| Place {
                checkpoint,
                way: way.clone(),
                path: format!("{path}.{name}"),
            };
            match op.parts() {
                Parts::Park(checkpoint) => self.parks.push(place(checkpoint, "park")),
                Parts::Unpark(checkpoint) => self.unparks.push(place(checkpoint, "unpark")),
                Parts::Threads(threads) => {
                    for (index, ops) in threads.iter().enumerate() {
                        let way = [way.as_slice(), &[Step::Thread(index)]].concat();
                        self.collect(&format!("{path}.scope[{index}]"), ops, &way);
                    }
                }
                Parts::Loop(name, ops) => self.collect(&format!("{path}.{name}.ops"), ops, &way),
                Parts::Other => {}
            }
        }
    }

    /// Refuses checkpoints that wait for ever, and those that nobody waits at.
    pub(crate) fn check(&self) -> Result<(), String> {
        for park in &self.parks {
            let checkpoint = park.checkpoint;
            let mut unparks = self
                .unparks
                .iter()
                .filter(|unpark| unpark.checkpoint == checkpoint)
                .peekable();
            if unparks.peek().is_none() {
                let path = &park.path;
                return Err(format!(
                    "{path}: waits for ever: nothing on this end unparks checkpoint {checkpoint}"
                ));
            }
            if !unparks.any(|unpark| is_reached_before(&unpark.way, &park.way)) {
                let path = &park.path;
                return Err(format!(
                    "{path}: waits for ever: checkpoint {checkpoint} is unparked only after it"
                ));
            }
        }
        let idle = (self.unparks.iter()).find(|unpark| {
            !self
                .parks
                .iter()
                .any(|park| park.checkpoint == unpark.checkpoint)
        });
        match idle {
            Some(Place {
                checkpoint, path, ..
            }) => Err(format!(
                "{path}: nothing on this end parks at checkpoint {checkpoint}"
            )),
            None => Ok(()),
        }
    }
}

/// Returns true if one operation runs before the other, or concurrently.
fn is_reached_before(one: &[Step], other: &[Step]) -> bool {
    let apart = one.iter().zip(other).find(|(one, other)| one != other);
    match apart {
        Some((Step::Next(one), Step::Next(other))) => one < other,
        _ => true,
    }
}

/// Finds the scripts of the streams that a script opens, with their paths.
fn peers<'a>(path: &str, ops: &'a [Op], found: &mut Vec<(String, &'a [Op])>) {
    for (index, op) in ops.iter().enumerate() {
        let path = format!("{path}[{index}]");
        match op {
            Op::OpenBidi(open) => found.push((format!("{path}.open_bidi.peer"), &open.peer)),
            Op::OpenUni(open) => found.push((format!("{path}.open_uni.peer"), &open.peer)),
            Op::Scope(threads) => {
                for (index, ops) in threads.iter().enumerate() {
                    peers(&format!("{path}.scope[{index}]"), ops, found);
                }
            }
            Op::Iterate(iterate) => peers(&format!("{path}.iterate.ops"), &iterate.ops, found),
            Op::Request(request) => peers(&format!("{path}.request.ops"), &request.ops, found),
            _ => {}
        }
    }
}
