"""Find the Java that Spark runs on, or say what to install. Only Spark needs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass

OLDEST = 17
"""The first Java that Spark 4 takes."""
_ADVICE = (
    "Spark needs Java 17 or newer: on Debian and Ubuntu `apt install openjdk-17-jre-headless`, then leave JAVA_HOME "
    "unset or set it to that Java's folder (/usr/lib/jvm/java-17-openjdk-amd64)"
)


class SparkMissing(OxiseqError):
    """Spark cannot be used here; the message says what to install or set."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: its program and its feature version (8, 17...)."""

    program: Path
    version: int


def find_java() -> Java:
    """The Java that Spark will take: JAVA_HOME's if that is set, otherwise PATH's. Raises SparkMissing."""
    program = _program()
    try:
        version = _version(program)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkMissing(f"{program}: cannot be run: {error}. {_ADVICE}") from error
    if version is None:
        raise SparkMissing(f"{program}: does not say a version. {_ADVICE}")
    if version < OLDEST:
        raise SparkMissing(f"{program} is Java {version}. {_ADVICE}")
    return Java(program, version)


def spark_missing() -> str | None:
    """Why Spark cannot be used here (pyspark or Java is missing, Java is too old); None if it can."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'oxiseq[spark]'"
    try:
        find_java()
    except SparkMissing as error:
        return str(error)
    return None


def _program() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not os.access(program, os.X_OK):
            raise SparkMissing(f"JAVA_HOME is {home}, which holds no bin/java. {_ADVICE}")
        return program
    found = shutil.which("java")
    if found is None:
        raise SparkMissing(f"there is no Java: JAVA_HOME is not set and PATH has no java. {_ADVICE}")
    return Path(found)


@cache
def _version(program: Path) -> int | None:
    """17 of a Java that says `openjdk version "17.0.15"`, 8 of `java version "1.8.0_352"`; it is started once."""
    told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else None
