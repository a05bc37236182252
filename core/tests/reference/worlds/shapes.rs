//! Trees of Applications and sets of them, perhaps being deleted from the top.

use serde_json::json;

use super::{BEGAN, EARLIER, FINALIZER, HERE, Maker};
use crate::json::text;

impl Maker {
    /// Applications of Applications.
    pub(super) fn tree(&mut self) {
        let apps = self.apps();
        let mut parents = Vec::new();
        for (number, child) in apps.iter().copied().enumerate().skip(1) {
            let parent = self.one_of(&apps[number.saturating_sub(2)..number]);
            if let Some(meta) = self.objects[child]["metadata"].as_object_mut() {
                meta.remove("ownerReferences");
            }
            if self.chance(90) {
                self.objects[parent]["spec"]["destination"] = json!({"server": HERE, "namespace": "argocd"});
            }
            let status = &mut self.objects[parent]["status"];
            if status["reconciledAt"].is_null() {
                status["reconciledAt"] = json!(EARLIER);
            }
            if status["sync"].is_null() {
                status["sync"] = json!({"status": "Synced"});
            }
            self.adopt(parent, child);
            parents.push((child, parent));
        }
        if apps.len() > 1 && self.chance(50) {
            self.begin(apps[0], &parents);
        }
    }

    /// The deletion of the whole tree has begun and is on its way down.
    fn begin(&mut self, top: usize, parents: &[(usize, usize)]) {
        self.terminate(top, BEGAN, FINALIZER);
        let mut going = vec![top];
        for (child, parent) in parents {
            if let Some(meta) = self.objects[*child]["metadata"].as_object_mut() {
                meta.remove("deletionTimestamp");
            }
            if going.contains(parent) && self.chance(60) {
                self.terminate(*child, "2026-11-29T11:59:40Z", FINALIZER);
                going.push(*child);
            }
        }
    }

    /// Applications of one set, which is there, on its way out or gone.
    pub(super) fn generated(&mut self) {
        const SET: [&str; 3] = ["ApplicationSet", "argocd", "teams"];
        let state = self.pick(&[(4, "there"), (2, "terminating"), (4, "gone")]);
        match (state, self.find(SET)) {
            ("gone", Some(at)) => {
                self.objects.remove(at);
            }
            ("gone", None) => {}
            (_, known) => {
                let at = known.unwrap_or_else(|| self.set());
                if let Some(meta) = self.objects[at]["metadata"].as_object_mut() {
                    meta.remove("deletionTimestamp");
                }
                if state == "terminating" {
                    self.objects[at]["metadata"]["deletionTimestamp"] = json!(BEGAN);
                    self.objects[at]["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
                }
            }
        }
        for at in self.apps() {
            if text(&self.objects[at], "/metadata/namespace") != "argocd" || !self.chance(85) {
                continue;
            }
            let began = state != "there" && self.chance(40);
            let meta = &mut self.objects[at]["metadata"];
            meta["ownerReferences"] = Self::owner(SET[2]);
            if meta["finalizers"].is_null() {
                meta["finalizers"] = json!([FINALIZER]);
            }
            if let Some(meta) = meta.as_object_mut() {
                meta.remove("deletionTimestamp");
            }
            if began {
                self.objects[at]["metadata"]["deletionTimestamp"] = json!(BEGAN);
            }
        }
    }
}
