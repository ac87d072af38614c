//! Turns of the tasks that read what the peer sends.

use std::task::{Context, Poll};

/// Steps that a reader takes before it lets other tasks run.
///
/// A peer can send frames and capsules that are nothing to the caller, empty ones or those of unknown types, as
/// fast as they are skipped. So each of them is a step, and after [`Budget::STEPS`] the reader is pending once,
/// although there may be more to read.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u32,
}

impl Budget {
    /// Number of steps of a turn.
    pub(crate) const STEPS: u32 = 64;

    pub(crate) const fn new() -> Self {
        Self { left: Self::STEPS }
    }

    /// Takes a step.
    pub(crate) const fn step(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Returns true if no step is left of the turn.
    pub(crate) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Is ready if a step is left. Otherwise wakes the task, whose next turn begins.
    pub(crate) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_spent() {
            return Poll::Ready(());
        }
        self.left = Self::STEPS;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;

    /// A waker that counts.
    #[derive(Debug, Default)]
    pub(crate) struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Wakes {
        pub(crate) fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_task_is_woken_after_each_turn() {
        let wakes = Arc::new(Wakes::default());
        let waker = wakes.clone().into();
        let mut cx = Context::from_waker(&waker);
        let mut budget = Budget::new();
        for turn in 0..3 {
            for _ in 0..Budget::STEPS {
                assert!(budget.poll_turn(&mut cx).is_ready());
                assert_eq!(wakes.count(), turn);
                budget.step();
            }
            assert!(budget.poll_turn(&mut cx).is_pending());
            assert_eq!(wakes.count(), turn + 1);
        }
    }
}
