#!/usr/bin/env python3
"""Drives the pages of a running server with Chromium.

    python3 pages.py --url http://127.0.0.1:8080 [--keyed-url URL --key KEY] [--screenshots FOLDER] [--only TEXT]

The server needs a model with a chat template and one without. Needs the packages playwright and axe-playwright-python.
"""

import argparse
import sys
import time
import traceback

from browser import chat, faults, kept, markdown, people, shots, status
from browser.driver import World, launch
from browser.writer import Writer
from playwright.sync_api import sync_playwright

MODULES = [markdown, chat, faults, kept, people, status]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="the server")
    parser.add_argument("--keyed-url", help="a server that wants the key")
    parser.add_argument("--key", help="its key")
    parser.add_argument("--screenshots", metavar="FOLDER", help="where pictures are written")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs the cases with this text in their name")
    parser.add_argument("--chromium", default="/usr/bin/chromium-headless-shell", metavar="PATH", help="the browser")
    options = parser.parse_args()
    keyed = (options.keyed_url.rstrip("/"), options.key) if options.keyed_url else None
    cases = [case for module in MODULES for case in module.CASES_HERE if options.only in case.__name__]
    if keyed is None:
        cases = [case for case in cases if not case.__name__.startswith("case_key")]
    if options.screenshots:
        cases.append(shots.taking(options.screenshots))
    failed = []
    with sync_playwright() as playwright:
        browser = launch(playwright, options.chromium)
        writer = Writer()
        for case in cases:
            start = time.monotonic()
            world = World(browser, options.url, writer, keyed)
            try:
                case(world)
                world.verdict()
                print(f"ok {case.__name__} {time.monotonic() - start:.1f} s", flush=True)
            except Exception:
                failed.append(case.__name__)
                print(f"FAILED {case.__name__}\n{traceback.format_exc()}", "\n".join(world.complaints), flush=True)
            finally:
                world.close()
        browser.close()
    print(f"{len(cases) - len(failed)} of {len(cases)} cases passed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
