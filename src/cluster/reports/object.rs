//! What was found as report objects: one a Namespace and one for the cluster. Pure, and without a time in it, so that every
//! replica writes the same and the API server stores nothing where nothing changed.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use cascade_guard_core::{
    decision::Severity,
    object::{GroupKind, ObjectRef},
    report::ReportFinding,
    text::clip,
};

/// Name of each report.
pub const NAME: &str = "cascade-guard";
/// Label by which the guard knows its own reports.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "cascade-guard");
/// Says how many results did not fit.
const LEFT_OUT: &str = "cascade-guard.io/results-left-out";
/// So many results a report.
const MAX_RESULTS: usize = 500;
/// A longer message is cut.
const MAX_MESSAGE: usize = 1000;
/// A longer property is cut.
const MAX_PROPERTY: usize = 300;

/// The two forms in which clusters keep reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `openreports.io/v1alpha1`.
    OpenReports,
    /// `wgpolicyk8s.io/v1alpha2`, which it grew out of.
    PolicyReports,
}

impl Form {
    /// In the order in which they are preferred.
    pub const ALL: [Self; 2] = [Self::OpenReports, Self::PolicyReports];

    /// API group and version.
    pub fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenReports => ("openreports.io", "v1alpha1"),
            Self::PolicyReports => ("wgpolicyk8s.io", "v1alpha2"),
        }
    }

    /// Kind and plural of the report of a Namespace, or of the cluster.
    pub fn kind(self, namespaced: bool) -> (&'static str, &'static str) {
        match (self, namespaced) {
            (Self::OpenReports, true) => ("Report", "reports"),
            (Self::OpenReports, false) => ("ClusterReport", "clusterreports"),
            (Self::PolicyReports, true) => ("PolicyReport", "policyreports"),
            (Self::PolicyReports, false) => ("ClusterPolicyReport", "clusterpolicyreports"),
        }
    }
}

/// A report. The two forms differ in nothing that is used here, but for the place where its author stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportObject {
    api_version: String,
    kind: &'static str,
    metadata: Meta,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Reference>,
    summary: Summary,
    results: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Meta {
    name: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    labels: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Summary {
    pass: usize,
    fail: usize,
    warn: usize,
    error: usize,
    skip: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Entry {
    source: &'static str,
    policy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    rule: String,
    category: &'static str,
    severity: &'static str,
    result: &'static str,
    scored: bool,
    resources: Vec<Reference>,
    message: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<&'static str, String>,
}

impl ReportObject {
    /// The Namespace it is about; empty for the cluster's.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// How many results it holds.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }
}

/// The reports of `findings`, which come worst first. A finding goes into the report of the Namespace its object lives in
/// where `takes` says that Namespace can hold one, and else into the cluster's. `versions` tells the API version of a kind.
pub fn reports(
    form: Form,
    findings: &[ReportFinding],
    takes: impl Fn(&str) -> bool,
    versions: impl Fn(&GroupKind) -> Option<String>,
) -> Vec<ReportObject> {
    let mut places: BTreeMap<&str, Vec<&ReportFinding>> = BTreeMap::new();
    for finding in findings {
        let namespace = finding.object.namespace.as_str();
        let place = if !namespace.is_empty() && takes(namespace) { namespace } else { "" };
        places.entry(place).or_default().push(finding);
    }
    let mut known: HashMap<GroupKind, String> = HashMap::new();
    let mut reference = |object: &ObjectRef| {
        let version = known.entry(object.kind.clone()).or_insert_with(|| versions(&object.kind).unwrap_or_default());
        Reference {
            api_version: match (object.kind.group.as_str(), version.as_str()) {
                (_, "") => String::new(),
                ("", version) => version.to_owned(),
                (group, version) => format!("{group}/{version}"),
            },
            kind: object.kind.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        }
    };
    let mut reports = Vec::with_capacity(places.len());
    for (namespace, mut found) in places {
        // Two replicas may have come by the same findings in another order.
        found.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.fingerprint().cmp(&b.fingerprint())));
        let left_out = found.len().saturating_sub(MAX_RESULTS);
        let count = |severity| found.iter().filter(|finding| finding.severity == severity).count();
        let summary = Summary { fail: count(Severity::Deny), warn: count(Severity::Warn), ..Summary::default() };
        let annotations = if left_out > 0 { [(LEFT_OUT, left_out.to_string())].into() } else { BTreeMap::new() };
        let scope = (!namespace.is_empty()).then(|| reference(&ObjectRef::namespace(namespace)));
        let (group, version) = form.group_version();
        reports.push(ReportObject {
            api_version: format!("{group}/{version}"),
            kind: form.kind(!namespace.is_empty()).0,
            metadata: Meta { name: NAME, namespace: namespace.to_owned(), labels: [LABEL].into(), annotations },
            source: (form == Form::OpenReports).then_some(NAME),
            scope,
            summary,
            results: found
                .into_iter()
                .take(MAX_RESULTS)
                .map(|finding| entry(finding, reference(&finding.object)))
                .collect(),
        });
    }
    reports
}

