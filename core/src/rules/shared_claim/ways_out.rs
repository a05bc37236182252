//! What to do about a delete that takes what others claim. Each remedy suffices by itself.

use crate::{
    argo::{
        Class,
        sync_options::{SYNC_OPTIONS, in_annotation},
        tracking::{INSTANCE_LABEL, TRACKING_ID},
    },
    deletion::{Deletion, Explanation, Item},
    inventory::{App, AppId},
    object::{ARGO_GROUP, ObjectRef},
    remedy::{Command, Remedy, type_and_name},
    rules::Context,
    text::some,
};

/// So many Applications are named in one remedy.
const MAX_NAMED: usize = 3;

/// The ways out for one object that others claim.
pub(super) fn of_item(cx: &Context<'_>, deletion: &Deletion, item: &Item) -> Vec<Remedy> {
    let claimants = apps(cx, &item.claimants);
    if let Some(remedy) = of_replacing_sync(cx, deletion) {
        return vec![remedy];
    }
    let Some(first) = claimants.first() else { return Vec::new() };
    let holds_others =
        item.kind.is("", "Namespace") || item.kind.is("apiextensions.k8s.io", "CustomResourceDefinition");
    if deletion.plan.takers.is_empty() {
        return vec![if holds_others { move_away(&claimants) } else { by_hand(cx, deletion, &claimants) }];
    }
    let mut remedies = Vec::new();
    let stuck = claimants.iter().find(|app| cannot_be_synced(app));
    remedies.extend(stuck.map(|app| repair(app)));
    let root_heals = cx.inventory.app_named(&deletion.object.namespace, &deletion.object.name);
    let root_heals = root_heals.and_then(|id| cx.inventory.app(id)).filter(|app| app.self_heals && is_root(deletion));
    if let Some(root) = root_heals.filter(|_| holds_others && first.self_heals) {
        remedies.push(one_after_the_other(root, first));
    }
    if stuck.is_none() {
        remedies.extend(claimants.iter().find(|app| is_unsure(app, item)).map(|app| refresh(app)));
        if remedies.is_empty() || holds_others {
            remedies.push(take_over(deletion, item, &claimants));
        }
    }
    remedies.extend(leave_in_place(deletion));
    if !matches!(deletion.explanation, Explanation::Cascade(_) | Explanation::Prune(_)) {
        remedies.push(Remedy::run("see everything that would go", plan_of(&deletion.object)));
    }
    remedies
}

/// The ways out for what a Namespace or a definition holds of others.
pub(super) fn of_content(cx: &Context<'_>, deletion: &Deletion, claimants: &[AppId]) -> Vec<Remedy> {
    let claimants = apps(cx, claimants);
    let replacing = of_replacing_sync(cx, deletion);
    let mut remedies = vec![replacing.unwrap_or_else(|| move_away(&claimants))];
    remedies.extend(leave_in_place(deletion));
    remedies
}

/// The ways out where nobody knows what an Application wants: its own condition says what keeps it from being compared.
pub(super) fn of_unknown_claimant(app: &App) -> Vec<Remedy> {
    let path = app.path();
    if app.is_unreadable() {
        return vec![
            Remedy::run(
                format!("find the field of {path} that has another shape than Argo CD gives it, and mend it"),
                Command::new("kubectl get application.argoproj.io")
                    .word(&*app.name)
                    .namespace(&app.namespace)
                    .words(["-o", "yaml"]),
            ),
            delete_it(app),
        ];
    }
    match app.trouble.as_deref() {
        Some(_) if app.is_skipped => vec![
            Remedy::run(
                format!("resume {path}, have it compared, then try again"),
                annotate_application(app, "argocd.argoproj.io/skip-reconcile-"),
            )
            .then(Command::new("argocd app get").words([&path, "--refresh"])),
            delete_it(app),
        ],
        Some(_) => vec![repair(app), delete_it(app)],
        None => vec![Remedy::run(
            format!("have {path} compared, then try again"),
            Command::new("argocd app get").words([&path, "--refresh"]),
        )],
    }
}

