import sys
import types

from anomprof.tracing.frames import LIBRARY, USER, FrameReader, describe, line_of


def engine():
    pass


def reader(*boundaries):
    return FrameReader(boundaries, engine.__code__)


def test_this_file_is_the_users_and_the_standard_library_is_not():
    assert reader().kind(test_this_file_is_the_users_and_the_standard_library_is_not.__code__) == USER
    assert reader().kind(types.new_class.__code__) == LIBRARY
    assert reader().kind(compile("1", "<string>", "exec")) == LIBRARY
    assert reader().kind(compile("1", "<stdin>", "exec")) == USER  # typed at a prompt: that is the user's


def test_the_installed_package_that_is_run_counts_as_the_users():
    import click

    folder = click.__file__.rpartition("/")[0] + "/"
    assert reader().kind(click.echo.__code__) == LIBRARY
    assert FrameReader((), engine.__code__, lambda: (folder,)).kind(click.echo.__code__) == USER


def outer(read):
    return inner(read)


def inner(read):
    return read(sys._getframe())


def test_frames_are_read_from_the_inside_out():
    points = outer(reader().read)
    assert [code.co_name for code, _ in points][:3] == ["inner", "outer", points[2][0].co_name]
    frame = describe(points[0], "/")
    assert (frame.function, frame.code) == ("inner", "return read(sys._getframe())")


def test_reading_stops_at_a_boundary():
    points = outer(reader(outer.__code__).read)
    assert [code.co_name for code, _ in points] == ["inner"]


def test_a_handler_of_the_users_own_mode_is_not_the_place():
    def __torch_dispatch__(read):
        return read(sys._getframe())

    def op(read):
        return __torch_dispatch__(read)

    points = op(reader().read)
    assert points[0][0].co_name == "op"


def test_in_the_engine_only_what_runs_inside_it_counts():
    def run(read):
        return read(sys._getframe())

    def hook(read):
        return run(read)

    own = FrameReader((), hook.__code__)
    assert [code.co_name for code, _ in hook(own.read_in_engine)[1]] == ["run"]


def test_a_line_is_found_within_a_statement_of_several_lines():
    def spread():
        return outer(
            reader().read,
        )

    point = next(point for point in spread() if point[0].co_name == "spread")
    assert line_of(point) - point[0].co_firstlineno in (1, 2)
