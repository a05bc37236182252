//! Times as people read them: in their own zone, with the offset.

use cascade_guard_core::text::span;
use jiff::{Timestamp, tz::TimeZone};

/// The time it is, and where.
pub struct Clock {
    /// Now.
    pub now: Timestamp,
    zone: TimeZone,
}

impl Clock {
    /// In the zone of this machine (`TZ`, or else `/etc/localtime`); UTC where neither says anything.
    pub fn system(now: Timestamp) -> Self {
        Self { now, zone: TimeZone::system() }
    }

    /// In this zone.
    pub fn new(now: Timestamp, zone: TimeZone) -> Self {
        Self { now, zone }
    }

    /// `2026-11-29 20:00:00 +01:00`.
    pub fn local(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
    }

    /// The same, with how far away that is.
    pub fn local_and_left(&self, time: Timestamp) -> String {
        let left = time.duration_since(self.now);
        let away = span(left.abs());
        let away = if left.is_negative() { format!("{away} ago") } else { format!("in {away}") };
        format!("{} ({away})", self.local(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_where_the_reader_is() {
        let now = "2026-11-29T12:00:00Z".parse().unwrap();
        let clock = Clock::new(now, TimeZone::fixed(jiff::tz::offset(1)));
        let shown = |time: &str| clock.local_and_left(time.parse().unwrap());
        assert_eq!(shown("2026-11-29T13:40:30Z"), "2026-11-29 14:40:30 +01:00 (in 1h 41m)");
        assert_eq!(shown("2026-11-29T11:59:30Z"), "2026-11-29 12:59:30 +01:00 (30s ago)");
    }
}
