//! Projects that lift the guard from an Application. Where an override or an exemption of the policy names a project,
//! moving an Application into it takes protection away just as an exempting label does.

#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::{Right, how_to_get_the_right, right_to_approve};
use crate::{
    admission::{Object, Operation, Request, UserInfo},
    catalog::approval_integrity::EXEMPTING_PROJECT,
    decision::{Effect, Finding, Outcome, Severity},
    deletion::{Caller, Inputs},
    facts::Facts,
    object::null_to_default,
    policy::{Mode, RuleKey, Scope, Scopes},
    remedy::{Command, Remedy},
    rules::{Context, Foreseen},
    text::some,
};

/// So many Namespaces are asked about: each takes a SubjectAccessReview, and nobody approves more at once.
const MAX_NAMESPACES: usize = 20;

/// In whose name the delete of the request's object is to be foreseen, if a rule wants to know what it would come to: that
/// of an Application that is moved into another project, where the policy tells projects apart. What Argo CD itself moves it
/// does for whoever wrote the parent, so that its delete is foreseen as somebody else's.
pub fn foresees(request: &Request<'_>, inputs: Inputs<'_>) -> Option<UserInfo> {
    let move_ = Move::of(request)?;
    let counts =
        inputs.policy.tells_projects_apart() && inputs.policy.watches_applications_in(&request.target.namespace);
    let user = if is_argocd(inputs, &request.user.username) { UserInfo::default() } else { request.user.clone() };
    (counts && move_.from != move_.to).then_some(user)
}

/// Whether `user` is an Argo CD that the policy trusts. Anybody can make another one.
fn is_argocd(inputs: Inputs<'_>, user: &str) -> bool {
    Caller::of(inputs, user).is_some_and(|caller| caller.is_trusted())
}

/// An Application and its projects before and after an UPDATE.
struct Move {
    from: String,
    to: String,
}

impl Move {
    fn of(request: &Request<'_>) -> Option<Self> {
        let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return None };
        let judged = request.operation == Operation::Update
            && request.target.is_application()
            && request.sub_resource.is_empty()
            && !old.meta.is_terminating();
        if !judged {
            return None;
        }
        Some(Self { from: project(old)?, to: project(new)? })
    }
}

/// The project an Application belongs to; `None` if nobody can read it.
fn project(application: &Object<'_>) -> Option<String> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        spec: Spec,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Spec {
        #[serde(deserialize_with = "null_to_default")]
        project: String,
    }
    let Body { spec } = application.decode().ok()?;
    Some(if spec.project.is_empty() { "default".to_owned() } else { spec.project })
}

/// Refuses the move where deleting the Application is refused now and would not be in the other project.
pub(super) fn check(cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
    let Some(move_) = Move::of(cx.request) else { return };
    let Some(foreseen) = cx.foreseen else { return unforeseen(cx, &move_, findings) };
    let Some(lifted) = lifted(cx, foreseen, &move_) else { return };
    let by_argocd = is_argocd(cx.inputs(), &cx.request.user.username);
    let why = match lacks_right(cx, facts, foreseen) {
        Lack::Pending | Lack::Nothing => return,
        Lack::Right { namespace, why } => (namespace, why),
    };
    let Move { from, to } = &move_;
    let object = &cx.request.target;
    let refused = &lifted.finding;
    let reason = if refused.detail.is_empty() { &refused.summary } else { &refused.detail };
    let mut finding = Finding::new(
        &EXEMPTING_PROJECT,
        if by_argocd { Severity::Warn } else { Severity::Deny },
        object.clone(),
        "a project that takes an Application out of a rule's reach is given only by someone who may approve the deletion",
    )
    .detail(format!(
        "{object} would go from project {from} into {to}, where its delete is no longer refused by {} ({reason}), and {}",
        refused.check, why.1
    ))
    .claimed_by(refused.claimants.clone())
    .judged_in(refused.scopes.clone())
    .remedy(Remedy::run(
        "see what deleting it takes and who else wants it, and settle that first",
        Command::new("cascade-guard plan application").word(&object.name).namespace(&object.namespace),
    ));
    let [check, grant] = how_to_get_the_right(&why.0);
    finding.remedies.extend([check, grant]);
    finding.key = refused.key;
    findings.push(finding);
}

