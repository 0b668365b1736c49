from anomprof.tracing.loops import depth_of


def test_the_depth_of_a_line_is_the_number_of_loops_around_it(tmp_path):
    source = """
def train():
    step()
    for _ in range(3):
        step()
        while True:
            step()
            break
    def closure():
        step()
"""
    file = tmp_path / "loops.py"
    file.write_text(source)
    names = {}
    exec(compile(source, str(file), "exec"), names)
    code = names["train"].__code__
    lines = {}
    for start, _, line in code.co_lines():
        lines.setdefault(line, start)
    assert [depth_of((code, lines[line])) for line in (3, 5, 7)] == [0, 1, 2]


def test_a_line_without_source_has_no_depth():
    code = compile("x = 1", "<nowhere>", "exec")
    assert depth_of((code, 0)) == 0