/// A sync that deletes a Namespace or a definition to make it anew: whoever synced can sync otherwise. `None` for any
/// other delete.
pub(in crate::rules) fn of_replacing_sync(cx: &Context<'_>, deletion: &Deletion) -> Option<Remedy> {
    let Explanation::Replacement(id) = deletion.explanation else { return None };
    let app = cx.inventory.app(id)?;
    let (path, object) = (app.path(), &deletion.object);
    let on_object: Vec<&str> = ["Force", "Replace"]
        .into_iter()
        .filter(|option| in_annotation(deletion.meta.annotation(SYNC_OPTIONS), option) == Some("true"))
        .collect();
    let text = if on_object.is_empty() {
        format!(
            "the sync of {path} with Force or Replace deletes {object} to make it anew: end it, and sync without them \
             (in the options of the sync and in spec.syncPolicy.syncOptions)"
        )
    } else {
        format!(
            "the sync of {path} deletes {object} to make it anew, because {SYNC_OPTIONS} on it says {}: take that out of \
             its manifest and of the object, then sync again",
            on_object.join(" and ")
        )
    };
    let mut remedy = Remedy::run(text, Command::new("argocd app terminate-op").word(&path));
    if !on_object.is_empty() {
        remedy = remedy.then(
            Command::new("kubectl")
                .namespace(&object.namespace)
                .words(["annotate", &type_and_name(object)])
                .word(format!("{SYNC_OPTIONS}-")),
        );
    }
    Some(remedy.then(Command::new("argocd app sync").word(&path)))
}

fn is_root(deletion: &Deletion) -> bool {
    deletion.object.is_application()
}

fn apps<'a>(cx: &Context<'a>, ids: &[AppId]) -> Vec<&'a App> {
    let mut apps: Vec<&App> = ids.iter().filter_map(|id| cx.inventory.app(*id)).collect();
    apps.sort_by_key(|app| app.path());
    apps
}

fn named(apps: &[&App]) -> String {
    some(&apps.iter().map(|app| app.path()).collect::<Vec<_>>(), MAX_NAMED)
}

/// Whether a sync of it would fail: Argo CD cannot render or compare it.
fn cannot_be_synced(app: &App) -> bool {
    app.trouble.is_some()
}

/// Whether only a list that is not to be believed names the object: if that list is right after all, a sync does not take
/// the object over but may prune it.
fn is_unsure(app: &App, item: &Item) -> bool {
    app.distrust.is_some() && app.claim(item.key).is_some_and(|claim| claim.class != Class::Desired)
}

fn refresh(app: &App) -> Remedy {
    Remedy::run(
        format!("see first whether {} still wants this ({})", app.path(), app.distrust.unwrap_or_default()),
        Command::new("argocd app get").word(app.path()).word("--refresh"),
    )
}

fn repair(app: &App) -> Remedy {
    let path = app.path();
    let trouble = app.trouble.as_deref().unwrap_or("it cannot be compared");
    Remedy::run(
        format!("repair {path} ({trouble}), have it compared, then try again"),
        Command::new("argocd app get").words([&path, "--hard-refresh"]),
    )
}

/// Whoever does not need it can delete it: it lists nothing, or what it lists stays.
fn delete_it(app: &App) -> Remedy {
    Remedy::run(
        format!("or, if nobody needs {}, delete it and leave its objects", app.path()),
        Command::new("argocd app delete").word(app.path()).word("--cascade=false"),
    )
}

/// How an Application stops to be taken for an object of its own: what names it on itself is taken off.
pub(super) fn of_own_prune(cx: &Context<'_>, app: &App) -> Remedy {
    let label = cx.inventory.settings_of(app).map_or(INSTANCE_LABEL, |settings| &*settings.label_key);
    Remedy::run(
        format!("take the label and the annotation off {} that name itself, and out of its manifest", app.path()),
        Command::new("kubectl")
            .namespace(&app.namespace)
            .words(["label", &type_and_name(&app.object())])
            .word(format!("{label}-")),
    )
    .then(annotate_application(app, &format!("{TRACKING_ID}-")))
}

/// How an Application stops taking objects back. A generated one is written by its ApplicationSet and nobody else.
enum SelfHealOff {
    Command(Command),
    Generator(String),
}

fn self_heal_off(app: &App) -> SelfHealOff {
    match generator(app) {
        Some(set) => SelfHealOff::Generator(set),
        None => SelfHealOff::Command(Command::new("argocd app set").word(app.path()).word("--self-heal=false")),
    }
}

/// The ApplicationSet that generated an Application, as messages name it.
fn generator(app: &App) -> Option<String> {
    let (set, _uid) = app.generated_by.as_deref()?.rsplit_once('/')?;
    Some(ObjectRef::new(ARGO_GROUP, "ApplicationSet", &app.namespace, set).to_string())
}

