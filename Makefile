# Every target sets up what it needs in .venv, from nothing but Python 3.11 or newer and make.
#
#   make report   the main job on a sample cluster: prints the verdict, writes out/report.html
#   make install  everything that notebooks, simulate and live clusters need
#   make check    style, types and the fast tests, in two minutes: run it before each commit
#   make test     everything that is checked before a change is accepted
#   make docs     the documentation as a site that works offline, in out/docs
#   make picture  draws the picture of the README again
#   make fuzz     100,000 mutated files, 50,000 mutations of public outputs and 20,000 drawn
#                 calls, in some minutes (SEED=7)
#   make bench    how fast the main pieces are, against peers in the same run
#   make lock     updates the pinned dependencies from pyproject.toml
#   make clean    removes .venv and everything built
#
# Another Python: make PYTHON=/path/to/python3 report

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
FOR_REPORT := $(VENV)/.ready-for-report
# Modules are compiled when they are first imported: most never are.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile \
  --constraint requirements.lock
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
CLUSTER := data/clusters/three-az-six-brokers

# The first of these that is new enough; only looked for when something is to be set up.
PYTHON = $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
  if $$p -c '$(NEW_ENOUGH)' 2>/dev/null; then echo $$p; break; fi; done)

# Compiled modules are kept, whatever the caller's environment says: else each of the many processes
# of the tests compiles numba and scipy for itself, which is more than half of a short one's time.
unexport PYTHONDONTWRITEBYTECODE
# With a test process for each core, a library's own threads only wait for each other.
check test: export OPENBLAS_NUM_THREADS := 1

.PHONY: report install style types check test docs picture fuzz bench lock clean
.DELETE_ON_ERROR:

report: $(FOR_REPORT)
	@mkdir -p out
	@$(PY) -m advisor report $(CLUSTER).txt --racks $(CLUSTER).racks.toml \
	  --model three_az_cloud --output out/report.html

install: $(READY)

style: $(READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(READY)
	$(PY) -m mypy

# The tests of one file are in one process: they share clusters. In the order of tests/conftest.py,
# which lists what is slow: without the option the files with the fewest tests come last, and those
# take longest. Types are one of the tests, so that they are checked beside the others.
PROCESSES := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
check: style
	$(PY) -m pytest $(PROCESSES) -m "not slow" tests

EXAMPLES := --nbval-lax --doctest-modules --doctest-ignore-import-errors
test: style
	$(PY) -m pytest $(PROCESSES) $(EXAMPLES) tests advisor notebooks

# Documents and notebooks are copied beside the pages' sources, where Sphinx can find them.
PAGES := ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md DECISIONS.md GLOSSARY.md QUESTIONS.md
DOCS := out/docs
docs: $(READY)
	@rm -rf $(DOCS) $(DOCS)-source
	@mkdir -p $(DOCS)-source
	@cp -r docs/. notebooks $(PAGES) $(DOCS)-source
	@$(PY) -m sphinx -q -W --keep-going -b html $(DOCS)-source $(DOCS)
	@rm -rf $(DOCS)-source $(dir $(DOCS))jupyter_execute
	@echo "Documentation: $(DOCS)/index.html"

picture: $(READY)
	@$(PY) docs/picture.py

SEED := 7
fuzz: $(READY)
	$(PY) tests/support/fuzz.py --seed $(SEED) --inputs 100000 --calls 20000

bench: $(READY)
	$(PY) bench/compare.py
	$(PY) bench/learn.py

lock: $(READY)
	@$(PIP) uv
	$(PY) -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --fork-strategy fewest --no-emit-index-url --no-annotate --no-header --upgrade --quiet \
	  --output-file requirements.lock

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# hatchling is pinned in the lock, so nothing is built in an environment fetched on the side. What
# the report needs comes first: it is a tenth of the whole.
$(FOR_REPORT): requirements.lock pyproject.toml
	@python='$(PYTHON)'; \
	if ! "$${python:-none}" -c '$(NEW_ENOUGH)' 2>/dev/null; then \
	  echo "Python 3.11 or newer is needed: install it, or say make PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$python cannot make a virtual environment, its ensurepip is missing: install it" \
	    "(on Debian and Ubuntu: apt-get install python3-venv)," \
	    "or say make PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	echo "Setting up $(VENV), once: this takes half a minute."; \
	"$$python" -m venv $(VENV)
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation --editable '.[report]'
	@touch $@

$(READY): $(FOR_REPORT)
	@echo "Installing Spark, Jupyter and the tools: this takes another minute or two."
	@$(PIP) --requirement requirements.lock
	@mkdir -p $(VENV)/etc/jupyter
	@ln -sf ../../../jupyter_nbconvert_config.py $(VENV)/etc/jupyter/
	@touch $@
