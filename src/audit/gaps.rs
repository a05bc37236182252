//! What nobody can tell about the Argo CDs of the cluster, and Applications that these mix up or leave alone.

use serde::{Deserialize, Serialize};

use super::AuditInput;
use crate::judge::View;
use cascade_guard_core::{
    inventory::gaps::{Gap, GapKind},
    object::ObjectRef,
    remedy::Remedy,
};

/// Something to know about an Argo CD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unsettled {
    /// The object that it is about.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// `unnamed`, `unresolved`, `not-served` or `twins`.
    pub what: String,
    /// What is so.
    pub detail: String,
    /// What to do about it.
    pub remedy: Remedy,
}

/// All of it: what makes Argo CDs delete too much first.
pub(super) fn find<V: View, S>(input: &AuditInput<'_, V, S>) -> Vec<Unsettled> {
    let gaps =
        input.view.with(|inventory| [inventory.twins(), inventory.gaps_in_policy(), inventory.not_served()].concat());
    gaps.into_iter().map(unsettled).collect()
}

fn unsettled(gap: Gap) -> Unsettled {
    let what = match gap.kind {
        GapKind::Unnamed => "unnamed",
        GapKind::Unresolved => "unresolved",
        GapKind::NotServed => "not-served",
        GapKind::Twins => "twins",
    };
    Unsettled { object: gap.object, what: what.to_owned(), detail: gap.detail, remedy: gap.remedy }
}
