"""`oxiseq declare`: queries for process conformance, made of Declare's templates."""

from __future__ import annotations

import click

from oxiseq.cli.options import Duration
from oxiseq.grammar.declare import USUAL_LOG, EventLog, declare_query
from oxiseq.grammar.declare_templates import REFUSED, TEMPLATES


@click.command("declare", short_help="Write the query that finds violations of a process rule.")
@click.argument("template", metavar="[TEMPLATE", required=False)
@click.argument("activities", metavar="[A [B]]]", nargs=-1)
@click.option(
    "--within", metavar="DURATION", type=Duration(least=1), help="How long a response may take: 5s, 2h, PT5S."
)
@click.option("--end", metavar="ACTIVITY", help="The activity that ends every case.")
@click.option("--times", metavar="N", type=int, help="For `absence`: how many occurrences are too many.")
@click.option("--stream", metavar="IRI", default=USUAL_LOG.stream, show_default=True, help="The stream of the log.")
@click.option(
    "--case", metavar="IRI", default=USUAL_LOG.case, show_default=True, help="The predicate of an event's case."
)
@click.option(
    "--activity",
    metavar="IRI",
    default=USUAL_LOG.activity,
    show_default=True,
    help="The predicate of an event's activity.",
)
def declare_command(
    template: str | None,
    activities: tuple[str, ...],
    within: int | None,
    end: str | None,
    times: int | None,
    stream: str,
    case: str,
    activity: str,
) -> None:
    """Write the SPAseq query that finds violations of a process rule, from a template of Declare; without TEMPLATE,
    list the templates. A and B are activities: names, or IRIs (<...>, http:, https:, urn:). See
    docs/process-conformance.md.

    \b
    oxiseq declare response order ship --within 2d > late.spaseq
    oxiseq declare precedence pay ship --case http://shop.example/case
    """
    if template is None:
        click.echo(_listed(), nl=False)
        return
    log = EventLog(stream, case, activity)
    click.echo(declare_query(template, *activities, within=within, end=end, times=times, log=log), nl=False)


def _listed() -> str:
    """The templates, each with its arguments and its meaning, and those that are refused."""
    rows = []
    for each in TEMPLATES:
        bound = "(--within | --end)" if each.ends and each.timed else "--end" if each.ends else ""
        bound = "[--within]" if each.timed and not each.ends else "[--times]" if each.counts else bound
        rows.append((f"{each.name} {'A B'[: 2 * each.activities - 1]} {bound}".rstrip(), each.says))
    rows += [(name, why) for name, why in REFUSED.items()]
    width = max(len(usage) for usage, _ in rows)
    return "".join(f"{usage:<{width}}  {about}\n" for usage, about in rows)
