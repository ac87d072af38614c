//! What a chain of tickets goes back to.
