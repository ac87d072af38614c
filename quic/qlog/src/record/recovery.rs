//! Loss detection, congestion control and ECN.

use hybriq_proto::{
    events::{
        AckFrequencyUpdated, Change, LossTimer, LossTrigger, PacketLost, Phase, Space, TimerKind,
    },
    stats::PathStats,
    wire::udp::EcnState,
};

use super::sheet::{Sheet, owner, sheet_owner};
use crate::{
    json::Object,
    schema::{Name, Schema},
};

pub(crate) fn packet_lost(sheet: &mut Sheet<'_>, lost: PacketLost) {
    sheet.write(Name::PacketLost, |data| {
        data.object("header", |header| {
            let kind = match lost.space {
                Space::Initial => "initial",
                Space::Handshake => "handshake",
                Space::Data => "1RTT",
            };
            header.text("packet_type", kind);
            header.uint("packet_number", lost.number.get());
        });
        match lost.trigger {
            LossTrigger::ReorderingThreshold => data.text("trigger", "reordering_threshold"),
            LossTrigger::TimeThreshold => data.text("trigger", "time_threshold"),
            _ => {}
        }
    });
}

pub(crate) fn metrics_differ(old: &PathStats, new: &PathStats) -> bool {
    let fields = |path: &PathStats| {
        let times = [
            path.min_rtt,
            path.smoothed_rtt,
            path.latest_rtt,
            path.rtt_variance,
        ];
        let sizes = (path.congestion_window, path.bytes_in_flight, path.pto_count);
        (times, sizes, path.slow_start_threshold, path.pacing_rate)
    };
    fields(old) != fields(new)
}

pub(crate) fn put_metrics(data: &mut Object<'_>, old: Option<&PathStats>, new: &PathStats) {
    macro_rules! changed {
        ($field:ident) => {
            old.is_none_or(|old| old.$field != new.$field)
        };
    }
    if changed!(min_rtt) {
        data.ms("min_rtt", new.min_rtt);
    }
    if changed!(smoothed_rtt) {
        data.ms("smoothed_rtt", new.smoothed_rtt);
    }
    if changed!(latest_rtt) {
        data.ms("latest_rtt", new.latest_rtt);
    }
    if changed!(rtt_variance) {
        data.ms("rtt_variance", new.rtt_variance);
    }
    if changed!(pto_count) {
        data.uint("pto_count", u64::from(new.pto_count.min(u16::MAX.into())));
    }
    if changed!(congestion_window) {
        data.uint("congestion_window", new.congestion_window);
    }
    if changed!(bytes_in_flight) {
        data.uint("bytes_in_flight", new.bytes_in_flight);
    }
    if let Some(threshold) = new
        .slow_start_threshold
        .filter(|_| changed!(slow_start_threshold))
    {
        data.uint("ssthresh", threshold);
    }
    if let Some(rate) = new.pacing_rate.filter(|_| changed!(pacing_rate)) {
        data.uint("pacing_rate", rate.saturating_mul(8));
    }
}

pub(crate) fn loss_timer(sheet: &mut Sheet<'_>, timer: LossTimer) {
    let schema = sheet.schema;
    let kind = |kind| match (kind, schema) {
        (TimerKind::Probe, _) => "pto",
        // The time threshold, which qlog 0.3 names after a mode of an old draft.
        (TimerKind::Loss, Schema::V03) => "ack",
        (TimerKind::Loss, Schema::Draft13) => "loss_timeout",
    };
    sheet.write(Name::LossTimerUpdated, |data| match timer {
        LossTimer::Set { kind: of, after } => {
            data.text("timer_type", kind(of));
            data.text("event_type", "set");
            data.ms("delta", after);
        }
        LossTimer::Expired(of) => {
            data.text("timer_type", kind(of));
            data.text("event_type", "expired");
        }
        _ => data.text("event_type", "cancelled"),
    });
}

pub(crate) fn ack_frequency(sheet: &mut Sheet<'_>, update: AckFrequencyUpdated) {
    let key = sheet_owner(sheet.schema);
    sheet.write(Name::AckFrequencyUpdated, |data| {
        data.text(key, owner(update.by));
        data.uint("ack_eliciting_threshold", update.threshold);
        data.ms("request_max_ack_delay", update.max_delay);
        data.uint("reordering_threshold", update.reordering);
    });
}

const fn ecn_name(state: EcnState) -> &'static str {
    match state {
        EcnState::Testing => "testing",
        EcnState::Capable => "capable",
        // qlog has no name for ECN that is switched off.
        EcnState::Failed | EcnState::Disabled => "failed",
        _ => "unknown",
    }
}

pub(crate) fn ecn_state(sheet: &mut Sheet<'_>, change: Change<EcnState>) {
    sheet.write(Name::EcnStateUpdated, |data| {
        data.text("old", ecn_name(change.old));
        data.text("new", ecn_name(change.new));
    });
}

pub(crate) fn phase(sheet: &mut Sheet<'_>, change: Change<Phase>) {
    let name = |phase| match phase {
        Phase::SlowStart => "slow_start",
        Phase::Recovery => "recovery",
        Phase::Avoidance => "congestion_avoidance",
    };
    sheet.write(Name::CongestionStateUpdated, |data| {
        data.text("old", name(change.old));
        data.text("new", name(change.new));
    });
}
