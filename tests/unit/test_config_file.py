"""The configuration file: values, mistakes told together, each with its line and a suggestion."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.config import RouteSettings, Settings, load
from oncekey.config.lines import line_of
from oncekey.core.errors import ConfigurationError

Write = Callable[[str], Path]

FORMS = "write 30s, 15m, 24h, 7d or 1d12h"
POLICIES = "REQUIRED_A, REQUIRED_B, ACCEPTED, HANDLER_INTERNAL_C, PROHIBITED"
ROUTE = "[[routes]]\npath = '/a'\nrequired = true\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str) -> Path:
        file = tmp_path / "oncekey.toml"
        file.write_text(text)
        return file

    return write_file


def mistakes(file: Path, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(file, environ)
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]


def test_no_file_and_no_environment_give_the_defaults() -> None:
    settings = load()
    assert settings.store.url.startswith("sqlite:///")
    assert (settings.store.lease, settings.store.heartbeat) == (15.0, None)
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8700)
    assert settings.routes == ()
    assert settings.retention == {}


def test_every_kind_of_value_is_read(write: Write) -> None:
    settings = load(
        write(
            """
            store = { url = "postgresql://db/app", lease = "30s", heartbeat = 2.5 }
            app.target = "shop.main:create.app"
            [server]
            port = 9000
            [retention]
            nightly = "1d12h"
            [[routes]]
            path = "/orders/{id}"
            methods = ["post", "PATCH"]
            policy = "REQUIRED_A"
            in_flight = "attach"
            attach_timeout = "5s"
            retention = "nightly"
            fingerprint = ["amount", "card.number"]
            store_server_errors = true
            max_stored_body = 10
            drop_headers = ["X-Trace"]
            """
        )
    )
    assert (settings.store.url, settings.store.lease) == ("postgresql://db/app", 30.0)
    assert settings.store.heartbeat == 2.5
    assert settings.app.target == "shop.main:create.app"
    assert settings.server.port == 9000
    assert settings.retention == {"nightly": 129600.0}
    assert settings.routes == (
        RouteSettings(
            path="/orders/{id}",
            methods=("POST", "PATCH"),
            policy="REQUIRED_A",
            in_flight="attach",
            attach_timeout=5.0,
            retention="nightly",
            fingerprint=("amount", "card.number"),
            store_server_errors=True,
            max_stored_body=10,
            drop_headers=("X-Trace",),
        ),
    )


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        load().store.url = "memory://"  # type: ignore[misc]


def test_an_unknown_key_is_told_with_its_line_and_what_was_meant(write: Write) -> None:
    file = write('[store]\nurl = "memory://"\nlaese = "5s"\n')
    assert mistakes(file) == ["3: there is no setting store.laese; did you mean 'lease'?"]


def test_an_unknown_key_like_nothing_is_told_with_what_there_is(write: Write) -> None:
    (mistake,) = mistakes(write('[app]\nxyzzy = "5s"\n'))
    assert mistake == "2: there is no setting app.xyzzy; known are: target, workflows, examples"


def test_an_unknown_section_is_told_with_what_was_meant(write: Write) -> None:
    assert mistakes(write("\n[sever]\n")) == [
        "2: there is no setting sever; did you mean 'server'?"
    ]


def test_all_mistakes_are_told_together_in_the_order_of_the_file(write: Write) -> None:
    file = write(
        """
        [store]
        ulr = "memory://"
        lease = "soon"
        [server]
        port = "8700"
        [retention]
        Nightly = "1d"
        [[routes]]
        policy = "REQUIRED_A"
        [[routes]]
        path = "orders"
        policy = "REQUIRED"
        """
    )
    assert mistakes(file) == [
        "3: there is no setting store.ulr; did you mean 'url'?",
        f"4: store.lease must be a duration: 'soon' is not a duration; {FORMS}",
        "6: server.port must be a whole number, not the text '8700'",
        "8: retention class 'Nightly' must be a-z, 0-9, '-' or '_', 32 at most",
        '9: a route needs a path, such as path = "/orders"',
        "12: route path 'orders' must start with '/'",
        f"13: routes[1].policy is 'REQUIRED', not one of {POLICIES}; did you mean 'REQUIRED_A'?",
    ]


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("store = 5", "1: store must be a table"),
        ("[store]\nurl = 5", "2: store.url must be text in quotes, not 5"),
        ("[store]\nurl = ''", "2: store.url must not be empty"),
        ("[store]\nlease = -1", "2: store.lease must be a duration above 0, not -1"),
        ("[store]\nlease = true", "2: store.lease must be a duration such as '30s'"),
        ("[server]\nport = 70000", "2: server.port must be between 0 and 65535, not 70000"),
        ("[server]\nport = true", "2: server.port must be a whole number, not true"),
        ("[server]\nworkers = 0", "2: server.workers must be between 1 and 256, not 0"),
        ("[app]\ntarget = 'app'", "2: app.target is 'app', not of the form 'module:name'"),
        ("[retention]\nnightly = []", "2: retention.nightly must be a duration"),
        ("retention = 5", "1: retention must be a table"),
        ("[routes]\npath = '/'", "1: routes must be an array of tables: write [[routes]]"),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_is_expected(
    write: Write, text: str, mistake: str
) -> None:
    (told,) = mistakes(write(text))
    assert told.startswith(mistake)


@pytest.mark.parametrize(
    "option, mistake",
    [
        ("methods = 'POST'", "methods must be a list of texts, not the text 'POST'"),
        ("methods = []", "methods must not be an empty list"),
        ("methods = ['PSOT']", "methods has 'PSOT', not one of GET, HEAD, POST"),
        ("in_flight = 'wait'", "in_flight is 'wait', not one of conflict, attach"),
        ("fail_open = 'yes'", "fail_open must be true or false, not the text 'yes'"),
        ("fingerprint = 'body'", "fingerprint is 'body', neither one of value, bytes"),
        ("drop_headers = ['a b']", "drop_headers has 'a b', which is not the name of a header"),
        ("max_stored_body = -1", "max_stored_body must be between 0 and 1099511627776, not -1"),
    ],
)
def test_an_option_of_a_route_says_what_is_expected(
    write: Write, option: str, mistake: str
) -> None:
    (told,) = mistakes(write(f"{ROUTE}{option}\n"))
    assert told.startswith(f"4: routes[0].{mistake}")


def test_a_route_that_changes_things_needs_a_policy(write: Write) -> None:
    (mistake,) = mistakes(write("[[routes]]\npath = '/orders'\n"))
    assert mistake.startswith("1: the route /orders changes things and has no policy: add policy")


def test_a_route_that_only_reads_needs_none(write: Write) -> None:
    (each,) = load(write("[[routes]]\npath = '/orders'\nmethods = ['GET']\n")).routes
    assert each.policy is None


def test_a_route_has_a_policy_or_says_required_not_both(write: Write) -> None:
    file = write("[[routes]]\npath = '/a'\npolicy = 'ACCEPTED'\nrequired = true\n")
    assert mistakes(file) == ["4: a route has a policy or says required, not both"]


def test_the_same_route_twice_is_told(write: Write) -> None:
    file = write(
        "[[routes]]\npath = '/a/{id}'\nrequired = true\n"
        "[[routes]]\npath = '/a/{other}'\nmethods = ['PUT']\nrequired = false\n"
    )
    assert mistakes(file) == ["5: routes[1] and routes[0] are the same route /a/{other}; keep one"]


def test_one_path_may_have_a_route_per_method(write: Write) -> None:
    file = write(
        "[[routes]]\npath = '/a'\nmethods = ['POST']\nrequired = true\n"
        "[[routes]]\npath = '/a'\nmethods = ['PUT']\nrequired = false\n"
    )
    assert len(load(file).routes) == 2


def test_a_route_names_a_retention_class_that_exists(write: Write) -> None:
    file = write("[[routes]]\npath = '/a'\nrequired = true\nretention = 'finacial'\n")
    assert mistakes(file) == ["4: [retention] has no class 'finacial'; did you mean 'financial'?"]


def test_names_in_small_letters_are_recognised(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("[[routes]]\npath = '/orders'\npolicy = 'required_a'\n")
    assert mistakes(file) == [
        f"3: routes[0].policy is 'required_a', not one of {POLICIES}; did you mean 'REQUIRED_A'?"
    ]


@pytest.mark.parametrize(
    "options, mistake",
    [
        ("takeover = 'recover'", '4: takeover = "recover" needs a function to ask'),
        ("recover = 'app:find'", '4: recover is only asked with takeover = "recover"'),
    ],
)
def test_recovering_needs_both_halves(write: Write, options: str, mistake: str) -> None:
    (told,) = mistakes(write(f"[[routes]]\npath = '/a'\nrequired = true\n{options}\n"))
    assert told.startswith(mistake)


def test_the_heartbeat_is_shorter_than_the_lease(write: Write) -> None:
    file = write("[store]\nlease = '5s'\nheartbeat = '5s'\n")
    assert mistakes(file) == ["3: store.heartbeat must be shorter than store.lease"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_a_demo_key_is_for_this_machine(write: Write, host: str) -> None:
    file = write(f"[server]\nhost = '{host}'\n[auth.api_keys]\ndemo = true\n")
    assert load(file).auth.api_keys.demo


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com"])
def test_a_demo_key_is_refused_where_others_can_reach_it(write: Write, host: str) -> None:
    (mistake,) = mistakes(write(f"[server]\nhost = '{host}'\n[auth.api_keys]\ndemo = true\n"))
    assert mistake.startswith(f"4: a demo key is for one machine, and server.host is {host!r}; ")
    (mistake,) = mistakes(write(f"[server]\nhost = '{host}'\n[console]\ndemo = true\n"))
    assert mistake.startswith("4: a demo key of an admin is for one machine, and server.host is ")


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("port = 9000\ngrpc_port = 9000", "3: server.port and server.grpc_port are both 9000"),
        ("workers = 2\ngrpc_port = 0", "3: grpc_port = 0 would be another port in each of "),
        ("grpc_port = 70000", "2: server.grpc_port must be between 0 and 65535, not 70000"),
    ],
)
def test_ports_that_cannot_be(write: Write, text: str, mistake: str) -> None:
    (told,) = mistakes(write(f"[server]\n{text}\n"))
    assert told.startswith(mistake)


def test_what_is_not_toml_is_told_with_its_line(write: Write) -> None:
    (mistake,) = mistakes(write("[store]\nurl memory\n"))
    assert mistake.startswith("2: this is not TOML: ")


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("a = " + "[" * 5000, "is nested too deeply"),
        ("a = " + "{b=" * 5000, "is nested too deeply"),
        ("a = " + "1" * 5000, "holds a number of more digits than can be read"),
    ],
)
def test_toml_that_no_library_can_read_is_told(write: Write, text: str, mistake: str) -> None:
    file = write(text)
    with pytest.raises(ConfigurationError) as raised:
        load(file)
    assert str(raised.value) == f"{file} {mistake}"


def test_toml_that_ends_too_early_is_told_with_its_last_line(write: Write) -> None:
    (mistake,) = mistakes(write("[store]\nurl = "))
    assert mistake.startswith("2: this is not TOML: ")


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist; name another with --config"):
        load(tmp_path / "nowhere.toml")


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path / "oncekey.toml")


def test_a_relative_path_starts_where_the_file_is(write: Write, tmp_path: Path) -> None:
    settings = load(write('[store]\nurl = "sqlite:///data/keys.db"\n'))
    assert settings.store.url == f"sqlite:///{tmp_path}/data/keys.db"
    assert settings.folder == tmp_path


@pytest.mark.parametrize("url", ["sqlite:////var/keys.db", "sqlite:///~/keys.db", "memory://"])
def test_any_other_url_stays_as_it_is(write: Write, url: str) -> None:
    assert load(write(f'[store]\nurl = "{url}"\n')).store.url == url


def test_lines_are_found_around_strings_arrays_and_comments() -> None:
    text = (
        'a = """\n[b]\nc = 1\n"""\n'  # 1-4
        "d = [\n  1, # ]\n  '[',\n]\n"  # 5-8
        '[b]\n"c d" = 1\n'  # 9-10
        "[[r]]\nx = 1\n[[r]]\ny.z = { k = 1 }\n"  # 11-14
        "[r.inner]\nw = '''\n'''\n"  # 15-17
        "[[r.list]]\nv = 1\n"  # 18-19
    )
    tomllib.loads(text)
    places = {
        ("a",): 1, ("d",): 5, ("b",): 9, ("b", "c d"): 10, ("r", 0, "x"): 12, ("r", 1): 13,
        ("r", 1, "y"): 14, ("r", 1, "y", "z"): 14, ("r", 1, "y", "z", "k"): 14,
        ("r", 1, "inner", "w"): 16, ("r", 1, "list", 0, "v"): 19, ("nowhere",): 1,
    }  # fmt: skip
    assert {path: line_of(text, path) for path in places} == places


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["[store]", "[[routes]]", "[x.y]"]),
            st.lists(
                st.sampled_from(["'#['", '"\\"]"', '"""\n[z]\nq=1"""', "[\n1,\n[2]]", "{n=1}"])
            ),
        )
    ),
    st.integers(0, 5),
)
def test_the_line_after_anything_is_found(
    blocks: list[tuple[str, list[str]]], comments: int
) -> None:
    text = "#\n" * comments
    for index, (header, values) in enumerate(blocks):
        text += f"{header.replace('store', f'store{index}').replace('x.', f'x{index}.')}\n"
        text += "".join(f"key{number} = {value}\n" for number, value in enumerate(values))
    text += "[last]\nkey = 1\n"
    tomllib.loads(text)
    assert text.splitlines()[line_of(text, ("last", "key")) - 1] == "key = 1"


def test_the_folder_of_no_file_is_where_the_command_runs() -> None:
    assert load().folder == Path.cwd()
    assert isinstance(load(), Settings)
