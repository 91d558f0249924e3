"""The `serving` section of a profile's file, read and laid out."""

from __future__ import annotations

from typing import Any

from calibration import fields
from calibration.errors import ProfileError
from calibration.fields import integer, number, optional, several, text
from calibration.prefill import Prefill, PrefillTable
from calibration.serving import AssumedVerify, ServedForward, Serving, StorageTable
from calibration.strict_yaml import Tree


def serving(tree: Tree, where: str) -> Serving:
    """Read the section.

    Raises:
        ProfileError: it is malformed.
    """
    found = fields.mapping(tree, where, [], ["dense", "paged"])
    tables = {name: _storage(found[name], f"{where}.{name}") for name in found}
    return Serving(**tables)


def prefill(tree: Tree, where: str) -> Prefill | PrefillTable:
    """Read what reading a prompt costs.

    Raises:
        ProfileError: it is malformed.
    """
    if isinstance(tree, dict) and ("tokens" in tree or "seconds" in tree):
        found = fields.mapping(tree, where, ["tokens", "seconds", "source"])
        return PrefillTable(
            tokens=several(integer)(found["tokens"], f"{where}.tokens"),
            seconds=several(number)(found["seconds"], f"{where}.seconds"),
            source=text(found["source"], f"{where}.source"),
        )
    found = fields.mapping(tree, where, ["fixed_s", "per_token_s", "source"])
    return Prefill(
        fixed_s=number(found["fixed_s"], f"{where}.fixed_s"),
        per_token_s=number(found["per_token_s"], f"{where}.per_token_s"),
        source=text(found["source"], f"{where}.source"),
    )


def used_for(tree: Tree, where: str) -> tuple[int, int]:
    """Read the first and the last context that figures stand for.

    Raises:
        ProfileError: not two of them.
    """
    ends = several(integer)(tree, where)
    if len(ends) != 2:
        raise ProfileError(f"{where}: must be the first and the last context (got {len(ends)} entries)")
    return ends[0], ends[1]


def document(section: Serving) -> dict[str, Any]:
    """Return the section as `yaml_text.dump` takes it, in the order of the file."""
    tables = {"dense": section.dense, "paged": section.paged}
    return {name: _storage_document(table) for name, table in tables.items() if table is not None}


def prefill_document(part: Prefill | PrefillTable) -> dict[str, Any]:
    """Return a prefill as `yaml_text.dump` takes it."""
    if isinstance(part, PrefillTable):
        return {"tokens": list(part.tokens), "seconds": list(part.seconds), "source": part.source}
    return {"fixed_s": part.fixed_s, "per_token_s": part.per_token_s, "source": part.source}


def _storage(tree: Tree, where: str) -> StorageTable:
    found = fields.mapping(tree, where, ["steps"], ["verify", "prefill"])
    verify: tuple[ServedForward, ...] | AssumedVerify = ()
    if isinstance(found.get("verify"), dict):
        assumed = fields.mapping(found["verify"], f"{where}.verify", ["factor", "assumed"])
        factor = number(assumed["factor"], f"{where}.verify.factor")
        verify = AssumedVerify(factor, text(assumed["assumed"], f"{where}.verify.assumed"))
    elif "verify" in found:
        verify = _forwards(found["verify"], f"{where}.verify", "width", "sync_s")
    return StorageTable(
        steps=_forwards(found["steps"], f"{where}.steps", "rows", "step_s"),
        verify=verify,
        prefill=optional(prefill, found, f"{where}.", "prefill"),
    )


def _forwards(tree: Tree, where: str, size: str, seconds: str) -> tuple[ServedForward, ...]:
    def read(item: Tree, at: str) -> ServedForward:
        found = fields.mapping(item, at, [size, "contexts", "used_for", seconds], ["source", "assumed"])
        return ServedForward(
            size=integer(found[size], f"{at}.{size}"),
            contexts=several(integer)(found["contexts"], f"{at}.contexts"),
            used_for=used_for(found["used_for"], f"{at}.used_for"),
            seconds=several(number)(found[seconds], f"{at}.{seconds}"),
            source=optional(text, found, f"{at}.", "source"),
            assumed=optional(text, found, f"{at}.", "assumed"),
        )

    return several(read)(tree, where)


def _storage_document(table: StorageTable) -> dict[str, Any]:
    found: dict[str, Any] = {"steps": [step.document("rows", "step_s") for step in table.steps]}
    if isinstance(table.verify, AssumedVerify):
        found["verify"] = {"factor": table.verify.factor, "assumed": table.verify.assumed}
    elif table.verify:
        found["verify"] = [verify.document("width", "sync_s") for verify in table.verify]
    if table.prefill is not None:
        found["prefill"] = prefill_document(table.prefill)
    return found
