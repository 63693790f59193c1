"""Raw logs → event tables in order of time, which the engine reads: `oxiseq import`.

sources ─ read, each by itself ─ spooled by time range ─ each range sorted ─ a table for each range
  bad rows, late rows: quarantine

reading.py    a source as events, and what is wrong in it
arrange.py    `arrange`: the two passes, in this process or as Spark tasks
"""

from oxiseq.logs.arrange import Arranged, arrange

__all__ = ["Arranged", "arrange"]
