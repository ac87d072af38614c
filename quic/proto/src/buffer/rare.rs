//! Bounded lists that are empty most of the time.

use std::ops::{Deref, DerefMut};

/// A list of at most `N` values that is empty most of the time, and then takes no heap memory.
#[derive(Clone, Debug)]
pub(crate) struct Rare<T, const N: usize>(Vec<T>);

impl<T, const N: usize> Rare<T, N> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a value, or returns it if the list is full.
    pub(crate) fn try_push(&mut self, value: T) -> Result<(), T> {
        self.try_insert(self.0.len(), value)
    }

    /// Inserts a value at a position, or returns it if the list is full or has no such position.
    pub(crate) fn try_insert(&mut self, place: usize, value: T) -> Result<(), T> {
        if self.0.len() >= N || place > self.0.len() {
            return Err(value);
        }
        self.0.insert(place, value);
        Ok(())
    }

    /// Removes the first value.
    pub(crate) fn pop_first(&mut self) -> Option<T> {
        if self.0.is_empty() {
            return None;
        }
        self.remove(0)
    }

    /// Removes the value at a position.
    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let removed = (place < self.0.len()).then(|| self.0.remove(place));
        self.release();
        removed
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.0.retain(keep);
        self.release();
    }

    /// Returns how many more values fit.
    pub(crate) fn room(&self) -> usize {
        N.saturating_sub(self.0.len())
    }

    fn release(&mut self) {
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }
}

impl<T, const N: usize> Deref for Rare<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Rare<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Rare;

    #[test]
    fn a_list_has_its_bound_and_gives_its_memory_back() {
        let mut list = Rare::<u8, 3>::new();
        assert_eq!(
            (list.room(), list.pop_first(), list.remove(0)),
            (3, None, None)
        );
        for value in 1..=3 {
            assert_eq!(list.try_push(value), Ok(()));
        }
        assert_eq!((list.try_push(4), list.room()), (Err(4), 0));
        assert_eq!((list.remove(1), list.pop_first()), (Some(2), Some(1)));
        assert_eq!(&*list, [3]);
        list.retain(|value| *value != 3);
        assert!(list.is_empty());
        assert_eq!(list.0.capacity(), 0);
    }
}
