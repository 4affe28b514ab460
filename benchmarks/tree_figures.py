"""What the code is made of: lines, files, classes, imports.

    python benchmarks/tree_figures.py [FOLDER]

Counts the three packages of a checkout (this one by default), so that two states can be compared.
A data carrier is a class that only declares fields: no method but properties, validators and
double-underscore ones. A floor is one step of the longest chain of imports made on loading.
"""

import ast
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOTS = ("", "node_parsers", "postprocessors")
DATA_BASES = {"BaseModel", "NamedTuple", "TypedDict", "Enum", "StrEnum", "_Frozen"}
DECLARING = {"property", "computed_field", "field_validator", "model_validator", "field_serializer"}


def modules_of(root: Path) -> dict[str, Path]:
    found = {}
    for base in (root / each for each in ROOTS):
        for package in ("webrag", "llama_index"):
            for path in sorted((base / package).rglob("*.py")):
                parts = path.relative_to(base).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def imports_on_loading(name: str, path: Path, tree: ast.Module, known: set[str]) -> set[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                source = f"{above}.{source}".rstrip(".")
            for alias in node.names:
                full = f"{source}.{alias.name}"
                found.add(full if full in known else source)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return (found & known) - {name}


def carries_only_data(node: ast.ClassDef) -> bool:
    def names(expressions: list[ast.expr]) -> set[str]:
        return {
            getattr(each, "id", getattr(each, "attr", ""))
            for one in expressions
            for each in ast.walk(one)
        }

    is_declared = "dataclass" in names(node.decorator_list) or bool(
        names(node.bases) & DATA_BASES or any(base.endswith("Enum") for base in names(node.bases))
    )
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    methods = [each for each in node.body if isinstance(each, functions)]
    return is_declared and all(
        each.name.startswith("__") or names(each.decorator_list) & DECLARING for each in methods
    )


def circles(graph: dict[str, set[str]]) -> int:
    below = {name: set(targets) for name, targets in graph.items()}
    while free := [name for name, targets in below.items() if not targets]:
        for name in free:
            del below[name]
        for targets in below.values():
            targets.difference_update(free)
    return len(below)


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    modules = modules_of(root)
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules.items()}
    known = set(modules)
    graph = {
        name: imports_on_loading(name, path, trees[name], known) for name, path in modules.items()
    }
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    classes = [
        node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    importers = Counter(target for targets in graph.values() for target in targets)
    in_circles = circles(graph)

    @cache
    def floors(name: str) -> int:
        return 1 + max((floors(target) for target in graph[name]), default=0)

    print(f"lines                          {sum(lines.values()):>7,}")
    print(f"files                          {len(modules):>7,}")
    print(f"  below 60 lines               {sum(1 for n in lines.values() if 0 < n < 60):>7,}")
    print(f"  imported by one neighbour    {sum(1 for n in importers.values() if n == 1):>7,}")
    print(f"classes                        {len(classes):>7,}")
    print(f"  data carriers                {sum(map(carries_only_data, classes)):>7,}")
    print(f"modules in circles of imports  {in_circles:>7,}")
    if not in_circles:
        print(f"floors of imports              {max(map(floors, modules)):>7,}")


if __name__ == "__main__":
    main()
