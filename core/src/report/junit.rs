//! JUnit XML: a suite a rule, a test case a finding. What would be refused is a failure, a warning is skipped with its
//! message, because JUnit knows nothing in between and a warning should not turn a pipeline red.

use quick_junit::{NonSuccessKind, Property, Report as Xml, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Report, ReportFinding};
use crate::decision::Severity;

pub(super) fn write(report: &Report) -> Result<String, SerializeError> {
    let mut xml = Xml::new(format!("{} {}", report.tool.name, report.tool.command));
    for rule in &report.rules {
        let mut suite = TestSuite::new(rule.id.as_ref());
        suite.add_property(Property::new("generated-at", report.generated_at.to_string()));
        suite.add_property(Property::new("version", report.tool.version.as_ref()));
        suite.add_property(Property::new("summary", rule.summary.as_ref()));
        let mut found = report.findings.iter().filter(|finding| finding.rule == rule.id).peekable();
        if found.peek().is_none() {
            // Some readers take a file without a test case for a broken run.
            let mut case = TestCase::new("nothing found", TestCaseStatus::success());
            case.set_classname(rule.id.as_ref());
            suite.add_test_case(case);
        }
        for finding in found {
            suite.add_test_case(test_case(finding));
        }
        xml.add_test_suite(suite);
    }
    xml.to_string()
}

fn test_case(finding: &ReportFinding) -> TestCase {
    let mut status = match finding.severity {
        Severity::Deny => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Severity::Warn => TestCaseStatus::skipped(),
    };
    status.set_message(finding.summary.as_str());
    if finding.severity == Severity::Deny {
        status.set_type(finding.label());
    }
    let mut lines = vec![finding.sentence().to_owned()];
    lines.extend(finding.location.iter().map(|location| format!("at {location}")));
    if !finding.claimants.is_empty() {
        lines.push(format!("claimed by {}", finding.claimants.join(", ")));
    }
    lines.extend(finding.remedies.iter().map(|remedy| format!("- {remedy}")));
    status.set_description(lines.join("\n"));
    let mut case = TestCase::new(finding.object.to_string(), status);
    case.set_classname(finding.label());
    case
}

#[cfg(test)]
mod tests {
    use quick_junit::{Report as Xml, TestCaseStatus};

    use crate::report::{Format, tests::sample};

    #[test]
    fn refusals_fail_warnings_are_skipped_and_clean_rules_pass() {
        let text = sample().write(Format::Junit).unwrap();
        let xml = Xml::deserialize_from_str(&text).unwrap();
        let suite = |name: &str| xml.test_suites.iter().find(|suite| suite.name.as_str() == name).unwrap();
        assert_eq!((suite("sync-wave").tests, suite("sync-wave").failures), (1, 1));
        assert_eq!((suite("shared-claim").tests, suite("shared-claim").failures), (1, 0));
        assert!(matches!(suite("shared-claim").test_cases[0].status, TestCaseStatus::Skipped { .. }));
        assert!(matches!(suite("namespace-approval").test_cases[0].status, TestCaseStatus::Success { .. }));
        assert_eq!(xml.failures, 1);
        let case = &suite("sync-wave").test_cases[0];
        assert_eq!(case.name.as_str(), "Job shop/migrate");
        assert_eq!(case.classname.as_ref().unwrap().as_str(), "sync-wave/malformed-wave");
        assert!(!text.contains("<not>"), "{text}");
    }
}
