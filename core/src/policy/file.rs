//! A GuardPolicy as text: the whole object as YAML or JSON, or its spec alone as the cluster delivers it.

use serde::Deserialize;

use super::{GuardPolicySpec, Policy, PolicyError};

const API_VERSION: &str = "cascade-guard.io/v1alpha1";
const KIND: &str = "GuardPolicy";

/// Why a text is no usable policy.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It does not have the format; says where and what is allowed.
    #[error("{0}")]
    Format(String),
    /// It is another kind of object.
    #[error("it is a {api_version} {kind}, not a cascade-guard.io/v1alpha1 GuardPolicy")]
    OtherKind {
        /// Its API version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// A value is wrong.
    #[error(transparent)]
    Value(#[from] PolicyError),
}

impl Policy {
    /// Reads a GuardPolicy, YAML or JSON.
    ///
    /// # Errors
    /// With line, column and what is allowed where the text does not fit the format; with the field where a value is
    /// wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            api_version: String,
            kind: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct File {
            #[serde(rename = "apiVersion")]
            _api_version: String,
            #[serde(rename = "kind")]
            _kind: String,
            #[serde(default)]
            #[allow(dead_code, reason = "named so that it is allowed; nothing in it matters")]
            metadata: serde::de::IgnoredAny,
            #[serde(default)]
            spec: GuardPolicySpec,
            #[serde(default)]
            #[allow(dead_code, reason = "a policy copied from a cluster carries one")]
            status: serde::de::IgnoredAny,
        }
        // One line, for a log and for a terminal alike.
        let options = serde_saphyr::options! { with_snippet: false };
        // The fields of another kind would only be called unknown.
        if let Ok(Head { api_version, kind }) = serde_saphyr::from_str_with_options(text, options.clone())
            && (api_version != API_VERSION || kind != KIND)
        {
            return Err(ParseError::OtherKind { api_version, kind });
        }
        let file: File = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| ParseError::Format(error.to_string()))?;
        Ok(Self::new(file.spec)?)
    }

    /// Reads the GuardPolicy object `json` as an API server stores it.
    ///
    /// # Errors
    /// Where the object does not fit the format or a value is wrong.
    pub fn from_object(json: &str) -> Result<Self, ParseError> {
        #[derive(Deserialize)]
        struct Object {
            #[serde(default)]
            spec: GuardPolicySpec,
        }
        // Nobody sees this text, so a line and a column in it would help nobody; the path of the field does.
        let object: Object = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(json))
            .map_err(|error| ParseError::Format(at_path(&error)))?;
        Ok(Self::new(object.spec)?)
    }
}

fn at_path(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let text = error.inner().to_string();
    let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
    format!("{}: {problem}", error.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Mode, RuleKey};

    #[test]
    fn file_and_object_mean_the_same() {
        let file = Policy::parse(
            "apiVersion: cascade-guard.io/v1alpha1\nkind: GuardPolicy\nspec: {rules: {syncWave: {mode: warn}}}",
        );
        let object = Policy::from_object(
            r#"{"apiVersion":"cascade-guard.io/v1alpha1","kind":"GuardPolicy","metadata":{"name":"default"},
                "spec":{"rules":{"syncWave":{"mode":"warn"}}},"status":{"observedGeneration":1}}"#,
        );
        for policy in [file.unwrap(), object.unwrap()] {
            assert_eq!(policy.base_mode(RuleKey::SyncWave), Mode::Warn);
        }
    }

    #[test]
    fn unknown_key_is_refused_with_its_place() {
        let error = Policy::parse(
            "apiVersion: cascade-guard.io/v1alpha1\nkind: GuardPolicy\nspec:\n  rules:\n    sharedClam: {mode: warn}\n",
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("sharedClam") && error.contains("sharedClaim") && error.contains('5'), "{error}");
        assert!(Policy::from_object(r#"{"spec":{"rulez":{}}}"#).is_err());
    }

    #[test]
    fn other_kinds_are_refused() {
        let error = Policy::parse("apiVersion: v1\nkind: ConfigMap\n").unwrap_err().to_string();
        assert!(error.contains("v1 ConfigMap"), "{error}");
        let error =
            Policy::parse("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}\n").unwrap_err().to_string();
        assert!(error.contains("apps/v1 Deployment"), "{error}");
    }
}
