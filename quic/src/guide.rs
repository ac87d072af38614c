//! The guide: how to use hybriq, chapter by chapter. This module contains only text and examples.
//!
//! | to | chapter |
//! |---|---|
//! | write a first server and client | [start] |
//! | get and renew certificates: self-signed, Let's Encrypt, mutual TLS | [certificates] |
//! | handle errors, and repeat what may be repeated | [errors] |
//! | send data in the first flight | [early_data] |
//! | test an application, also in virtual time | [testing] |
//! | run a server: graceful shutdown, load balancers, rate limits, alerts, capacity | [production] |
//! | restart a server without losing connections | [restart] |
//! | make it faster | [tuning] |
//! | watch it | [metrics], and the chapter `qlog` with that feature |
//! | require post-quantum key exchange, and show it to an auditor | [post_quantum] |
//! | come from another library | [from_quinn], [from_s2n_quic] |

/// Makes a chapter of a page. Its links are defined here first, because the first definition counts: here they lead to
/// chapters, in the repository to files.
macro_rules! chapter {
    ($name:ident, $page:literal) => {
        #[doc = concat!(
            "[0-RTT]: crate::guide::early_data\n",
            "[certificates]: crate::guide::certificates\n",
            "[checked]: https://github.com/hybriq/hybriq/blob/main/quic/evidence/post-quantum.md#ml-dsa-with-other-stacks\n",
            "[compression]: https://github.com/hybriq/hybriq/blob/main/quic/evidence/post-quantum.md#compressed-certificates\n",
            "[configuration]: https://github.com/hybriq/hybriq/blob/main/quic/docs/configuration.md\n",
            "[congestion]: https://github.com/hybriq/hybriq/blob/main/quic/evidence/congestion.md\n",
            "[drain]: crate::guide::production#graceful-shutdown\n",
            "[errors]: crate::guide::errors\n",
            "[hot restart]: crate::guide::restart\n",
            "[logs of connections]: https://github.com/hybriq/hybriq/blob/main/quic/docs/qlog.md\n",
            "[memory]: https://github.com/hybriq/hybriq/blob/main/quic/docs/configuration.md#what-a-client-remembers\n",
            "[metrics]: crate::guide::metrics\n",
            "[performance]: https://github.com/hybriq/hybriq/blob/main/quic/evidence/performance.md\n",
            "[post-quantum]: crate::guide::post_quantum\n",
            "[production]: crate::guide::production\n",
            "[proxies]: https://github.com/hybriq/hybriq/blob/main/quic/http/docs/client.md\n",
            "[shares]: https://github.com/hybriq/hybriq/blob/main/quic/evidence/post-quantum.md#key-shares-ahead-of-time\n",
            "[testing]: crate::guide::testing\n",
            "[threats and their tests]: https://github.com/hybriq/hybriq/blob/main/quic/evidence/security.md\n",
            "[tuning]: crate::guide::tuning\n",
            "\n"
        )]
        #[doc = include_str!(concat!("../docs/", $page))]
        pub mod $name {}
    };
}

chapter!(start, "start.md");
chapter!(certificates, "certificates.md");
chapter!(errors, "errors.md");
chapter!(early_data, "early-data.md");
chapter!(testing, "testing.md");
chapter!(production, "production.md");
chapter!(restart, "restart.md");
chapter!(tuning, "tuning.md");
chapter!(metrics, "metrics.md");
#[cfg(feature = "qlog")]
chapter!(qlog, "qlog.md");
chapter!(post_quantum, "post-quantum.md");
chapter!(from_quinn, "from-quinn.md");
chapter!(from_s2n_quic, "from-s2n-quic.md");
