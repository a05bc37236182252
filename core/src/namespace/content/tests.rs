use super::*;
use crate::{
    argo::{Application, Clusters},
    facts::{Answer, Question},
};

const CLUSTER: &str = include_str!("tests.yaml");

/// Reads `namespace` with lists answered by `answer`, which says `None` where it does not know.
fn surveyed(
    facts: Facts,
    inventory: &Inventory,
    thorough: bool,
    answer: impl Fn(&ListQuestion) -> Reading<Listed>,
) -> Content {
    let mut facts = facts;
    let meta = ObjectMeta {
        name: "shop".to_owned(),
        finalizers: vec!["controller.cattle.io/namespace-auth".to_owned()],
        ..ObjectMeta::default()
    };
    for _ in 0..3 {
        if let Some(content) = survey(inventory, &mut facts, &meta, None, thorough) {
            return content;
        }
        for question in facts.take_pending() {
            let Question::List(list) = &question else { panic!("{question:?}") };
            let reading = answer(list);
            facts.insert(question.clone(), Answer::List(reading));
        }
    }
    panic!("the questions never end");
}

/// The objects of a kind in the cluster of these tests.
fn stored(question: &ListQuestion) -> Reading<Listed> {
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(CLUSTER).unwrap();
    let group =
        |document: &serde_json::Value| crate::object::group_of(document["apiVersion"].as_str().unwrap()).to_owned();
    let items: Vec<Box<RawValue>> = documents
        .iter()
        .filter(|document| question.what.kind().is(&group(document), document["kind"].as_str().unwrap()))
        .map(|document| RawValue::from_string(document.to_string()).unwrap())
        .take(question.limit as usize)
        .collect();
    Reading::Found(Listed::whole(items))
}

fn empty(_: &ListQuestion) -> Reading<Listed> {
    Reading::Found(Listed::whole(Vec::new()))
}

fn inventory() -> Inventory {
    let mut inventory = Inventory::new((1, 2), "argocd", Clusters::new(std::iter::empty::<Vec<&str>>()));
    for document in [
        r#"{"metadata":{"name":"flink","namespace":"argocd"},
            "spec":{"destination":{"namespace":"shop","server":"https://kubernetes.default.svc"}},
            "status":{"reconciledAt":"2026-11-29T11:00:00Z","sync":{"status":"Synced"},"resources":[
                {"group":"flink.apache.org","kind":"FlinkDeployment","namespace":"shop","name":"jobs","status":"Synced"},
                {"group":"keda.sh","kind":"ScaledObject","namespace":"shop","name":"jobs","status":"Synced"},
                {"group":"apps","kind":"Deployment","namespace":"shop","name":"web","status":"Synced"}]}}"#,
        r#"{"metadata":{"name":"child","namespace":"shop","finalizers":["resources-finalizer.argocd.argoproj.io"]},
            "spec":{"destination":{"namespace":"elsewhere","server":"https://kubernetes.default.svc"}}}"#,
    ] {
        inventory.apply_application(&serde_json::from_str::<Application<'_>>(document).unwrap());
    }
    inventory
}

fn nobody() -> Inventory {
    Inventory::new((1, 2), "argocd", Clusters::new(std::iter::empty::<Vec<&str>>()))
}

#[test]
fn what_runs_and_what_would_hang_is_counted_and_named() {
    let content = surveyed(Facts::new(), &inventory(), true, stored);
    assert_eq!(
        content.notes("shop"),
        [
            "In shop: 3 claimed objects of argocd/flink",
            "In shop: 1 bound PersistentVolumeClaim (data), 1 LoadBalancer (web), 2 running Pods, 2 Ingresses",
            "May hang: Job shop/migrate waits for Argo CD (argocd.argoproj.io/hook-finalizer)",
            "May hang: Namespace shop waits for Rancher (controller.cattle.io/namespace-auth)",
            "May hang: FlinkDeployment shop/jobs waits for the Flink Kubernetes operator (flinkdeployments.flink.apache.org/finalizer)",
            "May hang: Ingress shop/api and 1 more wait for the AWS Load Balancer Controller (ingress.k8s.aws/resources)",
            "May hang: Application shop/child waits for Argo CD (resources-finalizer.argocd.argoproj.io)",
            "May hang: Service shop/web waits for the cloud controller manager (service.kubernetes.io/load-balancer-cleanup)",
            "Would hang: API v1beta1.metrics.k8s.io is not available",
        ]
    );
    assert_eq!(content.held.iter().filter(|held| !held.hangs()).count(), 1, "pvc-protection is no obstacle");
    assert_eq!(
        content.taken_along("shop").unwrap(),
        "Namespace shop takes along 1 bound PersistentVolumeClaim (data), 1 LoadBalancer (web), …"
    );
}

