"""The user's names survive, and ours give way to them."""

from tile2cu.styles.base.names import Names, can_be_c_function


def test_names_are_kept() -> None:
    names = Names(["A_shared"])
    assert names("A_shared") == "A_shared"


def test_a_keyword_is_numbered() -> None:
    names = Names(["float", "float_1"])
    assert names("float") == "float_2"
    assert names("float") == "float_2"


def test_a_fresh_name_meets_no_user_name() -> None:
    assert Names(["C_layout"]).fresh("C_layout") == "C_layout_1"


def test_what_the_file_uses_itself_is_not_given_away() -> None:
    assert Names(["kernel"])("kernel") == "kernel_1"
    assert Names(["threads"], kept=["threads"])("threads") == "threads"


def test_reserved_underscores_vanish() -> None:
    assert Names(["__x"])("__x") == "x"


def test_keywords_and_namespaces_are_no_functions() -> None:
    assert [name for name in ("threads", "double", "tl", "main", "grid") if not can_be_c_function(name)] == [
        "double",
        "tl",
        "main",
    ]