/// The claimants take the object over, so that the delete passes it by.
fn take_over(deletion: &Deletion, item: &Item, claimants: &[&App]) -> Remedy {
    let takers = || deletion.plan.takers_of(item).map(|taker| &taker.app);
    let mut commands = Vec::new();
    let mut before = String::new();
    for app in takers().filter(|app| app.running.is_some()) {
        commands.push(Command::new("argocd app wait").word(app.path()).word("--operation"));
    }
    for app in takers().filter(|app| app.self_heals) {
        match self_heal_off(app) {
            SelfHealOff::Command(command) => commands.push(command),
            SelfHealOff::Generator(set) => {
                before = format!("turn self-heal off in the template of {set}, which generated {}, and ", app.path());
            }
        }
    }
    let other = claimants.first().map(|app| app.path()).unwrap_or_default();
    commands.push(Command::new("argocd app sync").word(&other));
    let then = match deletion.explanation {
        Explanation::Cascade(_) | Explanation::Prune(_) => "this passes it by",
        _ => "try again",
    };
    Remedy::steps(format!("{before}let {other} take over what it claims, then {then}"), commands)
}

/// Two Applications that both heal themselves take a Namespace from each other for ever, so neither can go with it.
fn one_after_the_other(root: &App, other: &App) -> Remedy {
    let mut commands = Vec::new();
    let mut before = String::new();
    match self_heal_off(root) {
        SelfHealOff::Command(command) => commands.push(command),
        SelfHealOff::Generator(set) => {
            before = format!(" ({set} generates both; self-heal is turned off in its template)");
        }
    }
    commands.push(Command::new("argocd app delete").word(root.path()).word("--cascade=false"));
    Remedy::steps(
        format!(
            "both heal themselves and claim it, so delete one after the other{before}: this one without its cascade, then \
             {}, which takes it along",
            other.path()
        ),
        commands,
    )
}

/// What keeps everything where it is.
fn leave_in_place(deletion: &Deletion) -> Option<Remedy> {
    let object = &deletion.object;
    if object.is_application() && !matches!(deletion.explanation, Explanation::Cascade(_)) {
        return Some(Remedy::run(
            "or leave everything in place",
            Command::new("argocd app delete").word(object.path()).word("--cascade=false"),
        ));
    }
    orphaning(object)
}

/// How an ApplicationSet is deleted without its Applications.
pub(super) fn orphaning(object: &ObjectRef) -> Option<Remedy> {
    object.kind.is(ARGO_GROUP, "ApplicationSet").then(|| {
        Remedy::run(
            "leave its Applications in place",
            Command::new("kubectl").namespace(&object.namespace).words([
                "delete",
                &type_and_name(object),
                "--cascade=orphan",
            ]),
        )
    })
}

/// The way out where a sync does not help: a Namespace or a definition takes its content whoever tracks it.
fn move_away(claimants: &[&App]) -> Remedy {
    let generators: Vec<String> = claimants.iter().filter_map(|app| generator(app)).collect();
    let by = match generators.first() {
        Some(set) => format!(" (through {set}, which generates it)"),
        None => String::new(),
    };
    Remedy::advice(format!(
        "delete or move {}{by} first, or take the Namespace or definition out of the manifests; a sync does not help",
        named(claimants)
    ))
}

/// An object that somebody deletes by hand while several Applications want it.
fn by_hand(cx: &Context<'_>, deletion: &Deletion, claimants: &[&App]) -> Remedy {
    let manager = deletion.manager.and_then(|id| cx.inventory.app(id));
    let others = named(claimants);
    Remedy::advice(match manager {
        Some(manager) => format!(
            "remove it from the manifests of {others} and sync, so that only {}, which manages it, wants it",
            manager.path()
        ),
        None => format!("remove it from the manifests of {others}, and sync"),
    })
}

fn annotate_application(app: &App, change: &str) -> Command {
    Command::new("kubectl").namespace(&app.namespace).words(["annotate", &type_and_name(&app.object()), change])
}

/// The command that shows the plan.
fn plan_of(object: &ObjectRef) -> Command {
    let kind = object.kind.kind.to_lowercase();
    let command = Command::new("cascade-guard plan").namespace(&object.namespace);
    // Names of RBAC objects may begin with a hyphen.
    let command = if object.name.starts_with('-') { command.word("--") } else { command };
    command.words([&kind, &object.name])
}
