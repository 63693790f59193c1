"""The web page that `oxiseq serve` shows: files as they are sent, and what goes with them.

    static/index.html ─▶ js/main.js ─▶ editor, panels, drawings ─▶ the server's own routes

Everything is served from here, nothing from another host. How the editor's bundle is made: README.md in this folder.
"""

from oxiseq.page.assets import SECURITY, Asset, asset

__all__ = ["SECURITY", "Asset", "asset"]
