"""Runs in processes of their own: the limit is one of the whole process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit exists on Linux only")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_memory_that_the_machine_does_not_have_is_an_error_and_not_the_end_of_the_process():
    ended = run(
        "import psutil, torch\n"
        "from anomprof.environment.memory_cap import memory_capped\n"
        "from anomprof.harness.rounds import is_out_of_memory\n"
        # Half of what is free at first, then all of it: without a limit Linux promises both.
        "half = psutil.virtual_memory().available // 2\n"
        "with memory_capped(torch.device('cpu')):\n"
        "    kept = torch.empty(half, dtype=torch.uint8)\n"
        "    try:\n"
        "        torch.empty(2 * half, dtype=torch.uint8)\n"
        "    except Exception as error:\n"
        "        print(is_out_of_memory(error))\n"
    )
    assert ended.stdout.strip() == "True", ended.stderr


def test_the_limit_is_lifted_again():
    ended = run(
        "import resource, torch\n"
        "from anomprof.environment.memory_cap import memory_capped\n"
        "before = resource.getrlimit(resource.RLIMIT_DATA)\n"
        "with memory_capped(torch.device('cpu')):\n"
        "    print(resource.getrlimit(resource.RLIMIT_DATA) != before)\n"
        "print(resource.getrlimit(resource.RLIMIT_DATA) == before)\n"
    )
    assert ended.stdout.split() == ["True", "True"]


def test_an_accelerator_gets_no_limit():
    ended = run(
        "import resource, torch\n"
        "from anomprof.environment.memory_cap import memory_capped\n"
        "before = resource.getrlimit(resource.RLIMIT_DATA)\n"
        "with memory_capped(torch.device('cuda')):\n"
        "    print(resource.getrlimit(resource.RLIMIT_DATA) == before)\n"
    )
    assert ended.stdout.strip() == "True"
