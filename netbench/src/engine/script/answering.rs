//! Scripts that answer the peer's streams.

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;

use super::Scope;
use super::session::Session;
use super::streams::Stream;
use crate::scenario::Op;
use crate::system::outcome::{Failed, Kind};

/// An event outside the script.
enum Event {
    Bidi(Option<Stream>),
    Uni(Option<Stream>),
    /// The script of a peer's stream has ended.
    Served(Result<(), Failed>),
    NoMoreDatagrams,
}

impl Session<'_> {
    /// Answers the peer's streams and datagrams until it closes. `on_end` gets the outcome of each
    /// stream's script, and may stop the loop.
    pub(crate) async fn serve(
        &self,
        mut on_end: impl FnMut(Result<(), Failed>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        type Events<'a> = FuturesUnordered<LocalBoxFuture<'a, Result<Event, Failed>>>;
        let mut events = Events::new();
        if !self.own.bidi.is_empty() {
            events.push(Box::pin(self.accept_bidi()));
        }
        if !self.own.uni.is_empty() {
            events.push(Box::pin(self.accept_uni()));
        }
        if self.own.datagrams.is_awaited() {
            events.push(Box::pin(async {
                self.receive_datagrams().await?;
                Ok(Event::NoMoreDatagrams)
            }));
        }
        while let Some(event) = events.next().await {
            match event? {
                Event::Bidi(Some(stream)) => {
                    events.push(Box::pin(self.accept_bidi()));
                    events.push(Box::pin(self.answer(stream, &self.own.bidi)));
                }
                Event::Uni(Some(stream)) => {
                    events.push(Box::pin(self.accept_uni()));
                    events.push(Box::pin(self.answer(stream, &self.own.uni)));
                }
                Event::Served(outcome) => {
                    self.served.set(self.served.get() + 1);
                    self.progressed.notify_one();
                    on_end(outcome)?;
                }
                Event::Bidi(None) | Event::Uni(None) | Event::NoMoreDatagrams => {}
            }
        }
        Ok(())
    }

    async fn accept_bidi(&self) -> Result<Event, Failed> {
        let accepted = self.connection.accept_bidi().await?;
        Ok(Event::Bidi(
            accepted.map(|(writer, reader)| Stream::bidi(writer, reader)),
        ))
    }

    async fn accept_uni(&self) -> Result<Event, Failed> {
        let accepted = self.connection.accept_uni().await?;
        Ok(Event::Uni(accepted.map(Stream::receiving)))
    }

    /// Runs the script of a stream that the peer opened.
    async fn answer(&self, stream: Stream, scripts: &[Vec<Op>]) -> Result<Event, Failed> {
        Ok(Event::Served(self.script_of(stream, scripts).await))
    }

    async fn script_of(&self, stream: Stream, scripts: &[Vec<Op>]) -> Result<(), Failed> {
        let number = match scripts.len() {
            0 | 1 => 0,
            _ => stream.receive_prefix().await?,
        };
        let Some(script) = scripts.get(usize::from(number)) else {
            return Err(Failed::new(
                Kind::Mismatch,
                format_args!("a stream for script {number} of {}", scripts.len()),
            ));
        };
        let scope = Scope::of(stream);
        if script.is_empty() {
            scope.stream(0)?.receive_all(&*self.observer).await?;
        }
        self.run(script, &scope).await?;
        self.finish(&scope).await
    }

    /// Ends the streams of a finished script.
    pub(crate) async fn finish(&self, scope: &Scope<'_>) -> Result<(), Failed> {
        for stream in scope.own_streams() {
            self.finish_stream(&stream).await?;
        }
        Ok(())
    }
}
