import pytest

pytest.register_assert_rewrite("tests.running.side_by_side")
