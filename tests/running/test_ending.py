"""Every end of a script looks, to the shell and to a reader of stderr, as under plain Python."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.running.side_by_side import DRIVER, environment, log, plain, same, watched, write

EXITS = {
    "nothing": "sys.exit()",
    "None": "sys.exit(None)",
    "zero": "sys.exit(0)",
    "a number": "sys.exit(7)",
    "true": "sys.exit(True)",
    "256": "sys.exit(256)",
    "a negative number": "sys.exit(-2)",
    "a sentence": "sys.exit('no data in é')",
    "a list": "sys.exit([1, 2])",
    "two words": "raise SystemExit(1, 2)",
    "a float": "sys.exit(1.5)",
    "an error": "sys.exit(ValueError('bad'))",
    "a class": "raise SystemExit",
    "the site's exit": "exit(3)",
    "a subclass": "class Stop(SystemExit): pass\nraise Stop(4)",
    "no stderr": "sys.stderr = None\nsys.exit('still said')",
    "a closed stderr": "sys.stderr.close()\nsys.exit('not said')",
    "a stderr of its own": "sys.stderr = sys.stdout\nsys.exit('said on stdout')",
}


@pytest.mark.parametrize("source", EXITS.values(), ids=EXITS)
def test_exits(tmp_path, source):
    same(tmp_path, f"import sys\nprint('begun')\n{source}")


@pytest.mark.parametrize(
    ("source", "status"),
    [("sys.exit(2**70)", 255), ("class Odd:\n    def __str__(self): return 1 / 0\nsys.exit(Odd())", 1)],
    ids=["a huge number", "what cannot be printed"],
)
def test_odd_exits(tmp_path, source, status):
    # Some versions of Python stumble over these later, and say so.
    write(tmp_path, f"import sys\n{source}")
    assert plain(tmp_path, "script.py").returncode == status
    assert watched(tmp_path, "script.py").returncode == status


ERRORS = {
    "an error": "1 / 0",
    "in functions": "def f(): g()\ndef g(): raise KeyError('x')\nf()",
    "with a cause": "try: 1 / 0\nexcept ZeroDivisionError as e: raise ValueError('outer') from e",
    "with a context": "try: 1 / 0\nexcept ZeroDivisionError: int('x')",
    "with notes": "e = ValueError('x'); getattr(e, 'add_note', print)('a note'); raise e",
    "a group": "raise __builtins__.__dict__.get('ExceptionGroup', ValueError)('two', [ValueError(1)])",
    "a class": "raise ValueError",
    "not an Exception": "class Odd(BaseException): pass\nraise Odd('x')",
    "GeneratorExit": "raise GeneratorExit",
    "an interrupt's child": "class Odd(KeyboardInterrupt): pass\nraise Odd('x')",
    "a broken pipe": "raise BrokenPipeError(32, 'Broken pipe')",
    "a missing module": "import nothing_like_it",
    "a click error": "import click; raise click.UsageError('x')",
    "of no text": "assert False",
    "a traceback of its own": "e = ValueError('kept'); raise e.with_traceback(None)",
    "executed": "exec(compile('1 / 0', 'nowhere.py', 'exec'))",
    "a warning": "import warnings; warnings.warn('careful'); warnings.warn('old', DeprecationWarning); 1 / 0",
}


@pytest.mark.parametrize("source", ERRORS.values(), ids=ERRORS)
def test_uncaught_exceptions(tmp_path, source):
    same(tmp_path, f"print('begun')\n{source}\n")


def test_endless_recursion_is_cut_short_a_few_frames_earlier(tmp_path):
    write(tmp_path, "n = 0\ndef f():\n global n; n += 1; f()\ntry: f()\nexcept RecursionError: print(n)")
    expected, found = (int(run(tmp_path, "script.py").stdout) for run in (plain, watched))
    assert expected - 10 <= found < expected


@pytest.mark.parametrize("source", ["1 / 0", "import sys; sys.exit('said')", "raise KeyboardInterrupt"])
def test_a_module_ends_as_ever(tmp_path, source):
    write(tmp_path, f"print('begun')\n{source}\n", "module.py")
    same(tmp_path, None, "-m", "module")


HOOKS = {
    "that prints": "def hook(kind, value, trace): print(kind, value, trace.tb_lineno, sys.exc_info())",
    "that fails": "def hook(*_): raise KeyError('in the hook')",
    "that exits": "def hook(*_): sys.exit(9)",
    "that exits with words": "def hook(*_): sys.exit('by the hook')",
    "that interrupts": "def hook(*_): raise KeyboardInterrupt",
    "that is the default": "hook = sys.__excepthook__",
    "that looks at last_value": "def hook(*_): print(sys.last_value, sys.last_traceback.tb_lineno)",
}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
@pytest.mark.parametrize("raised", ["ValueError('x')", "KeyboardInterrupt"])
def test_the_scripts_own_excepthook_is_called(tmp_path, hook, raised):
    same(tmp_path, f"import sys\n{hook}\nsys.excepthook = hook\nraise {raised}")


def test_a_missing_excepthook(tmp_path):
    same(tmp_path, "import sys; del sys.excepthook; 1 / 0")


def test_an_interrupt_is_a_death_by_sigint_after_threads_and_exit_handlers(tmp_path):
    ended = same(
        tmp_path,
        """
        import atexit, sys, threading, time
        class Noisy:
            def __del__(self, say=print): say("deleted")
        noisy = Noisy()
        atexit.register(lambda: print("exit handler", sys.excepthook, repr(sys.last_value)))
        threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
        raise KeyboardInterrupt
        """,
    )
    assert ended.returncode == -signal.SIGINT
    assert ended.stdout.splitlines() == [
        "thread", "exit handler <built-in function excepthook> KeyboardInterrupt()", "deleted",
    ]  # fmt: skip


SLEEPS = """
import signal, sys, time
{}
print("ready", flush=True)
time.sleep(60)
"""

SIGNALS = {
    "SIGINT": (signal.SIGINT, ""),
    "SIGTERM": (signal.SIGTERM, ""),
    "SIGKILL": (signal.SIGKILL, ""),
    "SIGINT caught": (
        signal.SIGINT,
        "signal.signal(signal.SIGINT, lambda *_: (print('caught'), sys.exit(5)))",
    ),
    "SIGTERM caught": (
        signal.SIGTERM,
        "signal.signal(signal.SIGTERM, lambda *_: (print('caught'), sys.exit(5)))",
    ),
    "SIGINT by default": (signal.SIGINT, "signal.signal(signal.SIGINT, signal.SIG_DFL)"),
    "SIGUSR1": (signal.SIGUSR1, ""),
}


@pytest.mark.parametrize(("number", "source"), SIGNALS.values(), ids=SIGNALS)
def test_signals_reach_the_script_and_the_shell(tmp_path, number, source):
    write(tmp_path, SLEEPS.format(source))
    ends = []
    for words in (["script.py"], [DRIVER, "run", "--out", "out", "--force", "script.py"]):
        process = subprocess.Popen(
            [sys.executable, *words], cwd=tmp_path, env=environment(tmp_path), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # until it sleeps
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        ends.append((out, err, process.returncode))
    assert ends[0] == ends[1]


def test_the_order_of_output_is_kept_in_one_stream(tmp_path):
    write(tmp_path, "print('first')\n1 / 0")
    ends = [
        subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment(tmp_path), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        ).stdout
        for words in (["script.py"], [DRIVER, "run", "--out", "out", "script.py"])
    ]  # fmt: skip
    assert ends[0] == ends[1]


def test_a_reader_that_has_gone_is_noticed_as_ever(tmp_path):
    write(tmp_path, "for number in range(100000): print(number)")
    ends = []
    for words in (["script.py"], [DRIVER, "run", "--out", "out", "script.py"]):
        with subprocess.Popen(
            [sys.executable, *words], cwd=tmp_path, env=environment(tmp_path), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            process.stdout.close()
            err = process.stderr.read()
        ends.append((err, process.returncode))
    assert ends[0] == ends[1]


THREADS = """
import atexit, logging, os, sys, threading, time
atexit.register(lambda: print("first handler", threading.main_thread().is_alive()))
def work(seconds, then):
    time.sleep(seconds)
    print("thread", seconds)
    then()
