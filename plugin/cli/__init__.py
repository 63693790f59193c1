"""The command line: `oxiseq run`, `check`, `explain`, `translate`, `test`, `why`, `compare`, `load`, `serve`...

    arguments ─▶ `local`, `data`, `server`, `remote`, `installation` (light) ─▶ their work (`running`, `loading`...)

Importing the engine loads Numba, about a second. What must answer at once, `--help` and `check`,
does without: the modules of commands import only click, the grammar and each other; those that do their work wait
until one of their names is used (`oxiseq.engine.extras.needed`).

Exit status: 0 all went well (also without a match); 1 the query, an event, the KB or a file is wrong, with the
message on stderr; 2 the command line itself is wrong.
"""

from oxiseq.cli.app import main

__all__ = ["main"]
