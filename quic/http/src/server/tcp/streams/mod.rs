//! Layers between a TCP connection and hyper.

mod heads;
mod lent;
mod linger;

pub(super) use self::{
    heads::{Head, Heads},
    lent::{Lender, Line, lend},
    linger::{Lingering, Place},
};
