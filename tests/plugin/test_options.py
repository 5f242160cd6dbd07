"""The other options, their ini twins, and their bad values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import RESNET, VIT, hub, net

if TYPE_CHECKING:
    from tests.plugin.project import Project


def test_without_a_path_the_suites_folder_runs_and_nothing_else(project: Project) -> None:
    project.suite(name="deep/er/a")
    project.suite(name="b")
    project.write("tests/test_it.py", "def test_it(): pass")
    project.write("tests/c.toml", "modality = 'vision'")
    result = project.run("--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "suites/b.toml::net::finite",
        "suites/b.toml::net::anisotropy",
        "suites/deep/er/a.toml::net::finite",
        "suites/deep/er/a.toml::net::anisotropy",
    ]


def test_without_a_path_and_without_the_folder_one_line_says_so(project: Project) -> None:
    result = project.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --isotest without a path runs the suites folder, and *"])


def test_the_flag_takes_no_value_so_that_a_path_may_follow(project: Project) -> None:
    project.suite(name="a")
    project.suite(name="b")
    result = project.run("suites/a.toml", "--collect-only", "-q")
    assert {line.partition("::")[0] for line in result.outlines if "::" in line} == {
        "suites/a.toml"
    }


@pytest.mark.parametrize(
    ("options", "ini", "fault"),
    [
        (("--isotest-samples", "6.5"), (), "--isotest-samples: expected a whole number of at lea"),
        (("--isotest-samples", "1"), (), "--isotest-samples: expected a whole number of at least"),
        (("--isotest-batch-size", "0"), (), "--isotest-batch-size: expected a whole number of at"),
        (("--isotest-batch-size", "all"), (), "--isotest-batch-size: expected a whole number of"),
        (("--isotest-model", "net"), (), "--isotest-model 'net': expected NAME=SOURCE, as in *"),
        (("--isotest-model", "=init:vit"), (), "--isotest-model '=init:vit': expected NAME=SOUR"),
        (("--isotest-model", "net="), (), "--isotest-model 'net=': expected NAME=SOURCE*"),
        (("--isotest-model", "net=pth:x"), (), "*net: *'pth'; did you mean 'path'*"),
        (("--isotest-model", "net=init:vit", "--isotest-model", "net=init:vit"), (), "*given twic"),
        (("--isotest-model", "nut=init:vit"), (), "*no entry is named 'nut'; did you mean 'net'*"),
        ((), ("isotest_update = some",), "isotest_update: expected missing, failing or all, fou"),
        ((), ("isotest_metrics = some",), "isotest_metrics: expected default or all, found 'some'"),
        ((), ("isotest_dtype = int8",), "isotest_dtype: expected float32, float64, bfloat16 or f"),
        ((), ("isotest_suites = nowhere",), "*runs the suites folder, and */nowhere is not there"),
    ],
)
def test_a_bad_value_is_one_line_and_exit_code_4(
    project: Project, options: tuple[str, ...], ini: tuple[str, ...], fault: str
) -> None:
    project.suite()
    project.ini(*ini)
    result = project.run(*options)
    assert result.ret == 4
    lines = [line for line in result.errlines if line]
    assert len(lines) == 1
    result.stderr.fnmatch_lines([f"ERROR: {fault}*"])


@pytest.mark.parametrize("option", ["--isotest-update=some", "--isotest-dtype=int8"])
def test_a_choice_that_is_none_is_argparse_s_own_message(project: Project, option: str) -> None:
    project.suite()
    result = project.run(option)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*argument {option.partition('=')[0]}: invalid choice: *"])


def test_a_name_that_no_entry_has_is_one_line_with_workers_too(project: Project) -> None:
    project.suite()
    result = project.distributed("--isotest-model", "nut=python:nets:net")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *no entry is named 'nut'; did you mean 'net'?"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_name_that_two_suites_have_needs_a_path(project: Project) -> None:
    project.suite(name="a")
    project.suite(name="b")
    result = project.run("--isotest-model", "net=python:nets:net")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --isotest-model: several suites have an entry 'net' *"])


PROTOCOL = [
    (("--isotest-dtype", "float64"), "dtype: the baseline has 'float32', this run 'float64'"),
    (("--isotest-samples", "6"), "data.samples: the baseline has 12, this run 6"),
]


@pytest.mark.parametrize(("options", "difference"), PROTOCOL)
def test_another_protocol_is_not_comparable_and_says_what_differs(
    project: Project, options: tuple[str, ...], difference: str
) -> None:
    project.suite()
    project.record()
    result = project.run(*options)
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*::anisotropy: not comparable: *{difference}*"])


def test_another_protocol_is_not_comparable_with_workers_either(project: Project) -> None:
    project.suite(VIT)
    project.record()
    options = [option for given, _ in PROTOCOL for option in given]
    # Measured here, so that the workers find it in the cache.
    assert project.run(*options).ret == 1
    result = project.distributed(*options)
    assert result.ret == 1
    for _, difference in PROTOCOL:
        result.stdout.fnmatch_lines([f"*::anisotropy: not comparable: *{difference}*"])


def test_all_samples(project: Project) -> None:
    project.suite(data='source = "folder:../images"\nsamples = 6')
    result = project.run("--isotest-samples", "all")
    result.stdout.fnmatch_lines(["*12 samples*"])


def test_more_samples_than_there_are(project: Project) -> None:
    project.suite()
    result = project.run("--isotest-samples", "600")
    assert result.ret == 1
    assert "600 samples are asked for, but there are only 12" in str(result.stdout)


def test_a_device_that_is_not_here_fails_and_says_what_is(project: Project) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("needs a machine without CUDA")
    project.suite()
    result = project.run("--isotest-device", "cuda")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["device 'cuda' was asked for, *--isotest-device cpu"])
    project.suite(net(more="optional = true"), net("always"))
    skipped = project.run("--isotest-device", "cuda", "--isotest-allow-skips")
    skipped.assert_outcomes(skipped=4, failed=1, passed=1)


def test_a_device_that_nobody_knows(project: Project) -> None:
    project.suite(net(more="optional = true"))
    result = project.run("--isotest-device", "fridge")
    result.assert_outcomes(failed=3, passed=1)
    assert "unknown device 'fridge'" in str(result.stdout)


def test_what_is_missing_skips_only_where_that_is_allowed(project: Project) -> None:
    missing = "*isotest-tests/absent is not in the Hugging Face cache; *--isotest-download*"
    project.suite(net(), hub(more="optional = true"))
    project.record()
    optional = project.run("-rs")
    assert optional.ret == 0
    optional.assert_outcomes(passed=5, skipped=2)
    optional.stdout.fnmatch_lines([f"SKIPPED * {missing}"])

    project.suite(net(), hub())
    required = project.run()
    assert required.ret == 1
    required.assert_outcomes(passed=5, failed=2)
    required.stdout.fnmatch_lines([missing, "(*'optional = true'*--isotest-allow-skips)"])

    allowed = project.run("--isotest-allow-skips")
    assert allowed.ret == 0
    allowed.assert_outcomes(passed=5, skipped=2)


def test_skips_with_workers(project: Project) -> None:
    project.suite(VIT, hub("a", more="optional = true"), hub("b"))
    assert project.run("--isotest-update=missing").ret == 1
    assert project.run().ret == 1
    result = project.distributed()
    assert result.ret == 1
    result.assert_outcomes(passed=5, skipped=2, failed=2)


def test_reports_as_json_and_markdown(project: Project) -> None:
    project.suite(VIT, RESNET)
    project.record()
    options = ("--isotest-json", "out/results.json", "--isotest-summary", "out/summary.md")
    (project.path / "out").mkdir()
    texts = []
    for run in (project.run, project.run, project.distributed):
        result = run(*options, "--isotest-batch-size", "5")
        assert result.ret == 0
        text = (project.path / "out" / "results.json").read_text()
        document = json.loads(text)
        assert (document["format"], document["format_version"]) == ("isotest-results", 1)
        entries = sorted(document["entries"], key=lambda entry: str(entry["model"]))
        assert [entry["model"] for entry in entries] == ["resnet", "vit"]
        for entry in entries:
            assert [check["name"] for check in entry["checks"]] == ["finite", "anisotropy"]
            assert {check["result"] for check in entry["checks"]} == {"passed"}
        summary = (project.path / "out" / "summary.md").read_text()
        for name in ("resnet", "vit"):
            assert re.search(rf"^\| {name} \| ✅ passed \|", summary, re.MULTILINE)
        for entry in entries:
            # What differs between measured and cached, and that only.
            entry.pop("seconds", None)
            entry.pop("cached", None)
        texts.append(entries)
    assert texts[0] == texts[1] == texts[2]


def test_a_report_that_cannot_be_written_is_red(project: Project) -> None:
    project.suite()
    project.record()
    result = project.run("--isotest-json", "nowhere/results.json")
    assert result.ret == 1
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*nowhere/results.json: cannot be written: *"])


def test_trusting_remote_code_is_an_option_and_never_a_key(project: Project) -> None:
    project.suite()
    project.record()
    assert project.run("--isotest-trust-remote-code", "--isotest-download").ret == 0
    project.suite(net(more="trust_remote_code = true"))
    result = project.run()
    assert result.ret == 2
    result.stdout.fnmatch_lines(["suites/tiny.toml:*unknown key 'trust_remote_code'*"])


def test_ini_twins(project: Project) -> None:
    """Every option can stand in the ini file, and the command line wins."""
    project.suite(net(), hub(), name="../gates/tiny")
    project.ini(
        "isotest = true",
        "isotest_suites = gates",
        "isotest_baselines = accepted",
        "isotest_update = missing",
        "isotest_allow_skips = true",
        "isotest_dtype = float64",
        "isotest_samples = 6",
        "isotest_batch_size = 4",
        "isotest_json = results.json",
        "isotest_summary = summary.md",
        "isotest_device = cpu",
        "isotest_download = false",
    )
    recorded = project.plain()
    assert recorded.ret == 0
    recorded.assert_outcomes(passed=4, skipped=2)
    recorded.stdout.fnmatch_lines(["*6 samples*", "*float64 on cpu*"])
    assert (project.path / "accepted" / "tiny" / "net.json").exists()
    assert json.loads((project.path / "results.json").read_text())["entries"]
    assert (project.path / "summary.md").exists()
    overridden = project.plain("--isotest-samples", "8", "--isotest-dtype", "float32")
    assert overridden.ret == 1
    assert "not comparable: protocol, data.samples: the baseline has 6, this run 8; " in str(
        overridden.stdout
    )


def test_ini_twin_of_the_stand_ins(project: Project) -> None:
    project.suite()
    project.record()
    project.ini("isotest_model =", "    net=path:nowhere")
    result = project.run()
    assert result.ret == 1
    assert "source 'path:nowhere': nothing at" in str(result.stdout)


def test_every_option_is_in_the_help_and_prefixed(project: Project) -> None:
    result = project.plain("--help")
    text = str(result.stdout)
    options = set(re.findall(r"--isotest[a-z-]*", text))
    assert len(options) >= 14
    for option in options:
        twin = option.removeprefix("--").replace("-", "_")
        assert re.search(rf"^  {twin} \(", text, re.MULTILINE), twin
