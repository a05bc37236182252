//! What differs between two trees.

use super::side::{Piece, Side};

/// What a change does to what Applications render.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// Objects that an Application renders no more and that another begins to render: the giver, the taker, the object.
    pub moved: Vec<(&'a str, &'a str, &'a Piece)>,
    /// Objects that an Application renders no more while it lives on, moved ones among them.
    pub gone: Vec<(&'a str, &'a Piece)>,
    /// Applications that are not rendered any more.
    pub dropped: Vec<&'a str>,
    /// Objects that an Application renders in another way: its name, the object before and after.
    pub changed: Vec<(&'a str, &'a Piece, &'a Piece)>,
}

impl<'a> Changes<'a> {
    /// Compares two trees.
    pub fn between(before: &'a Side, after: &'a Side) -> Self {
        let mut changes = Self::default();
        for (name, pieces) in &before.applications {
            let Some(now) = after.applications.get(name) else {
                changes.dropped.push(name);
                continue;
            };
            for (object, piece) in pieces {
                match now.get(object) {
                    Some(new) if new.value != piece.value => changes.changed.push((name, piece, new)),
                    Some(_) => {}
                    None => changes.gone.push((name, piece)),
                }
            }
        }
        for (giver, piece) in &changes.gone {
            let takes = |name: &&String| {
                let had = before.applications.get(*name).is_some_and(|pieces| pieces.contains_key(&piece.object));
                name.as_str() != *giver && !had && after.applications[*name].contains_key(&piece.object)
            };
            if let Some(taker) = after.applications.keys().find(takes) {
                changes.moved.push((giver, taker, piece));
            }
        }
        changes
    }

    /// Whether an object only moves.
    pub fn is_moved(&self, piece: &Piece) -> bool {
        self.moved.iter().any(|(_, _, moved)| moved.object == piece.object)
    }
}
