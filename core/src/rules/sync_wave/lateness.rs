//! Whether something comes too late for what needs it, and how.

use crate::{
    argo::{hook::Stage, order::kind_rank},
    needs::{Force, Need},
    object::GroupKind,
};

/// How a need comes too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// In a later phase.
    Phase {
        /// Whether the wave numbers, read without the phases, say the opposite.
        contradicts: bool,
    },
    /// In a later wave of the same phase.
    Wave,
    /// In the same wave, by a kind that is applied later.
    Kind,
}

/// Whether an object at `stage` waits for something that Argo CD only creates after it, and how.
///
/// Argo CD goes on to the next wave when everything in the present one is healthy, so whatever cannot become healthy
/// without a need of a later stage holds the sync up for ever. Inside a wave it applies kind after kind without waiting:
/// there everything but a bare Pod that the API server refuses is tried again until the need is met.
pub fn late(kind: &GroupKind, stage: Stage, need: &GroupKind, force: Force, at: Stage) -> Option<Late> {
    if at.phase != stage.phase {
        return (at.phase > stage.phase).then_some(Late::Phase { contradicts: stage.wave > at.wave });
    }
    if stage.phase.is_deletion() {
        return None;
    }
    if at.wave != stage.wave {
        return (at.wave > stage.wave).then_some(Late::Wave);
    }
    let refused = kind.is("", "Pod") && force == Force::Creation;
    (refused && kind_rank(&need.kind) > kind_rank(&kind.kind)).then_some(Late::Kind)
}

/// A need that keeps the sync from ever going on.
pub(super) struct Unmet<'a> {
    pub need: &'a Need,
    pub late: Late,
    pub at: Stage,
}
