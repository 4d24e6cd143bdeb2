# make run     build everything, run every experiment in its quick profile, write the report
# make quick   build everything, run the first case of each test that is not slow, for every save
# make test    build everything, run the test suite but for the packaging and the long attacks, on all cores
# make trust   run what make test leaves out: kills at random moments, full disks, fuzzed kernels, more examples
# make kernel-coverage    build the kernels once more such that they tell each line that runs, and show the others
# make test-packaging    build the sdist and the wheel, compiling everything again, and look into them
# make coverage    run the same tests, and show the lines of Python that none of them runs
# make lint    ruff, mypy, cython-lint, codespell, proselint, names in changes/, and whether the kernels' stubs are up to date
# make docs    build the site of documentation in build/docs, with warnings as errors, and check its links; the pages of
#              airspeed velocity come along, as build/docs/benchmarks, where something was timed
# make stubs   write the stubs of the kernels, rankbench/kernels/*/*.pyi, from their signatures
# make bench   time HEAD with airspeed velocity; or the last commits: make bench COMMITS=HEAD~20..HEAD
#              or count instructions, which other work does not change: make bench BENCHMARKS=instructions (needs valgrind)
# make bench-pages  the pages of airspeed velocity about what `make bench` has timed: asv_benchmarks/html, without a network
# make bench-compare  say what got slower since another commit, by instructions and by time: make bench-compare BASE=main
# make roof    how near each hot kernel comes to what this machine can do: make roof ARGS="--to reports/speed.md"
# make peers   compare with other libraries, side by side in one process
# make locked  install the versions of .ci/lock, whose files must have the hashes there, instead of the newest
# make lock    renew .ci/lock
# make audit   look for known weaknesses in the versions of .ci/lock
# make reproduce  run every experiment in its full profile, and write reports/, the committed reproduction, and what others
#              say of it: README's counts, and durations.json. What is interrupted goes on with the next call:
#              make reproduce RESULTS=/shared/results JOBS=2
#
# ARGS="..." is passed on: make run ARGS="--full -j 2", make test ARGS="-k sgd".

PYTHON ?= python3
ARGS ?=
RESULTS ?= build/reproduction
JOBS ?= 1
# Many tests wait for other processes: with two workers on two cores a third of the time is idle.
WORKERS ?= $(shell cores=$$(nproc); echo $$((cores > 4 ? cores : 4)))
BASE ?= main
COMMITS ?= HEAD^!
BENCHMARKS ?= ^(?!instructions)
BIN := .venv/bin
INSTALL = $$(cat .venv/.installer)
TOOLS := .venv/tools/bin
LOCK := $(TOOLS)/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --no-annotate \
    --custom-compile-command "make lock"
TRACED := build/traced
TRACING := .ci/kernel-coverage.ini
ONE_THREAD := OMP_THREAD_LIMIT=1 PYTHONPATH=.:tests
KERNEL_TESTS := tests/features/test_item_kernels.py tests/kernels/test_kernels.py tests/kernels/test_rows.py tests/methods/test_isotonic.py \
    tests/models/test_models.py tests/kernels/test_threads.py tests/data/splits tests/methods
