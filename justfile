# The commands of a contributor; `just` lists them.
_default:
    @just --list

# all tests, or those of PATHS
test *PATHS:
    uv run --group dev pytest {{PATHS}}

# the tests that need neither the database nor a browser
fast:
    uv run --group dev pytest -n 2 -m fast

# style, types, import rules
check:
    uv run --group dev ruff format .
    uv run --group dev ruff check .
    uv run --group dev mypy
    uv run --group dev basedpyright
    uv run --group dev lint-imports

# rewrite the generated files
generate:
    uv run python docs/generate_configuration.py
    uv run --group dev python docs/build_site.py

# what a change must pass, as on a clean machine
ci:
    bash .ci/run
