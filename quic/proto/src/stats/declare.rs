//! How counters are declared: a field, its meaning and its metric are one line.

/// A metric: what its values count.
///
/// # Examples
/// ```
/// use hybriq_proto::stats::ConnectionStats;
///
/// let mut names = Vec::new();
/// ConnectionStats::default().metrics(|metric, _, _| names.push(metric.name));
/// assert!(names.contains(&"hybriq_packets_lost_total"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Name in the Prometheus form: that of a counter ends in `_total`.
    pub name: &'static str,
    /// Meaning, in one sentence or more.
    pub help: &'static str,
}

/// How a metric changes over time.
///
/// Exhaustive: whoever writes metrics must know each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It grows and shrinks.
    Gauge,
}

/// Label of a value, if a metric has several: its name and its value.
pub type Label = Option<(&'static str, &'static str)>;

impl Metric {
    /// Creates a metric on its own.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help }
    }

    /// Returns how the metric changes over time.
    pub fn kind(&self) -> Kind {
        if self.name.ends_with("_total") {
            Kind::Counter
        } else {
            Kind::Gauge
        }
    }
}

/// Declares a struct of counters.
///
/// A field is followed by its metric: `=> ["name"]`, or `=> ["name" by label "value"]` if several
/// fields are values of one metric, or `=> ["name" by label]` for a field that [`by_label!`]
/// declares, or `=> [each]` for a field that is another struct of counters. A field without one is
/// not a metric. If `: AddAssign` follows the struct's name, the counters of several structs can be
/// added up.
macro_rules! counters {
    (
        $(#[$attribute:meta])*
        pub struct $struct:ident $(: $sum:ident)? {
            $($(#[doc = $help:literal])+ $field:ident: $type:ty $(=> $metric:tt)?;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $struct {
            $($(#[doc = $help])+ pub $field: $type,)*
        }

        impl $struct {
            /// Calls a function for every value that is a metric, always in the same order.
            pub fn metrics(
                &self,
                mut show: impl FnMut(&'static $crate::stats::Metric, $crate::stats::Label, u64),
            ) {
                $(counters!(@show show, self.$field, concat!($($help),+), $($metric)?);)*
            }
        }

        counters!(@sum $($sum)?, $struct, $($field [$($metric)?],)*);
    };

    (@show $show:ident, $value:expr, $help:expr,) => {};
    (@show $show:ident, $value:expr, $help:expr, [each]) => { $value.metrics(&mut $show) };
    (@show $show:ident, $value:expr, $help:expr, [$name:literal $($by:tt)*]) => {{
        const METRIC: $crate::stats::Metric =
            $crate::stats::Metric::new($name, $help.trim_ascii_start());
        counters!(@values $show, $value, METRIC, $($by)*);
    }};

    (@values $show:ident, $value:expr, $metric:ident,) => { $show(&$metric, None, $value) };
    (@values $show:ident, $value:expr, $metric:ident, by $label:ident) => {
        for (name, count) in $value.by_label() {
            $show(&$metric, Some((stringify!($label), name)), count);
        }
    };
    (@values $show:ident, $value:expr, $metric:ident, by $label:ident $is:literal) => {
        $show(&$metric, Some((stringify!($label), $is)), $value)
    };

    (@sum, $struct:ident, $($field:ident [$($metric:tt)?],)*) => {};
    (@sum AddAssign, $struct:ident, $($field:ident [$($metric:tt)?],)*) => {
        impl $struct {
            /// Returns only the counters: gauges are set to 0.
            #[must_use]
            pub fn without_gauges(mut self) -> Self {
                $(counters!(@clear self.$field, $($metric)?);)*
                self
            }
        }

        impl std::ops::AddAssign for $struct {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };

    (@clear $field:expr,) => {};
    (@clear $field:expr, [each]) => { $field = $field.without_gauges() };
    (@clear $field:expr, [$name:literal $($by:tt)*]) => {
        if $crate::stats::Metric::new($name, "").kind() == $crate::stats::Kind::Gauge {
            $field = Default::default();
        }
    };
}

/// Declares a struct of numbers that are values of one metric, or rows of one table: each field with its
/// label.
macro_rules! by_label {
    (
        $(#[$attribute:meta])*
        pub struct $struct:ident: $number:ty {
            $($(#[doc = $help:literal])+ $field:ident = $label:literal;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $struct {
            $($(#[doc = $help])+ pub $field: $number,)*
        }

        impl $struct {
            /// Returns each number with its label.
            pub fn by_label(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($label, self.$field as u64)),*].into_iter()
            }
        }

        impl std::ops::AddAssign for $struct {
            fn add_assign(&mut self, other: Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
            }
        }
    };
}

pub(crate) use {by_label, counters};

#[cfg(test)]
mod tests {
    #![expect(
        unreachable_pub,
        reason = "what the macros declare is public elsewhere"
    )]

    use super::*;

    counters! {
        /// What a test counts.
        pub struct Counted: AddAssign {
            /// Things done.
            done: u64 => ["done_total"];
            /// Things in progress,
            /// now.
            under_way: u64 => ["under_way"];
            /// Nobody publishes it.
            hidden: u64;
            /// Refused by one.
            by_one: u64 => ["refused_total" by who "one"];
            /// Refused by others, who have names.
            by_others: Others => ["refused_total" by who];
            /// Those of a part.
            part: Part => [each];
        }
    }

    by_label! {
        /// Others.
        pub struct Others: u32 {
            /// The first.
            first = "a";
            /// The second.
            second = "b";
        }
    }

    counters! {
        /// A part.
        pub struct Part: AddAssign {
            /// Parts.
            parts: u64 => ["parts_total"];
        }
    }

    fn counted() -> Counted {
        Counted {
            done: 1,
            under_way: 2,
            hidden: 3,
            by_one: 4,
            by_others: Others {
                first: 5,
                second: 6,
            },
            part: Part { parts: 7 },
        }
    }

    /// Adding a counter to the declaration is all that it takes.
    #[test]
    fn a_counter_is_a_line_of_its_declaration() {
        let mut all = Vec::new();
        counted().metrics(|metric, label, value| {
            all.push((metric.name, metric.help, label, value));
        });
        let others = "Refused by others, who have names.";
        assert_eq!(
            all,
            [
                ("done_total", "Things done.", None, 1),
                ("under_way", "Things in progress, now.", None, 2),
                ("refused_total", "Refused by one.", Some(("who", "one")), 4),
                ("refused_total", others, Some(("who", "a")), 5),
                ("refused_total", others, Some(("who", "b")), 6),
                ("parts_total", "Parts.", None, 7),
            ]
        );
    }

    #[test]
    fn counters_add_up_and_gauges_end() {
        let mut sum = counted();
        sum += counted();
        assert_eq!((sum.done, sum.under_way, sum.hidden), (2, 4, 6));
        assert_eq!((sum.by_others.second, sum.part.parts), (12, 14));
        let after = sum.without_gauges();
        assert_eq!((after.done, after.under_way, after.hidden), (2, 0, 6));
    }

    #[test]
    fn a_name_says_whether_its_metric_shrinks() {
        assert_eq!(Metric::new("done_total", "").kind(), Kind::Counter);
        assert_eq!(Metric::new("under_way", "").kind(), Kind::Gauge);
    }
}