PROSE := $(wildcard *.md docs/*.md $(foreach room,howto metrics papers solvers,docs/$(room)/*.md) paper/*.md rankbench/experiments/*.toml reports/*.md)
SOURCES := setup.py pyproject.toml $(shell find pyx -name "*.p[yx][xd]" -o -name "*.h")

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_QUIET = 1
export UV_COMPILE_BYTECODE = 1
export UV_LINK_MODE = copy
# Hundreds of processes start in the tests and in a run: without bytecode each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run quick test trust coverage kernel-coverage test-packaging lint stubs bench bench-compare roof peers locked lock audit reproduce clean

run: .venv/.extra-data
	$(BIN)/python -m rankbench run all $(ARGS)

quick: .venv/.extra-test
	env -u RANKBENCH_DATA $(BIN)/python -m pytest -n auto --dist worksteal --brief -m "not slow and not packaging and not trust" $(ARGS)

test: .venv/.extra-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not packaging and not trust" $(ARGS)

trust: .venv/.extra-test
	$(BIN)/python -m pytest -m "(trust or hypothesis) and not packaging" --hypothesis-profile thorough $(ARGS)

coverage: .venv/.extra-test
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist worksteal -m "not packaging and not trust" $(ARGS)
	$(BIN)/python .ci/combine_coverage.py
	$(BIN)/python -m coverage report

kernel-coverage: .venv/.extra-test
	rm -rf $(TRACED)
	mkdir -p $(TRACED)
	git ls-files -z | xargs -0 cp --parents --target-directory=$(TRACED)
	cd $(TRACED) && RANKBENCH_TRACE=1 $(CURDIR)/$(BIN)/python -m pip wheel --no-deps --wheel-dir wheel .
	cd $(TRACED) && $(CURDIR)/$(BIN)/python -m zipfile -e wheel/*.whl .
	cd $(TRACED) && $(ONE_THREAD) $(CURDIR)/$(BIN)/python -m coverage run --rcfile=$(TRACING) \
	    tests/kernel_fuzzing.py never-called
	cd $(TRACED) && $(ONE_THREAD) $(CURDIR)/$(BIN)/python -m coverage run --rcfile=$(TRACING) -m pytest -n $(WORKERS) --dist worksteal \
	    -m "not slow and not packaging and not trust" $(KERNEL_TESTS) $(ARGS)
	cd $(TRACED) && $(CURDIR)/$(BIN)/python -m coverage combine --quiet --rcfile=$(TRACING)
	cd $(TRACED) && $(CURDIR)/$(BIN)/python -m coverage report --rcfile=$(TRACING)

test-packaging: .venv/.extra-test
	$(BIN)/python -m pytest -m packaging $(ARGS)

lint: .venv/.extra-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint pyx
	$(BIN)/codespell
	@$(BIN)/proselint check --config .ci/proselint.json $(PROSE)
	@said=$$($(BIN)/towncrier build --draft --version next 2>&1) || { echo "$$said"; exit 1; }
	$(BIN)/python .ci/write_stubs.py --check

.PHONY: docs
docs: .venv/.extra-docs
	rm -rf docs/examples docs/reference
	$(BIN)/python -m doctest docs/_ext/mathml.py
	$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees -j auto docs build/docs $(ARGS)
	$(BIN)/python .ci/check_links.py build/docs
	if [ -d asv_benchmarks/results ]; then \
		$(MAKE) bench-pages && rm -rf build/docs/benchmarks && cp -r asv_benchmarks/html build/docs/benchmarks; fi

stubs: .venv/.extra-lint
	$(BIN)/python .ci/write_stubs.py
	$(BIN)/ruff format -q rankbench/kernels

bench: .venv/.extra-bench
	cd asv_benchmarks && ../$(BIN)/python -m asv machine --yes
	cd asv_benchmarks && ../$(BIN)/python -m asv run --quick --show-stderr --bench '$(BENCHMARKS)' '$(COMMITS)' $(ARGS)

bench-pages: .venv/.extra-bench
	cd asv_benchmarks && ../$(BIN)/python -m asv publish
	$(BIN)/python asv_benchmarks/offline.py asv_benchmarks/html

bench-compare: .venv/.extra-bench
	$(BIN)/python asv_benchmarks/compare $(BASE) $(ARGS)

roof: .venv/.package
	$(BIN)/python asv_benchmarks/roof $(ARGS)

peers: .venv/.extra-peers
	$(BIN)/python asv_benchmarks/peers $(ARGS)

locked:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --require-hashes --requirement .ci/lock/dev.txt
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	echo $(BIN)/python -m pip install >.venv/.installer
	touch .venv/.package
	touch .venv/.extra-data .venv/.extra-test .venv/.extra-lint .venv/.extra-bench .venv/.extra-docs

lock: .venv/tools/.installed
	$(TOOLS)/python .ci/build_requires.py | $(LOCK) --extra test --extra lint --extra bench --extra docs \
	    pyproject.toml - --output-file .ci/lock/dev.txt
	$(LOCK) .ci/lock/tools.in --output-file .ci/lock/tools.txt
	$(LOCK) --extra peers pyproject.toml --output-file .ci/lock/peers.txt
	$(LOCK) --extra lenskit pyproject.toml --output-file .ci/lock/lenskit.txt

audit: .venv/tools/.installed
	for lock in dev tools peers lenskit; do \
	    $(TOOLS)/pip-audit --require-hashes --disable-pip --requirement .ci/lock/$$lock.txt || exit 1; \
	done

reproduce: .venv/.extra-data
	$(BIN)/python -m rankbench run all --full --no-report -j $(JOBS) --out $(RESULTS) $(ARGS)
	$(BIN)/python -m rankbench report --out $(RESULTS) --to reports --no-page
	$(BIN)/python .ci/write_from_reports.py

clean:
	rm -rf .venv build dist docs/examples docs/reference *.egg-info
	find rankbench/kernels -name "*.so" -delete

# The package is installed once, in place; touching a kernel builds again, touching Python does not.
.venv/.package: $(SOURCES) | .venv/.installer
	$(INSTALL) --editable .
	@touch $@

# uv installs in a tenth of pip's time; pip does it where uv is not to be had, or does not reach what pip reaches.
.venv/.installer:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "rankbench needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
	    { echo "no virtual environment: on Debian, apt-get install python3-venv python3-dev"; exit 1; }
	@install="$(BIN)/uv pip install --quiet --python $(BIN)/python"; \
	if ! $(BIN)/python -m pip install uv 2>/dev/null || ! $$install --dry-run numpy cython 2>/dev/null; then \
	    $(BIN)/python -m pip install --upgrade "pip>=24" || exit; \
	    install="$(BIN)/python -m pip install"; \
	fi; \
	echo $$install >$@

.venv/.extra-%: .venv/.package
	$(INSTALL) "rankbench[$*]"
	@touch $@

.venv/tools/.installed: .ci/lock/tools.txt
	$(PYTHON) -m venv .venv/tools
	$(TOOLS)/python -m pip install --require-hashes --requirement .ci/lock/tools.txt
	@touch $@
