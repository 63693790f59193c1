.PHONY: page check lint quick test changed full coverage nightly nightly-spark mutation docs bench soak release

check: lint docs test

lint:
	ruff check .
	ruff format --check .
	lint-imports
	mypy -p oxiseq
	mypy tests/typing/every_name.py

# what answers at once, under a minute of CPU time
quick:
	OXISEQ_EXAMPLES=20 python -m pytest -n 0 -m "not slow and not full" tests/grammar tests/terms tests/test_corpus.py \
	    tests/test_packages.py tests/test_readme_links.py

# what the gate runs
test:
	python -m pytest -n auto

# what is near the changes since `main`, of its slow tests none: .ci/near.py
changed:
	@tests=$$(python .ci/near.py) && if [ -n "$$tests" ]; then \
	    python -m pytest -n auto -m "not slow and not full" $$tests; else echo "no test is near what has changed"; fi

# everything, with the gate's number of examples: what the gate has one of its kind of, all of that; bounds of the whole
# corpus; what `make nightly` has found
full:
	python -m pytest -n auto -m ""
	.ci/bounds tests/test_corpus.py tests/test_differential.py
	python .ci/nightly.py --again

# other examples, for OXISEQ_MINUTES (60): what fails is kept in tests/seeds.txt
nightly:
	python .ci/nightly.py

# lines and branches, for OXISEQ_MINUTES (60); run again, it goes on (pip install --group coverage)
coverage:
	python .ci/covered.py

# which of 120 changes no test notices, for OXISEQ_MINUTES (60); run again, it goes on
mutation:
	nice -n 19 python .ci/mutation.py

# the oldest Spark that oxiseq takes and the newest 4.x, some 450 MB each, with a cluster of which a worker is killed;
# Java waits ten seconds for a Python worker to start, whatever is set, so on a busy machine such a test runs again
nightly-spark:
	for wanted in '==4.2.0' '>=4.2,<5'; do \
	    folder=$$(mktemp -d) && pip install -q --no-deps --target $$folder "pyspark$$wanted" pytest-rerunfailures && \
	    PYTHONPATH=$$folder python -m pytest -n 0 -m "" \
	        --reruns 2 --only-rerun "to connect back" tests/spark || exit 1; \
	    rm -r $$folder; \
	done

docs:
	DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=1 mkdocs build --strict

bench:
	python -m benchmarks

soak:
	python -m benchmarks.soak

# the editor's bundle, only when its packages change: see plugin/page/README.md
page:
	cd plugin/page/editor && npm ci --ignore-scripts && npm run build

# build, check and tag: make release VERSION=1.0.0
release:
	bash .ci/release $(VERSION)
