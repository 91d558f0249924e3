"""Who may import whom, read from the sources: the table in CONTRIBUTING.md, and where each library may be used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.documents import ROOT

LAYERS = {
    "traces": set[str](),
    "policies": set[str](),
    "calibration": {"traces"},
    "simulator": {"traces", "policies", "calibration"},
    "tuning": {"traces", "policies", "calibration", "simulator"},
}
CLOCK_CALLS = {"now", "utcnow", "today"}  # of datetime and date; whatever else reads a clock is in `time`
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module."""

    module: str
    """In full: `simulator.cli`, also when written `from simulator import cli`."""
    line: int
    function: str | None
    """The innermost function that imports it, None at module level."""

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Module:
    """One source file of the five packages."""

    name: str
    """As imported: `policies.gated`, and `policies` for its `__init__.py`."""
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_cli(self) -> bool:
        return self.name.endswith(".cli")


def imports(node: ast.AST, modules: set[str], function: str | None = None) -> Iterator[Import]:
    """Find every import below a node; `modules` tells a submodule from a name in `from package import name`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = "." * child.level + (child.module or "")
            names = (f"{base}.{alias.name}" for alias in child.names)
            yield from (Import(name if name in modules else base, child.lineno, function) for name in names)
        else:
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            yield from imports(child, modules, inside)


def parse(sources: dict[str, str]) -> list[Module]:
    trees = {name: ast.parse(text) for name, text in sources.items()}
    return [Module(name, tree, tuple(imports(tree, set(sources)))) for name, tree in trees.items()]


def read_sources() -> dict[str, str]:
    paths = [path for package in LAYERS for path in sorted((ROOT / package).rglob("*.py"))]
    return {module_name(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def upward(modules: list[Module]) -> list[str]:
    return [
        f"{module.name}:{found.line}: imports {found.module}"
        for module in modules
        for found in module.imports
        if not module.is_cli and found.top in LAYERS.keys() - LAYERS[module.package] - {module.package}
    ]


def cycle(modules: list[Module]) -> list[str]:
    """Return one cycle of module-level imports, or nothing."""
    edges = {module.name: {i.module for i in module.imports if i.function is None} for module in modules}
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done or name not in edges:
            return []
        found = next((loop for other in sorted(edges[name]) if (loop := visit(other, [*trail, name]))), [])
        done.add(name)
        return found

    return next((loop for name in edges if (loop := visit(name, []))), [])


def clock_reads(module: Module) -> list[str]:
    named = [f"{module.name}:{found.line}: imports time" for found in module.imports if found.top == "time"]
    called = [
        f"{module.name}:{node.lineno}: calls {node.func.attr}()"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_CALLS
    ]
    return named + called


def misplaced(modules: list[Module]) -> list[str]:
    return [
        f"{module.name}:{found.line}: imports {found.module}"
        for module in modules
        for found in module.imports
        if not may_use(module, found)
    ]


def may_use(module: Module, found: Import) -> bool:
    """Say whether a library, or the module that loads one, is imported where it may be."""
    match found.top:
        case "mlx" | "mlx_lm":
            return module.name == "calibration.mlx_engine"
        case "simpy":
            return module.name in ("simulator.simpy_clocks", "simulator.serving.simpy_server")
        case "optuna" | "sqlalchemy":
            return module.package == "tuning"
        case "pandas":
            return found.function == "to_frame"
        case "rich":
            return found.function is not None
        case "transformers":
            return module.name == "calibration.local_tokenizer" and found.function is not None
    if found.module == "calibration.mlx_engine":
        return found.function is not None and (module.is_cli or module.package == "calibration")
    return True


MODULES = parse(read_sources())


def test_a_package_imports_only_those_below_it() -> None:
    assert upward(MODULES) == []


def test_nothing_imports_a_command() -> None:
    importers = [module.name for module in MODULES for found in module.imports if found.module.endswith(".cli")]

    assert importers == []


def test_heavy_libraries_are_imported_where_they_are_needed_and_nowhere_else() -> None:
    assert misplaced(MODULES) == []


def test_no_module_is_part_of_an_import_cycle() -> None:
    assert cycle(MODULES) == []


def test_no_import_is_relative() -> None:
    assert [module.name for module in MODULES for found in module.imports if found.module.startswith(".")] == []


def test_only_calibration_reads_a_clock() -> None:
    reads = [read for module in MODULES if module.package != "calibration" for read in clock_reads(module)]

    assert reads == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [module.name for module in MODULES if VAGUE_NAMES & set(module.name.split("."))] == []


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("policies.gated", "from simulator import run", ["policies.gated:1: imports simulator"]),
        ("traces.trace", "def f():\n    import policies.lookup", ["traces.trace:2: imports policies.lookup"]),
        ("simulator.run", "import traces, policies, calibration, numpy", []),
        ("simulator.cli", "import tuning", []),
    ],
)
def test_an_import_upward_is_found(name: str, source: str, found: list[str]) -> None:
    assert upward(parse({name: source})) == found


@pytest.mark.parametrize(
    ("name", "source", "allowed"),
    [
        ("calibration.mlx_engine", "import mlx.core as mx", True),
        ("calibration.record", "import mlx.core as mx", False),
        ("calibration.record", "def f():\n    from calibration import mlx_engine", True),
        ("calibration.record", "from calibration import mlx_engine", False),
        ("simulator.run", "def f():\n    from calibration import mlx_engine", False),
        ("simulator.run", "class C:\n    def to_frame(self):\n        import pandas as pd", True),
        ("simulator.run", "import pandas as pd", False),
        ("simulator.cli", "import rich.progress", False),
        ("traces.importing.sharegpt", "def f():\n    import transformers", False),
        ("simulator.simpy_clocks", "import simpy", True),
        ("simulator.serving.simpy_server", "import simpy", True),
        ("simulator.clocks", "from simpy.events import Event", False),
        ("tuning.search", "import optuna", True),
    ],
)
def test_a_library_in_the_wrong_place_is_found(name: str, source: str, allowed: bool) -> None:
    modules = parse(
        {name: source, "calibration.mlx_engine": ""} if name != "calibration.mlx_engine" else {name: source}
    )

    assert (misplaced(modules) == []) is allowed


def test_a_cycle_is_found_unless_a_function_breaks_it() -> None:
    closed = {"a": "from a import b", "a.b": "import c", "c": "if True:\n    from a import name"}

    assert cycle(parse(closed)) == ["a", "a.b", "c", "a"]
    assert cycle(parse({**closed, "c": "def f():\n    from a import name"})) == []


@pytest.mark.parametrize("source", ["import time", "from time import perf_counter", "datetime.now()"])
def test_a_clock_read_is_found(source: str) -> None:
    assert len(clock_reads(parse({"simulator.run": source})[0])) == 1
