"""The policy: show it, validate another, explain a decision."""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.authority import gather, policy_in_force
from nasd.desk import Desk
from nasd.offline import validate_policy
from nasd.operations.operation import FLAG, NAME, TEXT, Arguments, Operation, gives, path_argument, takes
from nasd.policy_views import view_explanation
from nasd.workspaces import identity_of
from trust.model import Action, Identity, LeaseId
from trust.policy import compile_policy, explain

_ACTIONS = {"enum": [action.value for action in Action]}


def _show(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "show the policy")
    text, source, digest = desk.appliance.trust.adopted_policy()
    return {"text": text, "source": source, "hash": digest}


def _validate(_: Desk, __: Identity, arguments: Arguments) -> Document:
    return validate_policy(arguments["text"], arguments.get("source", "policy.yaml"))


def _explain(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    subject = _subject(desk, identity, arguments)
    appliance = desk.appliance
    policy = compile_policy(arguments["text"], "policy.yaml") if "text" in arguments else policy_in_force(appliance.trust)
    path = path_argument(arguments["path"]) if "path" in arguments else None
    left = dict(appliance.trust.left(subject.lease.id)) if subject.lease else {}
    protected = arguments.get("protected", False)
    return view_explanation(
        explain(policy, gather(subject, Action(arguments["action"]), appliance.now(), path=path, protected=protected, left=left))
    )


def _subject(desk: Desk, identity: Identity, arguments: Arguments) -> Identity:
    """Return whom to explain for: the caller itself, or somebody else when the caller may observe."""
    if not {"principal", "lease", "run"} & set(arguments):
        return identity
    lease = arguments.get("lease") or (desk.run(identity, arguments["run"]).lease if "run" in arguments else "")
    if identity.lease is not None and (not lease or desk.appliance.trust.lease(LeaseId(lease)).run != identity.lease.run):
        raise Fault(Kind.DENIED, "a lease can have only its own rights explained", hint="leave --principal, --lease and --run out")
    if identity.lease is None:
        desk.require(identity, Action.OBSERVE, "explain what somebody else may do")
    return identity_of(desk.appliance, principal=arguments.get("principal", ""), lease=lease)


OPERATIONS = (
    Operation("policy.show", "GET", "/v1/policy", "Show the policy in force", _show, takes(), gives(text=TEXT, source=TEXT, hash=NAME)),
    Operation(
        "policy.validate",
        "POST",
        "/v1/policy/validate",
        "Check a policy document; nothing changes",
        _validate,
        takes({"text": {"type": "string"}}, source=TEXT),
        gives(ok=FLAG, diagnostics={"type": "array"}),
    ),
    Operation(
        "policy.explain",
        "POST",
        "/v1/policy/explain",
        "Explain what the policy says about an action, rule by rule; nothing changes",
        _explain,
        takes({"action": _ACTIONS}, path=TEXT, principal=NAME, lease=NAME, run=NAME, protected=FLAG, text={"type": "string"}),
        gives(effect=NAME, reason=TEXT, rule=TEXT, policy=TEXT, considered={"type": "array"}),
    ),
)
