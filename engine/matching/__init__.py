"""Graph patterns on events: an event batch becomes rows of each GPM's occurrences.

    GpmRequest ─ plan.compile_stream ─▶ StreamPlan (slots, instances, join orders, filter programs)
    EventBatch ─ matcher.StreamMatcher ─▶ Occurrences per GPM
        basic graph patterns: kernels.match, undecided rows by recheck
        everything else: fallback, a batch of events per store query
    KB pattern ─ enrich.KbPattern ─▶ KbAnswer, joined with the rows

Plans are immutable; what changes while events pass (memo tables, the cached answers of the KB, the scratch
store) belongs to the matcher. See matching.md.
"""
