"""What having the plugin installed costs: start-up of an unrelated run, and of a fully cached one.

    python benchmarks/startup.py [--pairs 11]

1. `pytest` on a folder with one trivial test, with the plugin and with `-p no:isotest`, in turn.
2. `pytest --isotest suites/vision`, once to fill the cache and then from the cache, against a bare
   `python -c "import torch"`; the cached run must not import torch at all.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def seconds(command: list[str], cwd: Path, **environment: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=11)
    pairs = parser.parse_args().pairs
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        seconds(pytest, folder)
        differences, ratios = [], []
        for _ in range(pairs):
            without = seconds([*pytest, "-p", "no:isotest"], folder)
            with_plugin = seconds(pytest, folder)
            differences.append(with_plugin - without)
            ratios.append(with_plugin / without)
        print("unrelated run, with the plugin against without:")
        print(
            f"  ratio {statistics.median(ratios):.3f}, "
            f"difference {1e3 * statistics.median(differences):.1f} ms (medians of {pairs} pairs)"
        )
        cache = {"ISOTEST_CACHE_DIR": str(folder / "cache")}
        suites = [*pytest, "--isotest", "suites/vision"]
        first = seconds(suites, ROOT, **cache)
        importing, cached = [], []
        for _ in range(3):
            importing.append(seconds([sys.executable, "-c", "import torch"], ROOT))
            cached.append(seconds(suites, ROOT, **cache))
        print("pytest --isotest suites/vision:")
        print(
            f"  measured {first:.1f} s, cached {statistics.median(cached):.2f} s, "
            f"ratio {statistics.median(cached) / first:.3f}; "
            f"import torch alone {statistics.median(importing):.2f} s"
        )


if __name__ == "__main__":
    main()