/// The delete was to be foreseen and was not in time: what it takes is unknown, and so is whether the move lifts a refusal.
fn unforeseen(cx: &Context<'_>, move_: &Move, findings: &mut Vec<Finding>) {
    let (Some(user), object) = (foresees(cx.request, cx.inputs()), &cx.request.target) else { return };
    let severity = if user == cx.request.user { cx.on_unknown() } else { Severity::Warn };
    let mut finding = Finding::new(
        &EXEMPTING_PROJECT,
        severity,
        object.clone(),
        "whether a project lifts the guard from an Application could not be told in time",
    )
    .detail(format!(
        "{object} would go from project {} into {}, and nobody could tell in time whether deleting it is refused now",
        move_.from, move_.to
    ))
    .judged_in(Scope::of(object, Some(&move_.from)).into())
    .remedy("try again when there is less to do");
    finding.key = Some(RuleKey::SharedClaim);
    findings.push(finding);
}

/// A refusal of the delete that the move would lift for somebody: the one who asks, or a user whom the policy names.
fn lifted<'f>(cx: &Context<'_>, foreseen: &'f Foreseen, move_: &Move) -> Option<&'f Outcome> {
    let refused = foreseen.decision.outcomes.iter().find(|outcome| outcome.effect == Effect::Refused)?;
    let mode = |finding: &Finding, scopes: Scopes, user: &str| {
        let elsewhere = finding.clone().judged_in(scopes);
        crate::decision::mode_of(&elsewhere, cx.policy, cx.inventory, user, cx.now)
    };
    let is_refused = |user: &str, scopes: &dyn Fn(&Finding) -> Scopes| {
        foreseen.decision.outcomes.iter().map(|outcome| &outcome.finding).any(|finding| {
            finding.severity == Severity::Deny
                && finding.evidence.is_none()
                && mode(finding, scopes(finding), user) == Mode::Enforce
        })
    };
    let now = |finding: &Finding| finding.scopes.clone();
    let then = |finding: &Finding| finding.scopes.clone().moved(&move_.from, &move_.to);
    let users = std::iter::once(cx.request.user.username.as_str()).chain(cx.policy.named_users());
    let mut users = users.filter(|user| is_refused(user, &now) && !is_refused(user, &then));
    users.next().map(|_| refused)
}

/// What the one who asks lacks to approve the delete.
enum Lack {
    Nothing,
    Pending,
    Right { namespace: String, why: String },
}

/// Asks for the right to approve in every Namespace that the delete touches. Where it touches none, the right to approve
/// anywhere is asked for, which an empty name means.
fn lacks_right(cx: &Context<'_>, facts: &mut Facts, foreseen: &Foreseen) -> Lack {
    let namespaces = &foreseen.namespaces;
    if namespaces.len() > MAX_NAMESPACES {
        let why = format!("it touches {} Namespaces ({})", namespaces.len(), some(namespaces, 3));
        return Lack::Right { namespace: namespaces[0].clone(), why };
    }
    let anywhere = [String::new()];
    let asked = if namespaces.is_empty() { &anywhere[..] } else { namespaces };
    let rights: Vec<(&String, Right)> =
        asked.iter().map(|namespace| (namespace, right_to_approve(cx, facts, namespace))).collect();
    let mut lack = Lack::Nothing;
    for (namespace, right) in rights {
        match right {
            Right::Pending => return Lack::Pending,
            Right::Missing(why) if matches!(lack, Lack::Nothing) => {
                lack = Lack::Right { namespace: namespace.clone(), why };
            }
            Right::Held | Right::Missing(_) => {}
        }
    }
    lack
}
