//! SARIF 2.1.0: rules with their pages, results with a place in a file where there is one and an object always.
//!
//! The types are generated from the schema of the standard, so what they serialize has its shape.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use serde_sarif::sarif::{
    ArtifactLocation, Invocation, Location, LogicalLocation, Message, MultiformatMessageString, PhysicalLocation,
    PropertyBag, Region, ReportingConfiguration, ReportingDescriptor, Result as SarifResult, ResultLevel, Run,
    SCHEMA_URL, Sarif, Tool, ToolComponent, Version,
};

use super::{Report, ReportFinding, Rule};
use crate::decision::Severity;

pub(super) fn write(report: &Report) -> Result<String, serde_json::Error> {
    let driver = ToolComponent::builder()
        .name(report.tool.name.as_ref())
        .semantic_version(report.tool.version.as_ref())
        .rules(report.rules.iter().map(descriptor).collect::<Vec<_>>())
        .build();
    let invocation = Invocation::builder()
        .execution_successful(true)
        .end_time_utc(report.generated_at.to_string())
        .properties(properties([("command", json!(report.tool.command))]))
        .build();
    let run = Run::builder()
        .tool(Tool::builder().driver(driver).build())
        .invocations(vec![invocation])
        .results(report.findings.iter().map(|finding| result(report, finding)).collect::<Vec<_>>())
        .build();
    let sarif = Sarif::builder().schema(SCHEMA_URL).version(json!(Version::V2_1_0)).runs(vec![run]).build();
    serde_json::to_string_pretty(&sarif)
}

fn descriptor(rule: &Rule) -> ReportingDescriptor {
    let summary = MultiformatMessageString::builder().text(rule.summary.as_ref()).build();
    let plain = format!("{}. See {}.", rule.summary, rule.docs);
    let help = match rule.page() {
        Some(page) => MultiformatMessageString::builder().text(plain).markdown(page).build(),
        None => MultiformatMessageString::builder().text(plain).build(),
    };
    ReportingDescriptor::builder()
        .id(rule.id.as_ref())
        .name(camel(&rule.id))
        .short_description(summary)
        .help(help)
        .default_configuration(ReportingConfiguration::builder().level(json!("error")).build())
        .build()
}

/// `shared-claim` as `SharedClaim`: the standard asks for a name that reads like an identifier.
fn camel(id: &str) -> String {
    id.split('-')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters.collect::<Vec<_>>())
        })
        .collect()
}

fn result(report: &Report, finding: &ReportFinding) -> SarifResult {
    let mut text = finding.sentence().to_owned();
    for remedy in &finding.remedies {
        text.push_str("\n- ");
        text.push_str(&remedy.to_string());
    }
    let level = match finding.severity {
        Severity::Deny => ResultLevel::Error,
        Severity::Warn => ResultLevel::Warning,
    };
    let mut extra = vec![("object", json!(finding.object))];
    let mut add = |key: &'static str, value: Option<Value>| extra.extend(value.map(|value| (key, value)));
    add("check", (!finding.check.is_empty()).then(|| json!(finding.check)));
    add("mode", finding.mode.map(|mode| json!(mode)));
    add("effect", finding.effect.map(|effect| json!(effect)));
    add("regarding", finding.regarding.as_ref().map(|other| json!(other)));
    add("claimants", (!finding.claimants.is_empty()).then(|| json!(finding.claimants)));
    // SARIF's own fixes replace text; this one changes an object, whatever its text looks like.
    add("jsonPatch", finding.fix.as_ref().map(|fix| json!(fix)));
    let mut result = SarifResult::builder()
        .rule_id(finding.rule.as_ref())
        .level(level)
        .message(Message::builder().text(text).build())
        .locations(vec![location(finding)])
        .partial_fingerprints(BTreeMap::from([("cascadeGuard/v1".to_owned(), finding.fingerprint())]))
        .properties(properties(extra))
        .build();
    let index = report.rules.iter().position(|rule| rule.id == finding.rule);
    result.rule_index = index.and_then(|index| i64::try_from(index).ok());
    result
}

fn location(finding: &ReportFinding) -> Location {
    let object = &finding.object;
    let logical = LogicalLocation::builder()
        .name(object.name.as_str())
        .fully_qualified_name(format!("{}/{}", object.kind, object.path()))
        .kind("resource")
        .build();
    let mut found = Location::builder().logical_locations(vec![logical]).build();
    if let Some(place) = &finding.location {
        let mut physical = PhysicalLocation::builder()
            .artifact_location(ArtifactLocation::builder().uri(uri(&place.file)).build())
            .build();
        if place.line > 0 {
            let mut region = Region::builder().start_line(i64::from(place.line)).build();
            region.start_column = (place.column > 0).then(|| i64::from(place.column));
            physical.region = Some(region);
        }
        found.physical_location = Some(physical);
    }
    found
}

/// A path as a URI reference. Bytes that mean something in a URI, or cannot stand in one, are escaped.
fn uri(path: &str) -> String {
    use std::fmt::Write;
    let path = path.replace('\\', "/");
    let mut text = String::new();
    for byte in path.trim_start_matches("./").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    if path.starts_with('/') { format!("file://{text}") } else { text }
}

fn properties(values: impl IntoIterator<Item = (&'static str, Value)>) -> PropertyBag {
    let values = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>();
    PropertyBag::builder().additional_properties(values).build()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_sarif::sarif::Sarif;

    use super::{camel, uri};
    use crate::report::{Format, tests::sample};

    fn written() -> Value {
        let text = sample().write(Format::Sarif).unwrap();
        // Unknown and missing properties, and values of another type, do not get past the generated types.
        serde_json::from_str::<Sarif>(&text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn sarif_has_what_the_standard_requires() {
        let log = written();
        assert_eq!(log["version"], "2.1.0");
        assert!(log["$schema"].as_str().unwrap().ends_with("sarif-2.1.0.json"));
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["name"], "cascade-guard");
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        for rule in rules {
            for at in ["/id", "/name", "/shortDescription/text", "/help/text"] {
                assert!(rule.pointer(at).and_then(Value::as_str).is_some_and(|text| !text.is_empty()), "{at}: {rule}");
            }
        }
        for result in run["results"].as_array().unwrap() {
            assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()));
            assert!(["error", "warning", "note", "none"].iter().any(|level| result["level"] == *level));
            if let Some(index) = result["ruleIndex"].as_u64() {
                assert_eq!(rules[usize::try_from(index).unwrap()]["id"], result["ruleId"]);
            }
            assert!(result["partialFingerprints"]["cascadeGuard/v1"].is_string());
        }
    }

    #[test]
    fn place_in_a_file_and_fix_are_kept() {
        let log = written();
        let result = &log["runs"][0]["results"][0];
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "out/job,a.yaml");
        assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&7.into(), &3.into()));
        assert_eq!(result["properties"]["jsonPatch"]["patch"][0]["op"], "remove");
        let without = &log["runs"][0]["results"][1]["locations"][0];
        assert!(without["physicalLocation"].is_null());
        assert_eq!(without["logicalLocations"][0]["fullyQualifiedName"], "Role.rbac.authorization.k8s.io/shop/api");
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("./a b/%c.yaml"), "a%20b/%25c.yaml");
        assert_eq!(uri("/tmp/x.yaml"), "file:///tmp/x.yaml");
        assert_eq!(camel("shared-claim"), "SharedClaim");
    }
}