fn entry(finding: &ReportFinding, reference: Reference) -> Entry {
    let mut properties = BTreeMap::new();
    let mut put = |key, value: &str| {
        if !value.is_empty() {
            properties.insert(key, clip(value, MAX_PROPERTY));
        }
    };
    put("mode", finding.mode.map_or("", |mode| mode.as_str()));
    put("claimed-by", &finding.claimants.join(","));
    put("way-out", &finding.remedies.first().map(ToString::to_string).unwrap_or_default());
    let (result, severity) = match finding.severity {
        Severity::Deny => ("fail", "high"),
        Severity::Warn => ("warn", "medium"),
    };
    Entry {
        source: NAME,
        policy: finding.rule.to_string(),
        rule: finding.check.to_string(),
        category: "Deletion safety",
        severity,
        result,
        scored: finding.severity == Severity::Deny,
        resources: vec![reference],
        message: clip(finding.sentence(), MAX_MESSAGE),
        properties,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(namespace: &str, name: &str, severity: Severity) -> ReportFinding {
        serde_json::from_value(serde_json::json!({
            "rule": "shared-claim", "check": "overlap",
            "severity": severity, "object": ObjectRef::new("apps", "Deployment", namespace, name),
            "summary": "claimed twice", "claimants": ["argocd/a", "argocd/b"], "remedies": ["take it out of one"],
        }))
        .unwrap()
    }

    fn made(findings: &[ReportFinding]) -> Vec<ReportObject> {
        let version = |kind: &GroupKind| (kind.group == "apps").then(|| "v1".to_owned());
        reports(Form::OpenReports, findings, |namespace| namespace != "going", version)
    }

    #[test]
    fn one_report_a_namespace_and_one_for_the_cluster() {
        let findings = [
            finding("shop", "a", Severity::Warn),
            finding("going", "b", Severity::Warn),
            finding("", "c", Severity::Deny),
            finding("shop", "d", Severity::Deny),
        ];
        let made = made(&findings);
        let places: Vec<_> = made.iter().map(|report| (report.kind, report.namespace(), report.len())).collect();
        assert_eq!(places, [("ClusterReport", "", 2), ("Report", "shop", 2)]);
        let json = serde_json::to_value(&made[1]).unwrap();
        assert_eq!(json["summary"], serde_json::json!({"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0}));
        assert_eq!(json["results"][0]["resources"][0]["name"], "d", "the worst first");
        assert_eq!(json["results"][0]["resources"][0]["apiVersion"], "apps/v1");
        assert_eq!(json["results"][1]["properties"]["claimed-by"], "argocd/a,argocd/b");
    }

    #[test]
    fn nothing_found_is_no_report() {
        assert!(made(&[]).is_empty());
    }

    #[test]
    fn report_is_bounded_and_says_so() {
        let many: Vec<_> = (0..501).map(|n| finding("shop", &format!("n{n}"), Severity::Deny)).collect();
        let report = &made(&many)[0];
        assert_eq!((report.len(), report.summary.fail), (500, 501));
        assert_eq!(report.metadata.annotations[LEFT_OUT], "1");
    }

    #[test]
    fn order_of_findings_does_not_matter() {
        let findings = [finding("shop", "a", Severity::Warn), finding("shop", "b", Severity::Warn)];
        let turned = [findings[1].clone(), findings[0].clone()];
        assert_eq!(made(&findings), made(&turned));
    }
}
