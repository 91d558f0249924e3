"""Print every policy's settings as the code has them: name, default, what it may be, and what it says of itself."""

from __future__ import annotations

import ast
import inspect
import textwrap

import policies
from policies import LookupPolicy, Policy, settings_of


def documented(kind: type) -> dict[str, str]:
    """Return what stands under each setting of a class."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(below.value.value).split())
    known = settings_of(kind)
    return {name: meaning for name, meaning in found.items() if name in known}


def show(title: str, kind: type) -> None:
    """Print the settings that a class adds to those of its base."""
    print(title)
    for name, meaning in documented(kind).items():
        setting = settings_of(kind)[name]
        default = "none" if setting.default is None else setting.default
        choice = f"{setting.domain}, or none" if setting.optional else setting.domain
        print(f"  {name} = {default}  ({choice})")
        print(textwrap.fill(meaning, width=96, initial_indent="      ", subsequent_indent="      "))


show("every policy", Policy)
print()
show("every policy that looks up (all but plain)", LookupPolicy)
for policy, its_class in policies.policy_classes().items():
    if documented(its_class):
        print()
        show(policy, its_class)
