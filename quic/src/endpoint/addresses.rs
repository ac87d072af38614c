//! Several addresses of one server, tried in turn (RFC 8305).

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Sleep;

use super::Endpoint;
use crate::{Connection, errors::ConnectError, udp};

/// Time to wait for an address before the next one is tried as well: the Connection Attempt Delay
/// that RFC 8305 §5 recommends.
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Largest number of addresses that are tried for a server.
pub const MAX_ADDRESSES: usize = 16;

impl Endpoint {
    /// Connects to a server by name and port, such as `example.com:443` or `[2001:db8::1]:443`, with
    /// the endpoint's client configuration. The certificate must be issued for the name.
    ///
    /// The system resolves the name, and [`connect_any`](Self::connect_any) tries its addresses.
    ///
    /// # Errors
    /// The text is not `name:port` ([`ConnectError::HostPort`]), the name has no address
    /// ([`ConnectError::Lookup`]), or all addresses failed; the error is then that of the first one
    /// that failed.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the handshakes.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = hybriq::Endpoint::client(hybriq::ClientConfig::new())?;
    /// let connection = endpoint.connect_host("example.com:443").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_host(&self, host: &str) -> Result<Connection, ConnectError> {
        let (name, port) =
            name_and_port(host).ok_or_else(|| ConnectError::HostPort(host.to_owned()))?;
        let lookup = |cause| ConnectError::Lookup {
            host: name.to_owned(),
            cause,
        };
        let addresses = tokio::net::lookup_host((name, port)).await;
        self.connect_any(addresses.map_err(lookup)?, name).await
    }

    /// Connects to the first address of a server that answers. Families alternate, IPv6 first (RFC
    /// 8305 §4). The next address is tried when one fails, or if none has answered for
    /// [`ATTEMPT_DELAY`]; the first handshake that is complete wins, and the others are given up.
    /// Addresses of a family that the endpoint's socket cannot reach are left out if there are others.
    /// At most [`MAX_ADDRESSES`] are tried.
    ///
    /// # Errors
    /// There is no address ([`ConnectError::Lookup`]), or all failed; the error is that of the first
    /// one that failed.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the handshakes.
    pub async fn connect_any(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
        server_name: &str,
    ) -> Result<Connection, ConnectError> {
        let addresses: Vec<_> = addresses.into_iter().collect();
        let local = self.local_address();
        let (reachable, others): (Vec<_>, Vec<_>) = addresses
            .into_iter()
            .partition(|address| udp::can_reach(local, *address));
        let addresses = in_turns(if reachable.is_empty() {
            others
        } else {
            reachable
        });
        let connect = |address| self.connect(address, server_name);
        let connected = first(addresses, ATTEMPT_DELAY, connect).await;
        connected.map_err(|error| {
            error.unwrap_or_else(|| ConnectError::Lookup {
                host: server_name.to_owned(),
                cause: io::ErrorKind::NotFound.into(),
            })
        })
    }
}

/// Splits `name:port`. An IPv6 address stands in brackets.
fn name_and_port(host: &str) -> Option<(&str, u16)> {
    let (name, port) = host.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let is_name = bare.is_some() || !name.contains([':', '[', ']']);
    let name = bare.unwrap_or(name);
    (is_name && !name.is_empty()).then_some((name, port))
}

/// Orders addresses so that the families alternate, IPv6 first (RFC 8305 §4). Keeps the first
/// [`MAX_ADDRESSES`].
pub fn in_turns(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let addresses = addresses.into_iter();
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.partition(SocketAddr::is_ipv6);
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let mut ordered = Vec::new();
    while ordered.len() < MAX_ADDRESSES {
        let before = ordered.len();
        ordered.extend(v6.next());
        ordered.extend(v4.next());
        if ordered.len() == before {
            break;
        }
    }
    ordered
}

