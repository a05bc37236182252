//! The parts of a Pod's spec that name other objects, and nothing beside them: a field that no rule reads may hold
//! whatever it likes. The fields are named as in `core/v1`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::object::null_to_default;

/// Declares parts that are read where they are there, and where they are null are not.
macro_rules! parts {
    ($($name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {
        $(
            #[derive(Default, Deserialize)]
            #[serde(rename_all = "camelCase", default)]
            pub(super) struct $name {
                $(#[serde(deserialize_with = "null_to_default")] pub $field: $kind,)*
            }
        )*
    };
}

parts! {
    Named { name: String }
    Optional { name: String, optional: Option<bool> }
    EnvFromSource { secret_ref: Option<Optional>, config_map_ref: Option<Optional> }
    EnvVarSource { secret_key_ref: Option<Optional>, config_map_key_ref: Option<Optional> }
    PodResourceClaim { resource_claim_name: Option<String>, resource_claim_template_name: Option<String> }
    Volume {
        secret: Option<SecretVolume>,
        config_map: Option<Optional>,
        projected: Option<Projected>,
        persistent_volume_claim: Option<ClaimVolume>,
        ephemeral: Option<Ephemeral>,
        csi: Option<Csi>,
        azure_file: Option<AzureFile>,
        cephfs: Option<WithSecret>,
        cinder: Option<WithSecret>,
        flex_volume: Option<WithSecret>,
        iscsi: Option<WithSecret>,
        rbd: Option<WithSecret>,
        scale_io: Option<WithSecret>,
        storageos: Option<WithSecret>,
    }
    SecretVolume { secret_name: Option<String>, optional: Option<bool> }
    Projected { sources: Option<Vec<VolumeProjection>> }
    VolumeProjection {
        secret: Option<Optional>,
        config_map: Option<Optional>,
        cluster_trust_bundle: Option<TrustBundle>,
    }
    TrustBundle { name: Option<String>, optional: Option<bool> }
    ClaimVolume { claim_name: String }
    Ephemeral { volume_claim_template: Option<ClaimTemplate> }
    ClaimTemplate { spec: ClaimSpec }
    ClaimSpec {
        storage_class_name: Option<String>,
        data_source: Option<DataSource>,
        data_source_ref: Option<DataSource>,
    }
    DataSource { kind: String, name: String, namespace: Option<String> }
    Csi {
        driver: String,
        node_publish_secret_ref: Option<Named>,
        volume_attributes: Option<BTreeMap<String, String>>,
    }
    AzureFile { secret_name: String }
    WithSecret { secret_ref: Option<Named> }
}
