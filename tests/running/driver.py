"""Stands in for ``python -m anomprof`` with a watcher that writes down when it is called.

FAKE_LOG names the file it writes to; FAKE_STATUS, FAKE_INSTALL and FAKE_FINISH say what it does.
"""

import os
import sys
import types
from pathlib import Path


class FakeWatch:
    def __init__(self, folder, on_bad, command):
        self.log("start", Path(folder).is_dir(), on_bad, command)

    def log(self, *words):
        if "FAKE_LOG" in os.environ:
            with Path(os.environ["FAKE_LOG"]).open("a") as file:
                print(*words, file=file)

    def install(self):
        self.log("install", "torch" in sys.modules)
        exec(os.environ.get("FAKE_INSTALL", ""))

    def explain(self, error):
        pass

    def finish(self):
        self.log("finish", type(getattr(sys, "last_value", None)).__name__)
        exec(os.environ.get("FAKE_FINISH", ""))

    def status(self, fail_on):
        return int(os.environ["FAKE_STATUS"]) if fail_on and "FAKE_STATUS" in os.environ else None


def main():
    import click

    from anomprof.errors import UserError
    from anomprof.running.command import run_command

    fake = types.ModuleType("anomprof.watching")
    fake.start = lambda folder, *, script, command, detect, on_bad: FakeWatch(folder, on_bad, command)
    sys.modules["anomprof.watching"] = fake
    group = click.Group("anomprof", commands={"run": run_command})
    try:
        depart = group(standalone_mode=False)
    except UserError as error:
        print(f"anomprof: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        print(f"anomprof: {error.format_message()}", file=sys.stderr)
        sys.exit(2)
    if callable(depart):
        depart()


if __name__ == "__main__":
    main()
