.PHONY: page check lint quick test coverage nightly nightly-spark mutation docs bench soak release

check: lint docs test

lint:
	ruff check .
	ruff format --check .
	lint-imports
	mypy -p oxiseq

# what answers at once, under a minute of CPU time
quick:
	OXISEQ_EXAMPLES=20 python -m pytest -n 0 -m "not slow" tests/grammar tests/terms tests/test_corpus.py \
	    tests/test_packages.py tests/test_readme_links.py

test:
	python -m pytest -n auto

# lines and branches (pip install --group coverage); compiled kernels and processes that tests start are not seen
coverage:
	python -m pytest -n auto --cov=oxiseq --cov-branch --cov-report=term:skip-covered --cov-report=html

nightly:
	OXISEQ_PROFILE=nightly python -m pytest -n auto

# the oldest Spark that oxiseq takes and the newest 4.x, some 450 MB each, with a cluster of which a worker is killed;
# Java waits ten seconds for a Python worker to start, whatever is set, so on a busy machine such a test runs again
nightly-spark:
	for wanted in '==4.2.0' '>=4.2,<5'; do \
	    folder=$$(mktemp -d) && pip install -q --no-deps --target $$folder "pyspark$$wanted" pytest-rerunfailures && \
	    OXISEQ_SPARK_LONG=1 PYTHONPATH=$$folder python -m pytest -n 0 \
	        --reruns 2 --only-rerun "to connect back" tests/spark || exit 1; \
	    rm -r $$folder; \
	done

# what tests do not see: a sample of changed operators and numbers (pip install --group mutation)
AREA = operators
SAMPLE = 60
mutation:
	nice -n 19 python .ci/mutation.py $(AREA) --sample $(SAMPLE)

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
