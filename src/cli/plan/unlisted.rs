//! What Applications do not tell: what goes although nobody lists it, and what stays because of a finalizer.

use std::collections::HashSet;

use super::{
    super::{opened_input::OpenedInput, output, thorough},
    Row,
};
use cascade_guard_core::{
    argo::application::CASCADE_FINALIZERS,
    deletion::{Deletion, defined_by, unlisted_instances},
    facts::Reading,
    inventory::LOCAL,
    namespace::{
        content::{HeldObject, NotRead},
        finalizers::known,
    },
    object::ObjectRef,
};

/// At most this many Namespaces are surveyed.
const MAX_NAMESPACES: usize = 50;

/// What was found beside the lists of Applications.
#[derive(Default)]
pub(super) struct Found {
    pub(super) hanging: Vec<HeldObject>,
    pub(super) unclaimed: Vec<ObjectRef>,
    pub(super) not_read: Vec<NotRead>,
}

/// Looks into the Namespaces of the plan and at the instances of a definition. `json` is the object that is deleted.
/// Finalizers of a cascade are left out, because Argo CD removes them at the end of the cascade that is planned here.
pub(super) async fn find(rows: &[Row], deletion: &Deletion, json: &str, opened: &OpenedInput) -> Found {
    let mut found = Found::default();
    let going = || rows.iter().filter(|row| row.fate != "spared");
    let held = |row: &Row, finalizer: &String| HeldObject {
        object: row.object.clone(),
        finalizer: finalizer.clone(),
        known: known(finalizer),
    };
    found.hanging.extend(going().flat_map(|row| row.finalizers.iter().map(move |finalizer| held(row, finalizer))));
    let mut known_held: HashSet<(ObjectRef, String)> =
        found.hanging.iter().map(|held| (held.object.clone(), held.finalizer.clone())).collect();
    let local = opened.inventory.cluster_name(LOCAL);
    let namespaces = going().filter(|row| row.object.is_namespace() && row.cluster == local);
    for (place, row) in namespaces.enumerate() {
        if place == MAX_NAMESPACES {
            output::note(&format!("only {MAX_NAMESPACES} of the Namespaces were looked into"));
            break;
        }
        let Some(meta) = opened.inventory.namespace(&row.object.name) else { continue };
        let content = thorough::namespace_content(meta, &opened.inventory, opened).await.unwrap_or_default();
        let new =
            content.held.into_iter().filter(|held| known_held.insert((held.object.clone(), held.finalizer.clone())));
        found.hanging.extend(new);
        let listed = |object: &ObjectRef| deletion.plan.item(opened.inventory.key_of(LOCAL, object)).is_some();
        found.unclaimed.extend(content.precious.into_iter().filter(|object| !listed(object)));
        let inside = |unread: NotRead| NotRead { what: format!("{} in {}", unread.what, row.object.name), ..unread };
        found.not_read.extend(content.not_read.into_iter().map(inside));
    }
    instances(deletion, json, opened, &mut found).await;
    let cascade =
        |held: &HeldObject| held.object.is_application() && CASCADE_FINALIZERS.contains(&held.finalizer.as_str());
    found.hanging.retain(|held| held.hangs() && !cascade(held));
    found
}

/// Adds instances of a definition that nobody lists.
async fn instances(deletion: &Deletion, json: &str, opened: &OpenedInput, found: &mut Found) {
    let Some(kind) = defined_by(&deletion.object, json) else { return };
    let look = |facts: &mut _| unlisted_instances(&opened.inventory, facts, &deletion.plan, &kind);
    let why = match thorough::settle(opened, look).await {
        Some(Reading::Found(unlisted)) => {
            found.unclaimed.extend(unlisted.objects);
            if unlisted.complete {
                return;
            }
            "there are more than were read".to_owned()
        }
        Some(Reading::NotFound) | None => return,
        Some(Reading::Unreadable(why) | Reading::Forbidden(why)) => why,
    };
    found.not_read.push(NotRead { what: kind.to_string(), why });
}
