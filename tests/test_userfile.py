import pytest

from anomprof.errors import UserError
from anomprof.userfile import describe, load


def test_a_file_is_imported_once_and_may_import_its_neighbours(tmp_path):
    (tmp_path / "other_file_of_a.py").write_text("VALUE = 7")
    path = tmp_path / "user_file_a.py"
    path.write_text("import other_file_of_a\nclass Thing:\n    value = other_file_of_a.VALUE\n")
    thing, where = load(f"{path}:Thing", "mode")
    assert thing.value == 7
    assert where == path
    assert load(f"{path}:Thing", "mode")[0] is thing


def test_a_file_called_like_a_loaded_module_does_not_replace_it(tmp_path):
    import json

    path = tmp_path / "json.py"
    path.write_text("def make(): return 1\n")
    assert load(f"{path}:make", "workload factory")[0]() == 1
    import json as again

    assert again is json
    assert hasattr(again, "dumps")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("def mike(): pass", r"has no mode 'make' \(did you mean 'mike'\?\); there are mike"),
        ("x = 1", "there is nothing in it that could be called"),
        (
            "1 / 0",
            r"importing user_file_b.py failed: ZeroDivisionError: division by zero \(user_file_b.py:1\)",
        ),
        ("def make(:", r"SyntaxError: .* \(user_file_b.py:1\)"),
        ("raise SystemExit(3)", r"SystemExit: 3 \(user_file_b.py:1\)"),
    ],
)
def test_a_file_that_is_of_no_use_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "user_file_b.py"
    path.write_text(content)
    with pytest.raises(UserError, match=said):
        load(f"{path}:make", "mode")


def test_the_innermost_line_of_the_users_file_is_named(tmp_path):
    path = tmp_path / "user_file_c.py"
    path.write_text("import json\ndef make():\n    return json.loads('{')\n")
    make, where = load(f"{path}:make", "mode")
    with pytest.raises(ValueError, match="Expecting") as caught:
        make()
    assert describe(caught.value, where).endswith("(user_file_c.py:3)")
