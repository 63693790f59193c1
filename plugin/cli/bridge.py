"""`oxiseq bridge`: messages of another system into a stream of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oxiseq.cli.elsewhere import at_server
from oxiseq.warmup.importing import loading

if TYPE_CHECKING:
    from oxiseq.served.wire import Wire


@click.command("bridge", short_help="Push messages of a broker, a file or stdin to a stream.")
@click.argument("source", metavar="SOURCE")
@click.option("--into", metavar="IRI", required=True, help="The stream; made if missing.")
@click.option(
    "--topic",
    metavar="NAME",
    default="",
    help="MQTT: a filter such as a/#; Kafka: a topic; NATS: a subject; Redis: a stream; WebSocket: the first message "
    "to send.",
)
@click.option(
    "--group",
    metavar="NAME",
    default="oxiseq",
    show_default=True,
    help="The consumer group; the bridge continues from the group's position.",
)
@click.option(
    "--media-type",
    metavar="TYPE",
    default="application/n-quads",
    show_default=True,
    help="The messages' media type, as in a POST to the stream.",
)
@click.option("--time", metavar="TIME", help="The time of messages that have none; `arrival` is the server's clock.")
@click.option(
    "--start",
    type=click.Choice(["new", "all"]),
    default="new",
    show_default=True,
    help="Where to begin if nothing has been acknowledged yet.",
)
@click.option("--field", metavar="NAME", help="Redis: the field that holds the message.")
@click.option(
    "--option", "options", metavar="KEY=VALUE", multiple=True, help="For librdkafka, or LDES. May be repeated."
)
@click.option(
    "--position",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Remember in this file how far the source has been read.",
)
@click.option(
    "--dead-letter",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("dead-letters.jsonl"),
    show_default=True,
    help="Where rejected messages go.",
)
@at_server
def bridge_command(server: Wire, source: str, **given: Any) -> None:
    """Push messages of SOURCE to a stream until stopped: mqtt://, mqtts://, kafka://, nats://, nats+tls://, redis://,
    rediss://, ws://, wss://, ldes+http://, ldes+https://, a file that grows (as tail -F), or - for stdin, to its end.

    A message is acknowledged at its source once the server has stored it; a message that is delivered again is stored
    once.

    \b
    oxiseq bridge mqtt://localhost --topic 'plant/#' --into http://example.org/plant --url http://localhost:7878
    """
    with loading():
        from oxiseq.cli.bridging import bridge  # noqa: PLC0415  loads the engine: see __init__.py

    bridge(server, source, given)
