//! What Applications list, how far their lists can be trusted, and what they are syncing.

use serde_json::{Value, json};

use super::{EARLIER, FOOS, Maker, api};
use crate::json::{group_of, list, text};

/// How an Application's comparison went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Valid,
    /// Entries, and no time of a comparison.
    Bare,
    Never,
    Empty,
    InError,
    EmptyInError,
    Stale,
    EmptyAndStale,
    Skipped,
    InvalidSpec,
}

impl Maker {
    pub(super) fn lists(&mut self) {
        for at in self.apps() {
            let state = self.pick(&[
                (62, State::Valid),
                (8, State::Bare),
                (7, State::Never),
                (5, State::EmptyInError),
                (4, State::InError),
                (4, State::Stale),
                (2, State::Skipped),
                (2, State::InvalidSpec),
                (4, State::Empty),
                (2, State::EmptyAndStale),
            ]);
            let is_empty = matches!(state, State::Never | State::EmptyInError | State::Empty | State::EmptyAndStale);
            let entries = if is_empty { Vec::new() } else { self.entries(at, state) };
            self.comparison(at, state, &entries);
            if state != State::Never && self.chance(50) {
                self.objects[at]["status"]["history"] =
                    json!([{"id": 0, "revision": "a".repeat(40), "deployedAt": "2026-11-01T10:00:00Z"}]);
            }
            if !entries.is_empty() || self.chance(30) {
                self.objects[at]["status"]["resources"] = json!(entries);
            }
            if state != State::Never {
                self.operation(at);
            }
        }
    }

