"""`tailrace mcp`: a project's server for assistants that speak the Model Context Protocol."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from tailrace.cli.output import log_option


@click.command()
@log_option
def mcp(address: str | None) -> None:
    """Answer an assistant on stdin and stdout, by the Model Context Protocol.

    An assistant can list sources, topics and views, ask SQL, read the newest records of a topic,
    see the status, explain error codes and check the project. It can change nothing. With
    --bootstrap the project is asked at its console's address, and `check` is left out.
    """
    from tailrace import __version__
    from tailrace.cli.assistants import INSTRUCTIONS, Answers
    from tailrace.errors import TailraceError
    from tailrace.extras import require

    require("mcp")
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    server = MCPServer(
        "tailrace", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )

    def told(tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def answer(**given: Any) -> Any:
            try:
                return tool(**given)
            except TailraceError as error:
                raise ToolError(error.render()) from None

        return answer

    looks = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in Answers(address).tools:
        server.add_tool(told(tool), annotations=looks, structured_output=False)
    server.run()
