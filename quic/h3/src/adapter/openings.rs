//! Streams whose beginning has not come.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

/// Streams of which each is polled only when it has news, however many there are.
#[derive(Debug)]
pub(crate) struct Openings<T> {
    streams: HashMap<u64, Opening<T>>,
    /// Number of streams that were added so far.
    added: u64,
    news: Arc<News>,
}

#[derive(Debug)]
struct Opening<T> {
    stream: T,
    waker: Waker,
    signal: Arc<Signal>,
}

/// Streams that have news.
#[derive(Debug, Default)]
struct News(Mutex<Woken>);

#[derive(Debug, Default)]
struct Woken {
    keys: VecDeque<u64>,
    task: Option<Waker>,
}

/// What a stream wakes.
#[derive(Debug)]
struct Signal {
    key: u64,
    /// True while the key is among those with news.
    woken: AtomicBool,
    news: Arc<News>,
}

impl<T> Default for Openings<T> {
    fn default() -> Self {
        Self {
            streams: HashMap::new(),
            added: 0,
            news: Arc::default(),
        }
    }
}

impl<T> Openings<T> {
    /// Returns the number of streams.
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Adds a stream, which is polled next time.
    pub(crate) fn add(&mut self, stream: T) {
        let key = self.added;
        self.added += 1;
        let signal = Arc::new(Signal {
            key,
            woken: AtomicBool::new(true),
            news: self.news.clone(),
        });
        self.news.lock().keys.push_back(key);
        let opening = Opening {
            stream,
            waker: signal.clone().into(),
            signal,
        };
        self.streams.insert(key, opening);
    }

    /// Polls the streams that have news, until one gives a result. Returns it and the stream, which is
    /// removed.
    pub(crate) fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut T, &mut Context<'_>) -> Option<R>,
    ) -> Option<(T, R)> {
        loop {
            let key = self.news.next(cx)?;
            let Some(opening) = self.streams.get_mut(&key) else {
                continue;
            };
            opening.signal.woken.store(false, Ordering::Release);
            let mut cx = Context::from_waker(&opening.waker);
            if let Some(result) = poll(&mut opening.stream, &mut cx) {
                let opening = self.streams.remove(&key)?;
                return Some((opening.stream, result));
            }
        }
    }
}

impl News {
    fn lock(&self) -> MutexGuard<'_, Woken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a stream with news. If there is none, the task is woken when there is.
    fn next(&self, cx: &Context<'_>) -> Option<u64> {
        let mut woken = self.lock();
        let key = woken.keys.pop_front();
        if key.is_none() {
            let same = woken.task.as_ref();
            if same.is_none_or(|task| !task.will_wake(cx.waker())) {
                let replaced = woken.task.replace(cx.waker().clone());
                drop(woken);
                drop(replaced);
            }
        }
        key
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut woken = self.news.lock();
        woken.keys.push_back(self.key);
        let task = woken.task.clone();
        drop(woken);
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many streams that are silent cost nothing when another has news.
    #[test]
    fn only_streams_with_news_are_polled() {
        let mut openings = Openings::default();
        for index in 0..1_000_u32 {
            openings.add(index);
        }
        let mut cx = Context::from_waker(Waker::noop());
        let (mut polls, mut kept) = (0, None);
        for _ in 0..1_000 {
            let polled = openings.poll(&mut cx, |stream, cx| {
                polls += 1;
                if *stream == 500 {
                    kept = Some(cx.waker().clone());
                }
                None::<()>
            });
            assert_eq!(polled, None);
            kept.as_ref().unwrap().wake_by_ref();
            kept.as_ref().unwrap().wake_by_ref();
        }
        assert_eq!(polls, 1_999);
        assert_eq!(openings.len(), 1_000);
    }

    #[test]
    fn a_stream_with_a_result_is_removed() {
        let mut openings = Openings::default();
        openings.add("a");
        openings.add("b");
        let mut cx = Context::from_waker(Waker::noop());
        let mut kept = Vec::new();
        let mut poll = |openings: &mut Openings<&'static str>| {
            openings.poll(&mut cx, |stream, cx| {
                kept.push(cx.waker().clone());
                (*stream == "b").then_some(1)
            })
        };
        assert_eq!(poll(&mut openings), Some(("b", 1)));
        assert_eq!(poll(&mut openings), None);
        assert_eq!(openings.len(), 1);
        // The waker of a stream that is gone.
        kept[1].wake_by_ref();
        let polled = openings.poll(&mut cx, |_, _| Some(2));
        assert_eq!(polled, None);
    }
}
