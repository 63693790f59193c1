.PHONY: check lint test nightly bench soak

check: lint test

lint:
	ruff check .
	lint-imports

test:
	python -m pytest -n auto

nightly:
	OXISEQ_PROFILE=nightly python -m pytest -n auto

bench:
	python -m benchmarks

soak:
	python -m benchmarks.soak
