//! State of the packet-number spaces; that of the handshake spaces ends with the handshake.

use crate::wire::Space;

/// State of a packet-number space of the handshake.
pub trait Vacant {
    /// Creates the state of a space that is not used yet.
    fn vacant() -> Self;
}

/// One value for each packet-number space. The values of Initial and Handshake take no memory after
/// [`Spaces::end_handshake`] (RFC 9001 §4.9).
#[derive(Debug)]
pub struct Spaces<T> {
    data: T,
    /// Values of Initial and Handshake.
    early: Option<Box<[T; 2]>>,
}

fn vacant<T: Vacant>() -> [T; 2] {
    [T::vacant(), T::vacant()]
}

impl<T: Vacant> Spaces<T> {
    /// Creates the values at the start of a connection.
    pub fn new(data: T) -> Self {
        Self {
            data,
            early: Some(Box::new(vacant())),
        }
    }

    /// Returns the values that take memory.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let early = self.early.as_ref().map_or(&[][..], |early| &early[..]);
        early.iter().chain([&self.data])
    }

    /// Returns the values that take memory, to change them.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let early = self.early.as_mut();
        let early = early.map_or(&mut [][..], |early| &mut early[..]);
        early.iter_mut().chain([&mut self.data])
    }

    /// Returns the value of [`Space::Data`].
    #[inline]
    pub const fn data(&self) -> &T {
        &self.data
    }

    /// Returns the value of a space, if it takes memory.
    #[inline]
    pub fn get(&self, space: Space) -> Option<&T> {
        match (space, self.early.as_deref()) {
            (Space::Data, _) => Some(&self.data),
            (Space::Initial, Some([initial, _])) => Some(initial),
            (Space::Handshake, Some([_, handshake])) => Some(handshake),
            (Space::Initial | Space::Handshake, None) => None,
        }
    }

    /// Returns the value of a space, to change it, if it takes memory.
    #[inline]
    pub fn get_mut(&mut self, space: Space) -> Option<&mut T> {
        match (space, self.early.as_deref_mut()) {
            (Space::Data, _) => Some(&mut self.data),
            (Space::Initial, Some([initial, _])) => Some(initial),
            (Space::Handshake, Some([_, handshake])) => Some(handshake),
            (Space::Initial | Space::Handshake, None) => None,
        }
    }

    /// Returns the value of a space, to change it. It takes memory from now on.
    #[inline]
    pub fn at(&mut self, space: Space) -> &mut T {
        if space == Space::Data {
            return &mut self.data;
        }
        let [initial, handshake] = &mut **self.early.get_or_insert_with(|| Box::new(vacant()));
        if space == Space::Initial {
            initial
        } else {
            handshake
        }
    }

    /// Takes the values of Initial and Handshake, which count as unused from now on.
    pub fn end_handshake(&mut self) -> impl Iterator<Item = T> {
        self.early.take().into_iter().flat_map(|early| *early)
    }

    /// Returns true if the values of Initial and Handshake take memory.
    #[cfg(test)]
    pub fn has_handshake(&self) -> bool {
        self.early.is_some()
    }
}
