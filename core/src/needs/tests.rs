use super::*;

/// What the object with this `kind` and JSON body needs, as `Kind name force` lines; `?` marks what may be missing.
fn needs(group: &str, kind: &str, body: &str) -> Vec<String> {
    let raw = RawValue::from_string(body.to_owned()).unwrap();
    let work = read(&GroupKind::new(group, kind), "ns", &raw).unwrap();
    work.needs
        .iter()
        .map(|need| {
            let force = match need.force {
                Force::Creation => "creation",
                Force::Start => "start",
                Force::Bearable(_) => "bearable",
            };
            let mark = if need.optional { "?" } else { "" };
            format!("{} {} {force}{mark}", need.object.kind.kind, need.object.path())
        })
        .collect()
}

fn pod(spec: &str) -> Vec<String> {
    needs("", "Pod", &format!(r#"{{"spec":{spec}}}"#))
}

#[test]
fn every_reference_of_a_pod_is_found() {
    for (spec, wanted) in [
        (r#"{"serviceAccountName":"a"}"#, "ServiceAccount ns/a creation"),
        (r#"{"serviceAccount":"a"}"#, "ServiceAccount ns/a creation"),
        (r#"{"priorityClassName":"a"}"#, "PriorityClass a creation"),
        (r#"{"runtimeClassName":"a"}"#, "RuntimeClass a creation"),
        (r#"{"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"a"}}]}]}"#, "Secret ns/a start"),
        (r#"{"containers":[{"envFrom":[{"configMapRef":{"name":"a"}}]}]}"#, "ConfigMap ns/a start"),
        (
            r#"{"containers":[{"envFrom":[{"prefix":"X","configMapRef":{"name":"a","optional":true}}]}]}"#,
            "ConfigMap ns/a start?",
        ),
        (
            r#"{"containers":[{"env":[{"name":"E","value":"1"},{"name":"X","valueFrom":{"secretKeyRef":{"name":"a","key":"k"}}}]}]}"#,
            "Secret ns/a start",
        ),
        (
            r#"{"containers":[{"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"a","key":"k","optional":true}}}]}]}"#,
            "ConfigMap ns/a start?",
        ),
        (r#"{"initContainers":[{"envFrom":[{"secretRef":{"name":"a"}}]}]}"#, "Secret ns/a start"),
        (r#"{"ephemeralContainers":[{"envFrom":[{"secretRef":{"name":"a"}}]}]}"#, "Secret ns/a start"),
        (r#"{"volumes":[{"name":"v","secret":{"secretName":"a"}}]}"#, "Secret ns/a start"),
        (r#"{"volumes":[{"name":"v","secret":{"secretName":"a","optional":true}}]}"#, "Secret ns/a start?"),
        (r#"{"volumes":[{"name":"v","configMap":{"name":"a"}}]}"#, "ConfigMap ns/a start"),
        (r#"{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"a"}}]}"#, "PersistentVolumeClaim ns/a start"),
        (r#"{"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"a"}}]}}]}"#, "Secret ns/a start"),
        (
            r#"{"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"a","optional":true}}]}}]}"#,
            "ConfigMap ns/a start?",
        ),
        (
            r#"{"volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"name":"a","path":"p"}}]}}]}"#,
            "ClusterTrustBundle a start",
        ),
        (r#"{"volumes":[{"name":"v","csi":{"driver":"d","nodePublishSecretRef":{"name":"a"}}}]}"#, "Secret ns/a start"),
        (
            r#"{"volumes":[{"name":"v","csi":{"driver":"secrets-store.csi.k8s.io","volumeAttributes":{"secretProviderClass":"a"}}}]}"#,
            "SecretProviderClass ns/a start",
        ),
        (
            r#"{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"storageClassName":"a"}}}}]}"#,
            "StorageClass a start",
        ),
        (
            r#"{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"a"}}}}}]}"#,
            "VolumeSnapshot ns/a start",
        ),
        (r#"{"volumes":[{"name":"v","azureFile":{"secretName":"a","shareName":"s"}}]}"#, "Secret ns/a start"),
        (
            r#"{"volumes":[{"name":"v","rbd":{"image":"i","monitors":[],"secretRef":{"name":"a"}}}]}"#,
            "Secret ns/a start",
        ),
        (r#"{"resourceClaims":[{"name":"c","resourceClaimName":"a"}]}"#, "ResourceClaim ns/a start"),
        (r#"{"resourceClaims":[{"name":"c","resourceClaimTemplateName":"a"}]}"#, "ResourceClaimTemplate ns/a start"),
        (r#"{"imagePullSecrets":[{"name":"a"}]}"#, "Secret ns/a bearable"),
    ] {
        assert_eq!(pod(spec), [wanted], "{spec}");
    }
}

#[test]
fn what_is_always_there_is_no_need() {
    for spec in [
        r#"{"serviceAccountName":"default"}"#,
        r#"{"priorityClassName":"system-node-critical"}"#,
        r#"{"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}},{"configMap":{"name":"kube-root-ca.crt"}}]}}]}"#,
        r#"{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","hostPath":{"path":"/x"}}]}"#,
        r#"{"containers":null,"volumes":null,"imagePullSecrets":null}"#,
        r#"{"containers":[{"env":[{"name":"X","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"envFrom":null}]}"#,
    ] {
        assert!(pod(spec).is_empty(), "{spec}");
    }
}

#[test]
fn required_reference_outweighs_an_optional_one() {
    let spec = r#"{"containers":[{"envFrom":[{"secretRef":{"name":"a","optional":true}}]}],
        "imagePullSecrets":[{"name":"a"}],"volumes":[{"name":"v","secret":{"secretName":"a"}}]}"#;
    assert_eq!(pod(spec), ["Secret ns/a start"]);
}

#[test]
fn every_kind_with_pods_is_read() {
    let template = r#""template":{"spec":{"serviceAccountName":"a"}}"#;
    for (group, kind, body) in [
        ("batch", "Job", format!(r#"{{"spec":{{{template}}}}}"#)),
        ("apps", "Deployment", format!(r#"{{"spec":{{{template}}}}}"#)),
        ("apps", "StatefulSet", format!(r#"{{"spec":{{{template},"replicas":2}}}}"#)),
        ("apps", "DaemonSet", format!(r#"{{"spec":{{{template}}}}}"#)),
        ("apps", "ReplicaSet", format!(r#"{{"spec":{{{template}}}}}"#)),
        ("argoproj.io", "Rollout", format!(r#"{{"spec":{{{template}}}}}"#)),
        ("", "ReplicationController", format!(r#"{{"spec":{{{template}}}}}"#)),
    ] {
        assert_eq!(needs(group, kind, &body), ["ServiceAccount ns/a creation"], "{kind}");
    }
}

#[test]
fn pods_of_a_cron_job_come_after_the_sync() {
    let body = r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"serviceAccountName":"a"}}}}}}"#;
    assert_eq!(needs("batch", "CronJob", body), ["ServiceAccount ns/a bearable"]);
}

#[test]
fn workload_without_replicas_needs_nothing() {
    let body = r#"{"spec":{"replicas":0,"template":{"spec":{"serviceAccountName":"a"}}}}"#;
    assert!(needs("apps", "Deployment", body).is_empty());
}

#[test]
fn claims_of_a_stateful_set_need_their_class() {
    let body = r#"{"spec":{"template":{"spec":{}},"volumeClaimTemplates":[{"spec":{"storageClassName":"fast"}}]}}"#;
    assert_eq!(needs("apps", "StatefulSet", body), ["StorageClass fast start"]);
}

#[test]
fn kinds_without_pods_need_nothing() {
    assert!(needs("", "ConfigMap", r#"{"data":{"spec":"x"}}"#).is_empty());
    assert!(needs("example.com", "Job", r#"{"spec":{"template":7}}"#).is_empty());
}

#[test]
fn binding_refers_to_its_role_and_its_accounts() {
    let body = r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},
        "subjects":[{"kind":"ServiceAccount","name":"a"},{"kind":"ServiceAccount","name":"b","namespace":"other"},
        {"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"}]}"#;
    assert_eq!(
        needs("rbac.authorization.k8s.io", "RoleBinding", body),
        ["Role ns/r bearable", "ServiceAccount ns/a bearable", "ServiceAccount other/b bearable"]
    );
    let body = r#"{"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":null}"#;
    assert_eq!(needs("rbac.authorization.k8s.io", "ClusterRoleBinding", body), ["ClusterRole r bearable"]);
}

#[test]
fn workflow_needs_what_its_unconditional_steps_need() {
    let body = r#"{"spec":{"entrypoint":"main","serviceAccountName":"runner","workflowTemplateRef":{"name":"shared"},
        "templates":[
          {"name":"main","steps":[[{"name":"a","template":"always"}],[{"name":"b","template":"maybe","when":"x == y"}]]},
          {"name":"always","container":{"image":"i","envFrom":[{"secretRef":{"name":"db"}}]}},
          {"name":"maybe","script":{"image":"i","envFrom":[{"secretRef":{"name":"extra"}}]}},
          {"name":"graph","dag":{"tasks":[{"name":"t","template":"always"}]}}]}}"#;
    assert_eq!(
        needs("argoproj.io", "Workflow", body),
        [
            "Secret ns/extra bearable",
            "Secret ns/db start",
            "ServiceAccount ns/runner creation",
            "WorkflowTemplate ns/shared creation",
        ]
    );
    let dag = r#"{"spec":{"entrypoint":"main","templates":[
          {"name":"main","dag":{"tasks":[{"name":"a","template":"x"},{"name":"b","template":"y","depends":"a.Failed"}]}},
          {"name":"x","container":{"envFrom":[{"configMapRef":{"name":"x"}}]}},
          {"name":"y","container":{"envFrom":[{"configMapRef":{"name":"y"}}]}}]}}"#;
    assert_eq!(needs("argoproj.io", "Workflow", dag), ["ConfigMap ns/y bearable", "ConfigMap ns/x start"]);
}

#[test]
fn job_says_how_it_ends() {
    let job = |spec: &str| {
        let raw = RawValue::from_string(format!(r#"{{"spec":{spec}}}"#)).unwrap();
        read(&GroupKind::new("batch", "Job"), "ns", &raw).unwrap().job.unwrap()
    };
    let open = job(r#"{"template":{"spec":{"restartPolicy":"OnFailure"}}}"#);
    assert!(!open.deadline && open.restarts_uncounted);
    let bound =
        job(r#"{"activeDeadlineSeconds":60,"backoffLimit":0,"template":{"spec":{"restartPolicy":"OnFailure"}}}"#);
    assert!(bound.deadline && !bound.restarts_uncounted);
}

#[test]
fn object_of_another_shape_is_an_error_not_a_guess() {
    let raw = RawValue::from_string(r#"{"spec":{"template":7}}"#.to_owned()).unwrap();
    assert!(read(&GroupKind::new("batch", "Job"), "ns", &raw).is_err());
}

#[test]
fn fields_that_no_rule_reads_may_hold_whatever_they_like() {
    for (spec, wanted) in [
        (r#"{"volumes":[{"configMap":{"name":"a","defaultMode":"rwx","items":7}}]}"#, "ConfigMap ns/a start"),
        (r#"{"volumes":[{"name":5,"secret":{"secretName":"a","defaultMode":493.5}}]}"#, "Secret ns/a start"),
        (
            r#"{"volumes":[{"projected":{"defaultMode":"x","sources":[{"secret":{"name":"a","items":{}}}]}}]}"#,
            "Secret ns/a start",
        ),
        (r#"{"volumes":[{"emptyDir":{"sizeLimit":[]}},{"secret":{"secretName":"a"}}]}"#, "Secret ns/a start"),
        (
            r#"{"containers":[{"env":[{"name":true,"value":1}],"envFrom":[{"prefix":3,"secretRef":{"name":"a"}}]}]}"#,
            "Secret ns/a start",
        ),
        (
            r#"{"containers":[{"ports":"x","resources":7,"env":[{"valueFrom":{"secretKeyRef":{"name":"a","key":1}}}]}]}"#,
            "Secret ns/a start",
        ),
        (
            r#"{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":"x","storageClassName":"a"}}}}]}"#,
            "StorageClass a start",
        ),
    ] {
        assert_eq!(pod(spec), [wanted], "{spec}");
    }
    let job = r#"{"spec":{"activeDeadlineSeconds":"soon","backoffLimit":"x","template":{"spec":{"serviceAccountName":"a"}}}}"#;
    assert_eq!(needs("batch", "Job", job), ["ServiceAccount ns/a creation"]);
    let deployment = r#"{"spec":{"replicas":"0","template":{"spec":{"serviceAccountName":"a"}}}}"#;
    assert_eq!(needs("apps", "Deployment", deployment), ["ServiceAccount ns/a creation"]);
}
