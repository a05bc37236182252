//! Prints every approval there is, and the Namespaces whose deletion waits for one.

use super::{
    super::output::{self, Format},
    Clock,
};
use cascade_guard_core::namespace::approval_list::ListedApproval;

pub(super) fn print(rows: &[ListedApproval], format: Format, clock: &Clock) -> anyhow::Result<()> {
    match format {
        Format::Json | Format::Yaml => output::structured(format, &rows),
        Format::Table if rows.is_empty() => {
            Ok(output::line("No Namespace is approved for deletion, and none waits for it.")?)
        }
        Format::Table => Ok(output::line(&table(rows, clock))?),
    }
}

/// The approvals as a table for people.
pub fn table(rows: &[ListedApproval], clock: &Clock) -> String {
    let heads = ["NAMESPACE", "STATE", "UNTIL", "APPROVED BY", "REASON", "NOTE"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for row in rows {
        let until =
            row.approved_until.parse().map_or_else(|_| row.approved_until.clone(), |end| clock.local_and_left(end));
        let mut notes = row.problems.clone();
        if !row.wanted_by.is_empty() {
            notes.push(format!("the cascade of {} waits for an approval", row.wanted_by.join(", ")));
        }
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        lines.push(vec![
            row.namespace.clone(),
            row.state.to_string(),
            or_dash(&until),
            or_dash(&row.approved_by),
            or_dash(&row.reason),
            notes.join("; "),
        ]);
    }
    output::table(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cascade_guard_core::{namespace::approval_list::list_approvals, policy::Policy, snapshot::Snapshot};

    #[test]
    fn table_shows_the_time_left_the_problems_and_who_waits() {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(1));
        let clock = Clock::new("2026-11-29T12:00:00Z".parse().unwrap(), zone);
        let spec = "rules: {namespaceApproval: {mode: enforce}}";
        let policy = Policy::new(serde_saphyr::from_str(spec).unwrap()).unwrap();
        let cluster = Snapshot::parse("test", super::super::CLUSTER.to_owned()).unwrap();
        let text = table(&list_approvals(&cluster.inventory(&policy, (1, 2)), &policy, clock.now), &clock);
        for part in [
            "valid      valid         2026-11-29 17:00:00 +01:00 (in 4h)    alice        CHG-7",
            "it was approved for an earlier Namespace of this name (UID other, this one is u-copied)",
            "the cascade of argocd/wanted waits for an approval",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