/// Connects to the first address that answers. The next address is tried when one fails, or if none
/// has answered for `delay` (RFC 8305 §5). Attempts that lose are dropped.
///
/// # Errors
/// All addresses failed; the error is that of the first failure, or `None` without an address.
///
/// # Cancel safety
/// Dropping the future drops all attempts.
pub async fn first<T, E, F>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    delay: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, Option<E>>
where
    F: IntoFuture<Output = Result<T, E>>,
{
    let mut left = addresses.into_iter();
    first_found(|_| Poll::Ready(left.next()), delay, connect).await
}

/// Connects like [`first`] to addresses that are still being looked up. `next` returns the next one, or `None` if there
/// are no more; while it is pending, the attempts continue.
///
/// # Errors
/// All addresses failed; the error is that of the first failure, or `None` without an address.
///
/// # Cancel safety
/// Dropping the future drops all attempts.
pub async fn first_found<T, E, F>(
    mut next: impl FnMut(&mut Context<'_>) -> Poll<Option<SocketAddr>>,
    delay: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, Option<E>>
where
    F: IntoFuture<Output = Result<T, E>>,
{
    let mut attempts = Vec::new();
    let mut error = None;
    let mut turn = Turn::Next;
    loop {
        let event = poll_fn(|cx| {
            if matches!(turn, Turn::Next) {
                if let Poll::Ready(found) = next(cx) {
                    return Poll::Ready(Event::Found(found));
                }
            }
            match poll_any(&mut attempts, cx) {
                Poll::Ready(Some(ended)) => return Poll::Ready(Event::Ended(ended)),
                Poll::Ready(None) if matches!(turn, Turn::Over) => return Poll::Ready(Event::Over),
                _ => {}
            }
            match &mut turn {
                Turn::After(time) => time.as_mut().poll(cx).map(|()| Event::Late),
                Turn::Next | Turn::Over => Poll::Pending,
            }
        });
        match event.await {
            Event::Found(Some(address)) => {
                attempts.push(Box::pin(connect(address).into_future()));
                turn = Turn::After(Box::pin(tokio::time::sleep(delay)));
            }
            Event::Found(None) => turn = Turn::Over,
            Event::Ended(Ok(connected)) => return Ok(connected),
            Event::Ended(Err(failed)) => {
                error = error.or(Some(failed));
                turn = turn.sooner();
            }
            Event::Late => turn = turn.sooner(),
            Event::Over => return Err(error),
        }
    }
}

/// When the next address is tried.
enum Turn {
    /// Once there is one.
    Next,
    /// If no attempt ends before.
    After(Pin<Box<Sleep>>),
    /// Never: there are no more.
    Over,
}

impl Turn {
    fn sooner(self) -> Self {
        match self {
            Self::Next | Self::After(_) => Self::Next,
            Self::Over => Self::Over,
        }
    }
}

/// What happens to the attempts.
enum Event<T> {
    Found(Option<SocketAddr>),
    Ended(T),
    /// The last address has not answered for the delay.
    Late,
    /// No attempt is left, and no address.
    Over,
}

/// Returns the output of an attempt that has ended, or `None` if none is left.
fn poll_any<F: Future>(
    attempts: &mut Vec<Pin<Box<F>>>,
    cx: &mut Context<'_>,
) -> Poll<Option<F::Output>> {
    let mut polled = attempts.iter_mut().enumerate();
    let ended = polled.find_map(|(index, attempt)| match attempt.as_mut().poll(cx) {
        Poll::Ready(output) => Some((index, output)),
        Poll::Pending => None,
    });
    match ended {
        Some((index, output)) => {
            drop(attempts.remove(index));
            Poll::Ready(Some(output))
        }
        None if attempts.is_empty() => Poll::Ready(None),
        None => Poll::Pending,
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::pending};

    use tokio::time::{Instant, sleep};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_host_has_a_name_and_a_port() {
        for (host, expected) in [
            ("example.com:443", Some(("example.com", 443))),
            ("192.0.2.1:1", Some(("192.0.2.1", 1))),
            ("[2001:db8::1]:443", Some(("2001:db8::1", 443))),
            ("2001:db8::1:443", None),
            ("example.com", None),
            ("example.com:0", None),
            ("example.com:65536", None),
            ("example.com:https", None),
            (":443", None),
            ("[]:443", None),
            ("", None),
        ] {
            assert_eq!(name_and_port(host), expected, "{host}");
        }
    }

    #[test]
    fn families_take_turns() {
        let given = ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1", "3.3.3.3:1", "[::2]:1"];
        let ordered = in_turns(given.map(address));
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "3.3.3.3:1"];
        assert_eq!(ordered, expected.map(address));
        let many = (1..200).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(in_turns(many).len(), MAX_ADDRESSES);
    }

    /// The second address is tried after the delay, and wins.
    #[tokio::test(start_paused = true)]
    async fn a_silent_address_does_not_hold_up_the_next() {
        let (silent, good) = (address("[::1]:1"), address("1.1.1.1:1"));
        let start = Instant::now();
        let connected = first(vec![silent, good], ATTEMPT_DELAY, |address| async move {
            if address == silent {
                pending::<()>().await;
            }
            Ok::<_, ()>(address)
        });
        assert_eq!(connected.await, Ok(good));
        assert_eq!(start.elapsed(), ATTEMPT_DELAY);
    }

    /// An address that fails is followed by the next at once, and a slow one that started earlier may still
    /// win.
    #[tokio::test(start_paused = true)]
    async fn failures_do_not_wait() {
        let start = Instant::now();
        let tried = RefCell::new(Vec::new());
        let addresses = ["1.1.1.1:1", "2.2.2.2:2", "3.3.3.3:3"].map(address);
        let connected = first(addresses.to_vec(), ATTEMPT_DELAY, |address| {
            tried.borrow_mut().push(address.port());
            async move {
                match address.port() {
                    1 => Err("refused"),
                    2 => {
                        sleep(ATTEMPT_DELAY * 2).await;
                        Ok(2)
                    }
                    _ => pending().await,
                }
            }
        });
        assert_eq!(connected.await, Ok(2));
        assert_eq!(start.elapsed(), ATTEMPT_DELAY * 2);
        assert_eq!(*tried.borrow(), [1, 2, 3]);
    }

    /// Attempts go on while the next address is looked up, and it is tried once it is there and the delay is over.
    #[tokio::test(start_paused = true)]
    async fn addresses_may_come_late() {
        let late = ATTEMPT_DELAY * 3;
        for (first_answers, expected, takes) in [
            (ATTEMPT_DELAY * 2, 1, ATTEMPT_DELAY * 2),
            (ATTEMPT_DELAY * 9, 2, late),
        ] {
            let start = Instant::now();
            let mut lookup = Box::pin(sleep(late));
            let mut left = ["1.1.1.1:1", "2.2.2.2:2"].map(address).into_iter();
            let mut found = 0;
            let next = |cx: &mut Context<'_>| {
                found += 1;
                if found > 1 && left.len() > 0 && lookup.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                Poll::Ready(left.next())
            };
            let connected = first_found(next, ATTEMPT_DELAY, |address| async move {
                if address.port() == 1 {
                    sleep(first_answers).await;
                }
                Ok::<_, ()>(address.port())
            });
            assert_eq!(connected.await, Ok(expected));
            assert_eq!(start.elapsed(), takes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_error_is_told() {
        let addresses = ["1.1.1.1:1", "2.2.2.2:2"].map(address);
        let failed = first(addresses.to_vec(), ATTEMPT_DELAY, |address| async move {
            Err::<(), _>(address.port())
        });
        assert_eq!(failed.await, Err(Some(1)));
        let none = first(Vec::new(), ATTEMPT_DELAY, |_| async { Err::<(), ()>(()) });
        assert_eq!(none.await, Err(None));
    }
}
