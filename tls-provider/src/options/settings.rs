//! The settings of TLS. Each is declared once, as a setter in one of these macros, which write it both
//! into the options of this crate and into the configurations of `hybriq`.
//!
//! The setters change the options with `fn change(self, change: impl FnOnce(&mut Options)) -> Self`,
//! which the type supplies. Links name what both crates have at this path.

/// Writes the setters that clients and servers share.
#[doc(hidden)]
#[macro_export]
macro_rules! shared_setters {
    () => {
        /// Sets the application protocols, first choice first. If a client and a server have none in
        /// common, the handshake fails with TLS alert 120, `no_application_protocol` (RFC 9001 §8.1).
        /// Default: none, for peers that do not use ALPN either.
        #[must_use]
        pub fn alpn(self, protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
            self.change(|options| options.shared.alpn = $crate::protocol_list(protocols))
        }

        /// Sets the key-exchange groups that a client offers or a server accepts. Default:
        /// [`KeyExchange::PreferPostQuantum`](crate::KeyExchange::PreferPostQuantum).
        #[must_use]
        pub fn key_exchange(self, policy: $crate::KeyExchange) -> Self {
            self.change(|options| options.shared.key_exchange = policy)
        }

        /// Sets the cipher suites, first choice first. Default: AES-128-GCM, AES-256-GCM,
        /// ChaCha20-Poly1305; s2n-tls has fixed lists and refuses others.
        #[must_use]
        pub fn suites(self, suites: Vec<$crate::Suite>) -> Self {
            self.change(|options| options.shared.suites = Some(suites))
        }

        /// Sets the algorithms of certificate compression (RFC 8879), first choice first, for our
        /// certificates and for those of the peer. Default: none.
        ///
        /// Each needs the cargo feature of its name, `brotli` or `zlib`; s2n-tls has none and refuses the
        /// option. A compressed chain that is longer than 64 KiB is refused before anything is
        /// decompressed.
        #[must_use]
        pub fn certificate_compression(
            self,
            algorithms: impl IntoIterator<Item = $crate::CertificateCompression>,
        ) -> Self {
            self.change(|options| options.shared.compression = algorithms.into_iter().collect())
        }

        /// Sends only this end's own certificate, without its intermediates, to peers that already have
        /// them: see [`Trust::intermediates`](crate::Trust::intermediates). All others refuse it with
        /// `unknown_ca`. Default: the whole chain.
        #[must_use]
        pub fn leave_out_intermediates(self) -> Self {
            self.change(|options| options.shared.intermediates = $crate::Intermediates::LeftOut)
        }

        /// Sets the rules of an authority for groups, suites, certificates and 0-RTT, which bind this end
        /// and its peers. Checking the configuration names every option that the profile forbids.
        /// Default: [`Profile::Default`](crate::Profile::Default).
        #[must_use]
        pub fn profile(self, profile: $crate::Profile) -> Self {
            self.change(|options| options.shared.profile = profile)
        }

        /// Sets where the connections' secrets are logged. Default: nowhere.
        ///
        /// # Security
        /// Whoever reads the log can read the connections.
        #[must_use]
        pub fn key_log(self, key_log: $crate::KeyLog) -> Self {
            self.change(|options| options.shared.key_log = key_log)
        }
    };
}

/// Writes the setters of a client, with those that it shares with servers.
#[doc(hidden)]
#[macro_export]
macro_rules! client_setters {
    () => {
        $crate::shared_setters!();

        /// Sets which servers are trusted. Default: the system's roots.
        #[must_use]
        pub fn trust(self, trust: $crate::Trust) -> Self {
            self.change(|options| options.trust = trust)
        }

        /// Sets the certificate for servers that ask for one. Default: none.
        #[must_use]
        pub fn identity(self, identity: $crate::Identity) -> Self {
            self.change(|options| options.identity = Some(identity))
        }

        /// Remembers no session tickets, so that every handshake is a full one.
        #[must_use]
        pub fn without_resumption(self) -> Self {
            self.change(|options| options.no_resumption = true)
        }

        /// Generates up to this many key pairs ahead of time for the first group, 1 to 64, while the transport is idle,
        /// so that a connection starts without generating one. Default: 0, none. s2n-tls makes its own key pairs and
        /// refuses this option.
        ///
        /// An endpoint generates them for the configuration that it was built with, and for the last one given to
        /// `connect_with`. Each pair is used for one connection, by the process that made it, within ten minutes;
        /// unused pairs are wiped when the configuration and the endpoint are dropped. One is enough for a device that
        /// connects only occasionally.
        ///
        /// # Security
        /// A copy of the whole machine, such as a snapshot that is started twice, uses the same pairs:
        /// do not use this option there.
        #[must_use]
        pub fn key_shares_ahead(self, pairs: usize) -> Self {
            self.change(|options| options.key_shares_ahead = pairs)
        }
    };
}