    fn entries(&mut self, at: usize, state: State) -> Vec<Value> {
        let target = text(&self.objects[at], "/spec/destination/namespace").to_owned();
        let own = text(&self.objects[at], "/metadata/name").to_owned();
        let mut candidates: Vec<[String; 3]> = self.pool.iter().map(|thing| thing.map(str::to_owned)).collect();
        for other in self.apps() {
            if (other != at && target == "argocd") || self.chance(6) {
                let meta = &self.objects[other]["metadata"];
                let named = |path| text(meta, path).to_owned();
                candidates.push(["Application".to_owned(), named("/namespace"), named("/name")]);
            }
        }
        for (thing, percent) in
            [(["ApplicationSet", "argocd", "teams"], 30), (["AppProject", "argocd", "team"], 30), (FOOS, 10)]
        {
            if (thing == FOOS || self.has(thing)) && self.chance(percent) {
                candidates.push(thing.map(str::to_owned));
            }
        }
        self.random.shuffle(&mut candidates);
        let count = self.one_of(&[1, 1, 2, 2, 3, 4]);
        candidates.truncate(count);
        let mut entries = Vec::new();
        for [kind, namespace, name] in candidates {
            // An Application that lists itself is rare.
            if kind != "Application" || name != own || self.chance(20) {
                entries.push(self.entry(&kind, &namespace, &name, &target, state));
            }
        }
        if self.chance(2) {
            entries.push(json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "status": "OutOfSync"}));
        }
        entries
    }

    fn entry(&mut self, kind: &str, namespace: &str, name: &str, target: &str, state: State) -> Value {
        let version = api(kind);
        let mut entry = json!({"kind": kind, "name": name, "version": version.rsplit('/').next()});
        if !group_of(&version).is_empty() {
            entry["group"] = json!(group_of(&version));
        }
        if !namespace.is_empty() {
            entry["namespace"] = json!(namespace);
        } else if self.chance(4) {
            // A manifest of an object without a namespace may name one.
            entry["namespace"] = json!(target);
        }
        let mut status =
            self.pick(&[(50, "Synced"), (24, "OutOfSync"), (18, "Prune"), (3, "Hook"), (2, "None"), (2, "Unknown")]);
        if state == State::InError {
            status = self.pick(&[(3, "Lost"), (1, "Unknown")]);
        }
        match status {
            "Prune" => (entry["status"], entry["requiresPruning"]) = (json!("OutOfSync"), json!(true)),
            // What could not be rendered is listed so.
            "Lost" => (entry["status"], entry["requiresPruning"]) = (json!("Unknown"), json!(true)),
            "Hook" => entry["hook"] = json!(true),
            "None" => {}
            status => entry["status"] = json!(status),
        }
        entry
    }

    fn comparison(&mut self, at: usize, state: State, entries: &[Value]) {
        let omitted = self.chance(20);
        let bare = self.one_of(&["Synced", "OutOfSync"]);
        let app = &mut self.objects[at];
        let mut compared = json!({"source": app["spec"]["source"], "destination": app["spec"]["destination"]});
        if state == State::Bare {
            app["status"]["sync"] = json!({"status": bare});
        }
        if !matches!(state, State::Never | State::Bare) {
            let synced = entries.iter().all(|entry| entry["status"] == "Synced");
            app["status"]["reconciledAt"] = json!(EARLIER);
            app["status"]["sync"] = json!({"status": if synced { "Synced" } else { "OutOfSync" }});
            if !omitted {
                app["status"]["sync"]["comparedTo"] = compared.clone();
            }
        }
        let failed = |app: &mut Value, kind: &str| {
            app["status"]["sync"]["status"] = json!("Unknown");
            app["status"]["conditions"] =
                json!([{"type": kind, "message": "it failed", "lastTransitionTime": EARLIER}]);
        };
        match state {
            State::InError | State::EmptyInError => failed(app, "ComparisonError"),
            State::InvalidSpec => failed(app, "InvalidSpecError"),
            State::Stale | State::EmptyAndStale => {
                compared["source"]["path"] = json!("before");
                app["status"]["sync"]["comparedTo"] = compared;
            }
            State::Skipped => app["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"] = json!("true"),
            _ => {}
        }
    }

    /// A sync that runs, waits or is over.
    fn operation(&mut self, at: usize) {
        let kind = self.pick(&[
            (62, ""),
            (10, "prune"),
            (5, "no prune"),
            (4, "force"),
            (4, "replace"),
            (3, "pending"),
            (9, "done"),
            (3, "failed"),
        ]);
        if kind.is_empty() {
            return;
        }
        let mut sync = json!({"revision": "a".repeat(40)});
        if kind == "prune" || self.chance(20) {
            sync["prune"] = json!(true);
        }
        match kind {
            "force" => {
                let how = self.one_of(&["apply", "hook"]);
                sync["syncStrategy"] = json!({how: {"force": true}});
            }
            "replace" => sync["syncOptions"] = json!(["Replace=true"]),
            "pending" => {
                sync["prune"] = json!(self.chance(50));
                self.objects[at]["operation"] = json!({"sync": sync});
                return;
            }
            _ => {}
        }
        if matches!(kind, "done" | "failed") {
            self.finished(at, sync, kind == "done");
            return;
        }
        if self.chance(60) {
            self.objects[at]["operation"] = json!({"sync": sync});
        }
        let phase = if self.chance(6) { "Terminating" } else { "Running" };
        self.objects[at]["status"]["operationState"] =
            json!({"phase": phase, "startedAt": "2026-11-29T11:59:50Z", "operation": {"sync": sync}});
    }

    fn finished(&mut self, at: usize, mut sync: Value, well: bool) {
        if self.chance(15) {
            sync["resources"] = json!([{"kind": "ConfigMap", "name": "cfg"}]);
        }
        if self.chance(10) {
            sync["dryRun"] = json!(true);
        }
        let mut things = self.pool.clone();
        self.random.shuffle(&mut things);
        let mut rows = Vec::new();
        for [kind, namespace, name] in things.into_iter().take(2) {
            let version = api(kind);
            let status = self.pick(&[(4, "Synced"), (1, "Pruned"), (1, "SyncFailed"), (1, "PruneSkipped")]);
            let mut row = json!({"group": group_of(&version), "version": "v1", "kind": kind, "namespace": namespace,
                "name": name, "status": status});
            if self.chance(15) {
                row["hookType"] = json!("PreSync");
            }
            rows.push(row);
        }
        self.objects[at]["status"]["operationState"] = json!({"phase": if well { "Succeeded" } else { "Failed" },
            "startedAt": "2026-11-29T11:40:00Z", "finishedAt": "2026-11-29T11:41:00Z", "operation": {"sync": sync},
            "syncResult": {"revision": "a".repeat(40), "resources": rows}});
    }

    /// The parent lists an object as it should be, and most often the object carries its marker.
    pub(super) fn adopt(&mut self, parent: usize, child: usize) {
        let object = &self.objects[child];
        let [version, kind, namespace, name] =
            ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(|path| text(object, path).to_owned());
        let status = self.pick(&[(4, "Synced"), (1, "OutOfSync")]);
        let mut entries = list(&self.objects[parent], "/status/resources").to_vec();
        entries.retain(|entry| text(entry, "/kind") != kind || text(entry, "/name") != name);
        entries.push(json!({"group": group_of(&version), "version": "v1alpha1", "kind": kind, "namespace": namespace,
            "name": name, "status": status}));
        self.objects[parent]["status"]["resources"] = json!(entries);
        if self.chance(85) {
            self.mark_by(child, parent);
        }
    }
}
