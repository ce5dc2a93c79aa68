"""The policy: one document, compiled once, asked for every act."""

from trust.policy.compiling import check_policy, compile_policy, empty_policy
from trust.policy.covering import covers
from trust.policy.decide import decide, envelope
from trust.policy.explain import Considered, Explanation, explain
from trust.policy.linting import examine_policy, lint_policy
from trust.policy.patterns import may_match_below, parse_pattern, path_set, uniform_below
from trust.policy.quantities import parse_duration, parse_size
from trust.policy.reading import Diagnostic
from trust.policy.resources import default_policy, policy_schema
from trust.policy.rules import Check, CompiledPolicy, Limits

__all__ = [
    "Check",
    "CompiledPolicy",
    "Considered",
    "Diagnostic",
    "Explanation",
    "Limits",
    "check_policy",
    "compile_policy",
    "covers",
    "decide",
    "default_policy",
    "empty_policy",
    "envelope",
    "examine_policy",
    "explain",
    "lint_policy",
    "may_match_below",
    "parse_duration",
    "parse_pattern",
    "parse_size",
    "path_set",
    "policy_schema",
    "uniform_below",
]