def fails(): raise ValueError("in the handler")
threading.Thread(target=work, args=(0.2, lambda: None)).start()
threading.Thread(target=work, args=(0.4, lambda: sys.exit(3))).start()
threading.Thread(target=work, args=(0.6, lambda: 1 / 0), name="failing").start()
threading.Thread(target=work, args=(60, lambda: None), daemon=True).start()
atexit.register(fails)
atexit.register(print, "last handler")
print("main ends")
"""


def test_threads_and_exit_handlers_run_as_ever_and_we_finish_after_them(tmp_path):
    same(tmp_path, THREADS)
    write(tmp_path, THREADS + "atexit.register(lambda: print('handler', file=open('log', 'a')))")
    watched(tmp_path, "script.py")
    assert log(tmp_path)[1:] == ["finish NoneType", "handler", "finish NoneType"]


def test_what_is_raised_in_a_finaliser_is_shown_as_ever(tmp_path):
    same(
        tmp_path,
        """
        import sys
        class Bad:
            def __del__(self): raise ValueError("in __del__")
        Bad()
        sys.unraisablehook = lambda raised: print("hook", raised.exc_value)
        Bad()
        """,
    )


def test_an_exception_is_there_for_finish_to_see(tmp_path):
    same(tmp_path, "raise LookupError('x')")
    assert log(tmp_path)[1:] == ["finish LookupError", "finish LookupError"]


@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(4)", "1 / 0", "pass", "raise KeyboardInterrupt"])
def test_forked_children_end_unwatched(tmp_path, end):
    same(
        tmp_path,
        f"""
        import atexit, os, sys
        child = os.fork()
        if child == 0:
            atexit.register(print, "handler of the child")
            {end}
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    assert log(tmp_path)[1:] == ["finish NoneType", "finish NoneType"]


