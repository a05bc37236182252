//! Objects that one Application gives up and another takes.

use std::collections::BTreeMap;

use super::{Changes, Piece, finding, is_grave, world::World};
use crate::{
    decision::Severity,
    remedy::{Command, Remedy},
    report::ReportFinding,
    text::{count, some},
};

/// Names each pair of Applications with what moves between them. If the taker syncs first, the objects carry its marker
/// and the giver prunes none of them. If the giver syncs first, it deletes them, and the taker makes them anew.
pub fn find(changes: &Changes<'_>, world: &World<'_>, findings: &mut Vec<ReportFinding>) {
    let mut pairs: BTreeMap<(&str, &str), Vec<&Piece>> = BTreeMap::new();
    for (giver, taker, piece) in &changes.moved {
        pairs.entry((giver, taker)).or_default().push(piece);
    }
    for ((giver, taker), mut pieces) in pairs {
        // The gravest stands for all of them.
        pieces.sort_by_key(|piece| !is_grave(&piece.object));
        let first = pieces[0];
        let (from, to) = (world.path(giver), world.path(taker));
        let grave = is_grave(&first.object);
        let prunes = world.known.get(giver).and_then(|known| known.prunes);
        let severity = if grave || prunes == Some(true) { Severity::Deny } else { Severity::Warn };
        let names: Vec<String> = pieces.iter().map(|piece| piece.object.to_string()).collect();
        let by_itself = match prunes {
            Some(true) => format!("{from} prunes by itself, so nothing but chance decides which comes first"),
            Some(false) => format!("{from} prunes only when somebody asks it to"),
            None => format!("if {from} prunes by itself, nothing but chance decides which comes first"),
        };
        let lost = if grave { ", with everything in it" } else { "" };
        let mut found = finding(
            "moved",
            severity,
            first,
            "objects move from one Application to another: that is safe only if the one that takes them syncs first",
            format!(
                "{} from {from} to {to}: {}. If {from} syncs first with prune, it deletes {}{lost}, and {to} makes {} \
                 anew; {by_itself}",
                if pieces.len() == 1 { "moves".to_owned() } else { format!("{} move", count(pieces.len(), "object")) },
                some(&names, 5),
                if pieces.len() == 1 { "it" } else { "them" },
                if pieces.len() == 1 { "it" } else { "them" },
            ),
        );
        found.claimants = vec![to.clone()];
        if prunes != Some(false) {
            found.remedies.push(Remedy::run(
                format!("before the merge, keep {from} from syncing by itself"),
                Command::new("argocd app set").word(&from).words(["--sync-policy", "none"]),
            ));
        }
        found.remedies.push(Remedy::run(
            "after the merge, sync the one that takes over",
            Command::new("argocd app sync").word(&to),
        ));
        found.remedies.push(Remedy::run(
            "and only then the one that gives up",
            Command::new("argocd app sync").word(&from).word("--prune"),
        ));
        findings.push(found);
    }
}
