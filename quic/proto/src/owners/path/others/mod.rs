//! The paths other than the one in use.

use std::time::Instant;

use super::{Address, Event, Path, State};
use crate::wire::limits;

/// Paths other than the one in use: at most [`limits::OTHER_PATHS`], and usually none.
#[derive(Debug)]
pub(super) struct Others<S>(Vec<Path<S>>);

impl<S> Default for Others<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Others<S> {
    /// Returns true if there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the position of the path with these ends.
    pub(super) fn position(&self, at: Address) -> Option<usize> {
        self.0.iter().position(|path| path.is_at(at))
    }

    /// Returns the position of the first path in a state.
    pub(super) fn position_of(&self, state: State) -> Option<usize> {
        self.0.iter().position(|path| path.state == state)
    }

    /// Returns the path at a position.
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Path<S>> {
        self.0.get_mut(place)
    }

    /// Returns the path with these ends.
    pub(super) fn find_mut(&mut self, at: Address) -> Option<&mut Path<S>> {
        self.0.iter_mut().find(|path| path.is_at(at))
    }

    /// Returns the path that was added last.
    pub(super) fn last_mut(&mut self) -> Option<&mut Path<S>> {
        self.0.last_mut()
    }

    /// Iterates over all of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Path<S>> {
        self.0.iter()
    }

    /// Iterates over all of them, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path<S>> {
        self.0.iter_mut()
    }

    /// Adds a path. If there is no room, another is removed and returned: unvalidated paths first,
    /// then those that were left, and candidates last.
    pub(super) fn add(&mut self, path: Path<S>) -> Option<Path<S>> {
        let evicted = if self.0.len() < limits::OTHER_PATHS {
            None
        } else {
            let value = |path: &Path<S>| (path.state == State::Candidate, path.is_validated());
            let places = self.0.iter().enumerate();
            let least = places
                .filter(|(_, path)| path.state != State::Fallback)
                .min_by_key(|(_, path)| value(path));
            least.map(|(place, _)| place)
        };
        let evicted = evicted.map(|place| self.0.remove(place));
        self.0.push(path);
        evicted
    }

    /// Removes a path.
    pub(super) fn take(&mut self, place: usize) -> Option<Path<S>> {
        (place < self.0.len()).then(|| self.0.remove(place))
    }

    /// Removes the unneeded path that would be forgotten first.
    pub(super) fn take_left(&mut self) -> Option<Path<S>> {
        let places = self.0.iter().enumerate();
        let until = places.filter_map(|(place, path)| Some((path.state.kept_until()?, place)));
        let (_, place) = until.min()?;
        self.take(place)
    }

    /// Applies an event to the path at a position. Returns the path if the event ended it.
    pub(super) fn on_event(&mut self, place: usize, event: Event) -> Option<Path<S>> {
        let path = self.0.get_mut(place)?;
        match path.state.after(event) {
            Some(state) => {
                path.state = state;
                None
            }
            None => self.take(place),
        }
    }

    /// Returns the time at which something is due on one of them.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let timers = |path: &Path<S>| [path.validation.next_timeout(), path.state.kept_until()];
        self.0.iter().flat_map(timers).flatten().min()
    }
}

#[cfg(test)]
mod tests;
