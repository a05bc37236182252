//! Objects that one Application gives up and another takes.

use crate::support::{CLAIM, CONFIG, ROLE, Trees, application};

fn moved(object: &str, old: &str, new: &str) -> Trees {
    let parents = [old, new].concat();
    Trees::new(
        &[("old/a.yaml", &[CONFIG, object].concat()), ("new/a.yaml", ROLE), ("root/a.yaml", &parents)],
        &[("old/a.yaml", CONFIG), ("new/a.yaml", &[ROLE, object].concat()), ("root/a.yaml", &parents)],
    )
}

const OTHER: &str = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
const PRUNES: &str = "  syncPolicy: {automated: {prune: true}}\n";

#[test]
fn move_is_one_finding_with_the_safe_order() {
    let trees = moved(OTHER, "", "");
    let (found, details) = trees.found();
    assert_eq!(found, ["warn diff/moved Service shop/web"]);
    assert!(details.contains("moves from argocd/old to argocd/new"), "{details}");
    let said = trees.diff(&[]).out;
    let (taker, giver) =
        (said.find("argocd app sync argocd/new").unwrap(), said.find("argocd app sync argocd/old --prune").unwrap());
    assert!(taker < giver, "{said}");
}

#[test]
fn dangerous_order_is_named_where_the_giver_prunes_by_itself() {
    let trees = moved(OTHER, &application("old", true, PRUNES), &application("new", true, PRUNES));
    let (found, details) = trees.found();
    assert_eq!(found, ["deny diff/moved Service shop/web"]);
    assert!(
        details.contains("argocd/old prunes by itself, so nothing but chance decides which comes first"),
        "{details}"
    );
    assert!(trees.diff(&[]).out.contains("argocd app set argocd/old --sync-policy none"));
    let trees = moved(OTHER, &application("old", true, ""), &application("new", true, PRUNES));
    let (found, details) = trees.found();
    assert_eq!(found, ["warn diff/moved Service shop/web"]);
    assert!(details.contains("argocd/old prunes only when somebody asks it to"), "{details}");
}

#[test]
fn volume_that_moves_is_grave_in_any_case() {
    let (found, _) = moved(CLAIM, &application("old", true, ""), &application("new", true, "")).found();
    assert_eq!(found, ["deny diff/moved PersistentVolumeClaim shop/data"]);
}

#[test]
fn several_objects_between_the_same_two_are_one_finding() {
    let both = [OTHER, CLAIM].concat();
    let (found, details) = moved(&both, "", "").found();
    assert_eq!(found, ["deny diff/moved PersistentVolumeClaim shop/data"]);
    assert!(
        details.contains(
            "2 objects move from argocd/old to argocd/new: PersistentVolumeClaim shop/data and Service shop/web"
        ),
        "{details}"
    );
}

#[test]
fn objects_of_two_unknown_namespaces_are_no_move() {
    let trees = moved(OTHER, "", "");
    let said = crate::support::run(trees.0.path(), &["diff", "base", "target", "-o", "json"]);
    let (found, _) = crate::support::findings(&said.out);
    assert_eq!(found, ["warn diff/deleted Service namespace-of-old/web"]);
}

#[test]
fn objects_of_two_clusters_are_no_move() {
    let elsewhere = application("new", true, "").replace("https://kubernetes.default.svc", "https://other.example.com");
    let (found, _) = moved(OTHER, &application("old", true, ""), &elsewhere).found();
    assert_eq!(found, ["warn diff/deleted Service shop/web"]);
}