#[test]
fn empty_namespace_has_nothing_to_say() {
    let mut facts = Facts::new();
    let meta = ObjectMeta { name: "shop".to_owned(), ..ObjectMeta::default() };
    assert!(survey(&nobody(), &mut facts, &meta, None, false).is_none());
    for question in facts.take_pending() {
        let Question::List(list) = &question else { panic!("{question:?}") };
        let reading = empty(list);
        facts.insert(question.clone(), Answer::List(reading));
    }
    let content = survey(&nobody(), &mut facts, &meta, None, false).unwrap();
    assert_eq!(content.notes("shop"), [""; 0]);
    assert_eq!((content.obstacles().len(), content.taken_along("shop"), content.unread()), (0, None, None));
}

#[test]
fn what_is_not_read_is_named_and_not_taken_for_empty() {
    let content = surveyed(Facts::new(), &nobody(), false, |question| match question.what.kind().kind.as_str() {
        "Service" | "Job" => Reading::Forbidden("the guard may not list them".to_owned()),
        "Ingress" => Reading::Found(Listed::whole(vec![RawValue::from_string("7".to_owned()).unwrap()])),
        _ => empty(question),
    });
    assert_eq!(content.load_balancers, None);
    assert_eq!(content.running_pods, Some(Count::default()));
    assert_eq!(content.unread().unwrap(), "Services, Ingresses, Jobs (the guard may not list them)");
}

#[test]
fn review_looks_at_seven_kinds_and_says_which_it_left_out() {
    let mut facts = Facts::new();
    let meta = ObjectMeta { name: "shop".to_owned(), ..ObjectMeta::default() };
    assert!(survey(&inventory(), &mut facts, &meta, None, false).is_none());
    assert_eq!(facts.take_pending().len(), 7);
    let content = surveyed(Facts::new(), &inventory(), false, stored);
    assert_eq!(content.not_read.len(), 1);
    assert_eq!(content.not_read[0].what, "ScaledObject.keda.sh");
}

#[test]
fn lists_that_inform_leave_half_of_the_reads_to_decisions() {
    let content = surveyed(Facts::with_limit(8), &nobody(), false, stored);
    assert_eq!(content.running_pods.map(|count| count.number), Some(2));
    assert_eq!(content.unread().unwrap(), "Jobs, APIServices (more than 4 objects would have to be read)");
}

#[test]
fn namespace_that_hangs_says_so_itself() {
    let raw = RawValue::from_string(
        r#"{"metadata":{"name":"shop"},"spec":{"finalizers":["kubernetes","example.com/mine"]},"status":{"conditions":[
            {"type":"NamespaceContentRemaining","status":"True","message":"ingresses.networking.k8s.io has 1 resource instances"},
            {"type":"NamespaceDeletionDiscoveryFailure","status":"False","message":"all resources successfully discovered"}]}}"#
            .to_owned(),
    )
    .unwrap();
    let mut content = Content::default();
    add_namespace(&ObjectMeta { name: "shop".to_owned(), ..ObjectMeta::default() }, Some(&raw), &mut content);
    assert_eq!(content.conditions, ["NamespaceContentRemaining: ingresses.networking.k8s.io has 1 resource instances"]);
    assert_eq!(content.obstacles(), ["Namespace shop waits for its controller (example.com/mine)"]);
}

#[test]
fn page_of_the_rule_names_every_known_finalizer() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rules/namespace-approval.md")).unwrap();
    for known in crate::namespace::finalizers::KNOWN {
        let pattern = known.pattern.written();
        let row = page.lines().find(|line| line.contains(&format!("`{pattern}`")));
        let row = row.unwrap_or_else(|| panic!("the page does not name {pattern}"));
        assert!(row.contains(known.removed_by), "the page names another controller for {pattern}: {row}");
    }
}