/// Writes the setters of a server, with those that it shares with clients.
#[doc(hidden)]
#[macro_export]
macro_rules! server_setters {
    () => {
        $crate::shared_setters!();

        /// Sets the key-exchange groups to accept from clients that ask for this server name, ignoring case. Default:
        /// the same groups for every name.
        #[must_use]
        pub fn key_exchange_for(
            self,
            server_name: impl Into<String>,
            policy: $crate::KeyExchange,
        ) -> Self {
            let server_name = server_name.into();
            let named = $crate::NamedPolicy {
                server_name,
                policy,
            };
            self.change(|options| options.key_exchange_for.push(named))
        }

        /// Adds a certificate for clients whose server name matches it. Default: none; the first
        /// certificate serves every other name.
        #[must_use]
        pub fn add_identity(self, identity: $crate::Identity) -> Self {
            self.change(|options| options.identities.push(identity))
        }

        /// Sets which client certificates are asked for. Default: none.
        #[must_use]
        pub fn client_auth(self, client_auth: $crate::ClientAuth) -> Self {
            self.change(|options| options.client_auth = client_auth)
        }

        /// Sets how to choose among several certificates that suit a client. Default: the one that was
        /// added first. s2n-tls makes its own choice and refuses any other.
        #[must_use]
        pub fn chain_choice(self, choice: $crate::ChainChoice) -> Self {
            self.change(|options| options.chain_choice = choice)
        }

        /// Leaves out the intermediates only for connections that agree on one of these application
        /// protocols. Default: none. s2n-tls refuses this: when it chooses a chain, it does not know the
        /// protocol yet.
        #[must_use]
        pub fn leave_out_intermediates_for(
            self,
            protocols: impl IntoIterator<Item: AsRef<[u8]>>,
        ) -> Self {
            let protocols = $crate::protocol_list(protocols);
            self.change(|options| {
                options.shared.intermediates = $crate::Intermediates::LeftOutFor(protocols);
            })
        }

        /// Issues no session tickets, so that every handshake is a full one.
        #[must_use]
        pub fn without_tickets(self) -> Self {
            self.change(|options| options.no_tickets = true)
        }

        /// Recognises the session tickets of every configuration that has a clone of this value. Use it
        /// for a configuration that replaces another, or that serves some of the clients. Default:
        /// recognises only its own tickets.
        ///
        /// With rustls, 0-RTT data must be on in all of these configurations or off in all: otherwise a
        /// ticket from one kind leads to a full handshake with the other.
        #[must_use]
        pub fn tickets(self, tickets: $crate::Tickets) -> Self {
            self.change(|options| options.tickets = Some(tickets))
        }

        /// Accepts 0-RTT data of returning clients, which saves a round trip. Default: off. rustls
        /// only.
        ///
        /// rustls then keeps the session of each ticket until the ticket is first used. It keeps at most
        /// 16,384 sessions of 400 bytes each (16 MiB with long client certificates); a new one replaces
        /// the oldest, whose client then does a full handshake.
        ///
        /// # Security
        /// An attacker can replay 0-RTT data. This server accepts each ticket once, but forgets that
        /// after a restart, and other servers do not know about it: answer only requests that may be
        /// repeated until the handshake is complete (`RecvStream::is_early` of hybriq).
        #[must_use]
        pub fn accept_early_data(self) -> Self {
            self.change(|options| options.early_data = $crate::EarlyDataPolicy::On)
        }
    };
}
