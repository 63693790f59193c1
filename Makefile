.PHONY: page check lint test nightly bench soak

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

# the editor's bundle, only when its packages change: see plugin/page/README.md
page:
	cd plugin/page/editor && npm ci --ignore-scripts && npm run build
