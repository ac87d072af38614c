//! Stand-ins for systems on which endpoints cannot be handed over.

use std::{
    io,
    task::{Context, Poll},
};

use hybriq_proto::endpoint::{Generations, Place};

use super::{Letter, Unsent};
use crate::udp::Handle;

/// Sending ends; there are none.
#[derive(Debug, Default)]
pub(crate) struct Relays(());

#[expect(clippy::unused_self, reason = "the same interface as elsewhere")]
impl Relays {
    pub(crate) fn generations(&self) -> Generations {
        Generations::default()
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        std::iter::empty()
    }

    pub(crate) fn send(&self, _: Place, _: Letter, _: &[u8]) -> Result<(), Unsent> {
        Err(Unsent::Gone)
    }
}

/// Receiving end; there is none.
pub(crate) struct Inlet(Handle);

impl Inlet {
    pub(crate) fn register(handle: Handle) -> io::Result<Self> {
        Ok(Self(handle))
    }

    pub(crate) fn poll_readable(&self, _: &mut Context<'_>) -> Poll<()> {
        match self.0 {}
    }

    pub(crate) fn take_memory(&mut self) -> Box<[u8]> {
        match self.0 {}
    }

    pub(crate) fn give_back(&mut self, _: Box<[u8]>) {
        match self.0 {}
    }

    pub(crate) fn receive<'a>(
        &self,
        _: &'a mut [u8],
    ) -> io::Result<Option<(Letter, &'a mut [u8])>> {
        match self.0 {}
    }
}