OS_EXITS = {
    "in the main part": "os._exit(5)",
    "by name": "from os import _exit; _exit(status=6)",
    "in a thread": "import threading; threading.Thread(target=os._exit, args=(7,)).start(); time.sleep(60)",
    "in an exit handler": "import atexit; atexit.register(os._exit, 8)",
    "in a signal handler": """
signal.signal(signal.SIGALRM, lambda *_: os._exit(9))
signal.alarm(1)
signal.pause()""",
}


@pytest.mark.parametrize("source", OS_EXITS.values(), ids=OS_EXITS)
def test_os_exit_ends_at_once_but_lets_us_finish(tmp_path, source):
    same(tmp_path, f"import os, signal, sys, time\nprint('lost in a buffer')\n{source}\n")
    assert "finish NoneType" in log(tmp_path)


def test_os_exit_complains_as_ever_and_looks_itself(tmp_path):
    same(tmp_path, "import os\nprint(os._exit.__name__, os._exit.__doc__)")
    write(tmp_path, "import os\nos._exit('x')")
    expected, found = (run(tmp_path, "script.py") for run in (plain, watched))
    assert found.stderr.splitlines()[-1] == expected.stderr.splitlines()[-1]
    assert found.returncode == 1


def test_a_failing_finish_is_one_sentence(tmp_path):
    write(tmp_path, "print('done'); raise SystemExit(4)")
    ended = watched(
        tmp_path, "script.py", env={"FAKE_FINISH": "raise OSError(28, 'No space left\\non device')"}
    )
    assert ended.returncode == 4
    assert ended.stdout == "done\n"
    assert set(ended.stderr.splitlines()) == {
        "anomprof: could not finish (OSError: [Errno 28] No space left on device); the script is not affected"
    }


FAILING = {
    "a clean end": ("pass", 1),
    "an exit": ("import sys; sys.exit(5)", 1),
    "an error": ("1 / 0", 1),
    "an interrupt": ("raise KeyboardInterrupt", 1),
    "os._exit": ("import os; os._exit(5)", 1),
}


@pytest.mark.parametrize(("source", "status"), FAILING.values(), ids=FAILING)
def test_the_status_that_was_asked_for_replaces_the_scripts(tmp_path, source, status):
    write(tmp_path, source)
    ended = watched(tmp_path, "script.py", options=["--fail-on", "anomaly"], env={"FAKE_STATUS": "1"})
    assert ended.returncode == status
    assert ("Traceback" in ended.stderr) == (source in ("1 / 0", "raise KeyboardInterrupt"))
    assert watched(tmp_path, "script.py", options=["--fail-on", "anomaly"]).returncode == (
        {"pass": 0, "1 / 0": 1, "raise KeyboardInterrupt": -2}.get(source, 5)
    )


def test_a_finding_in_a_thread_after_the_main_part_still_counts(tmp_path):
    write(
        tmp_path,
        """
        import os, threading, time
        print("main")
        def late():
            time.sleep(0.5)
            os.environ["FAKE_STATUS"] = "1"
            print("late")
        threading.Thread(target=late).start()
        """,
    )
    ended = watched(tmp_path, "script.py", options=["--fail-on", "anomaly"])
    assert (ended.returncode, ended.stdout) == (1, "main\nlate\n")


def test_ctrl_c_while_finishing_does_not_hang_or_show_a_traceback(tmp_path):
    write(tmp_path, "print('done', flush=True)")
    process = subprocess.Popen(
        [sys.executable, DRIVER, "run", "--out", "out", "script.py"], cwd=tmp_path, text=True,
        env=environment(tmp_path, FAKE_FINISH="import time; print('finishing', flush=True); time.sleep(60)"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for _ in range(2):
        while process.stdout.readline() not in ("finishing\n", ""):
            pass
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "KeyboardInterrupt" in err


@pytest.mark.skipif(not hasattr(os, "execv"), reason="has no exec")
def test_a_script_that_starts_itself_again_by_its_own_words_does_so_unwatched(tmp_path):
    same(
        tmp_path,
        """
        import os, sys
        print(sys.orig_argv, flush=True)
        if "again" not in sys.argv:
            os.execv(sys.executable, [*sys.orig_argv, "again"])
        """,
    )
