"""Window rules in the running Linux kernel: BPF programs, loaded for a block or until unloaded.

The programs are the files `kernel/*.bpf.c`, and the user's own. The kernel selects a rule by its
name: `setsockopt(TCP_CONGESTION)`, or a route's `congctl`.
"""

from bentpipe.kernel_rules.loading import Registration, loaded, pin, pinned, unpin
from bentpipe.kernel_rules.requirements import Requirement, obstacle, requirements
from bentpipe.kernel_rules.rules import RULES, KernelRule, RuleSettings, find_rule

__all__ = [
    "RULES",
    "KernelRule",
    "Registration",
    "Requirement",
    "RuleSettings",
    "find_rule",
    "loaded",
    "obstacle",
    "pin",
    "pinned",
    "requirements",
    "unpin",
]
