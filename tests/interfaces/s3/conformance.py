"""Runs ceph/s3-tests, from a checkout outside the repository, against the S3 door over a real appliance, and says what passed by group.

``python -m tests.interfaces.s3.conformance CHECKOUT [--only FILE] [--select EXPRESSION] [--json FILE] [--markdown FILE] [--workers N]``

1. The suite runs in a virtual environment of its own below the checkout, in `--workers` processes, each with principals of its own.
2. What is left out is what waits for days to pass or for another cloud (lifecycle expiration and transition, cloud tiers, bucket logging).
3. Every outcome is kept: ``--json`` writes test, group, outcome and the last line of what failed.
"""

from __future__ import annotations

import argparse
import configparser
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree.ElementTree import parse

from interfaces.s3 import S3Door
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.house_of_doors import HouseOfDoors, open_house
from tests.interfaces.s3.reasons import render_groups, render_reasons
from tests.serving import serving

FILES = ("s3tests/functional/test_s3.py", "s3tests/functional/test_headers.py")
EXTRAS = ("pytest-timeout", "awscrt")  # a bound for each test, and the checksums that boto3 needs it for
LEFT_OUT = "not lifecycle_expiration and not lifecycle_transition and not cloud_transition and not cloud_restore and not bucket_logging"
PEOPLE = ("s3 main", "s3 alt", "s3 tenant", "iam", "iam root", "iam alt root")
POLICY = """
version: 1
roles:
  owner: [owner]
  bucket-makers: [{names}]
grants:
  - id: services-work
    who:
      kinds: [service]
    actions: [list, read, write, delete, propose]
    paths: ["**"]
    limits:
      ttl: 24h
      budgets:
        bytes_written: 100GiB
  - id: bucket-makers-start
    who:
      roles: [bucket-makers]
    actions: [start]
guards: []
"""
GROUPS: Sequence[tuple[str, str]] = (
    ("headers", r"test_headers\.py"),
    ("encryption", r"sse|encrypt|_enc\[|_enc_"),
    ("object lock", r"object_lock"),
    ("form uploads", r"post_object"),
    ("policy", r"policy|principal"),
    ("public access", r"public_block|block_public|ignore_public|public_acl|authpublic"),
    ("access lists", r"acl|access_bucket|grants|ownership|read_unreadable|anon"),
    ("cors", r"cors"),
    ("lifecycle", r"lifecycle"),
    ("logging", r"logging"),
    ("tagging", r"tag"),
    ("versions", r"version|delete_marker"),
    ("multipart", r"multipart"),
    ("conditions", r"ifmatch|ifnonmatch|if_match|if_none|ifmodified|ifunmodified|conditional|if_last|if_size"),
    ("checksums", r"checksum"),
    ("copy", r"copy"),
    ("presigned", r"raw_|presigned|expires"),
    ("listing", r"list"),
    ("ranges", r"range"),
    ("atomic", r"atomic"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one test."""

    test: str
    outcome: str
    why: str = ""

    @property
    def name(self) -> str:
        """Return the name of the test without its module."""
        return self.test.partition("::")[2]

    @property
    def group(self) -> str:
        """Return the group a test belongs to, by its name."""
        return next((name for name, pattern in GROUPS if re.search(pattern, self.test)), "objects and buckets")


def main(arguments: Sequence[str]) -> int:
    """Run the suite and print what passed. Returns 0 when every selected test did."""
    options = _options().parse_args(arguments)
    checkout = Path(options.checkout).resolve()
    python = _environment(checkout)
    workers = range(options.workers)
    names = [_name(person, worker) for worker in workers for person in PEOPLE]
    with (
        tempfile.TemporaryDirectory() as folder,
        open_house(Path(folder), policy=POLICY.format(names=", ".join(names))) as house,
        serving(S3Door(house.control, pool=Pool("s3", 16), limits=Limits())) as url,
    ):
        tests = _collect(python, checkout, _configure(Path(folder), house, url, 0), options)
        configurations = [_configure(Path(folder), house, url, worker) for worker in workers]
        with ThreadPoolExecutor(options.workers) as pool:
            shares = [tests[worker :: options.workers] for worker in workers]
            outcomes = [
                each for share in pool.map(lambda a: _run(python, checkout, *a), zip(configurations, shares, strict=True)) for each in share
            ]
    outcomes.sort(key=lambda each: tests.index(each.test))
    of, passed = _count(outcomes)
    _print(outcomes, of, passed)
    if options.markdown:
        failed = [each.name for each in outcomes if each.outcome != "passed"]
        text = render_groups(of, passed) + "\n\n" + render_reasons(failed, _names(options.emphasise))
        Path(options.markdown).write_text(text + "\n", encoding="utf-8")
    if options.json:
        Path(options.json).write_text(json.dumps([vars(each) | {"group": each.group} for each in outcomes], indent=1) + "\n")
    return 0 if all(each.outcome == "passed" for each in outcomes) else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", help="a checkout of ceph/s3-tests")
    parser.add_argument("--only", help="a file with the ids of the tests to run, one a line")
    parser.add_argument("--select", default="", help="run what this expression selects, as pytest's -k")
    parser.add_argument("--json", help="write every outcome to this file")
    parser.add_argument("--markdown", help="write tables of the groups and of the failures with their reasons to this file")
    parser.add_argument("--emphasise", help="a file with the ids of tests that the tables print in bold")
    parser.add_argument("--workers", type=int, default=2, help="how many tests run at once")
    return parser


def _environment(checkout: Path) -> Path:
    """Return the interpreter of the suite's virtual environment, made when it is not there."""
    python = checkout / ".venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", checkout / ".venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", checkout / "requirements.txt", *EXTRAS], check=True)
    return python


def _name(person: str, worker: int) -> str:
    return f"{person.replace(' ', '-')}-{worker}"


def _configure(folder: Path, house: HouseOfDoors, url: str, worker: int) -> Path:
    """Return the suite's configuration for one worker, whose principals and key pairs are its own."""
    path = folder / f"s3tests-{worker}.conf"
    if path.exists():
        return path
    address = urlsplit(url)
    sections: dict[str, Mapping[str, str]] = {
        "DEFAULT": {"host": address.hostname or "", "port": str(address.port), "is_secure": "False", "ssl_verify": "False"},
        "fixtures": {"bucket prefix": f"w{worker}-{{random}}-"},
    }
    for person in PEOPLE:
        name = _name(person, worker)
        access_key, secret = house.key_pair(name)
        told = {"display_name": name, "user_id": name, "email": f"{name}@example.com", "access_key": access_key, "secret_key": secret}
        sections[person] = told | {"api_name": "us-east-1", "tenant": "testx"}
    configuration = configparser.RawConfigParser()
    configuration.read_dict(sections)
    with path.open("w", encoding="utf-8") as sink:
        configuration.write(sink)
    return path


def _collect(python: Path, checkout: Path, configuration: Path, options: argparse.Namespace) -> list[str]:
    command = [python, "-m", "pytest", "--collect-only", "-q", "-m", LEFT_OUT, "-k", options.select, *FILES]
    done = subprocess.run(command, cwd=checkout, env=_variables(configuration), capture_output=True, text=True, check=False, timeout=120)
    collected = [line for line in done.stdout.splitlines() if "::" in line]
    if not options.only:
        return collected
    wanted = set(Path(options.only).read_text(encoding="utf-8").split())
    return [test for test in collected if test in wanted]


def _run(python: Path, checkout: Path, configuration: Path, tests: Sequence[str]) -> list[Outcome]:
    """Run the tests of one worker. Those of checksums have Amazon's own runtime, which then signs as well and spoils other tests."""
    helped = [test for test in tests if re.search("checksum|cksum", test)]
    rest = [test for test in tests if test not in helped]
    return [
        each for share, crt in ((rest, False), (helped, True)) if share for each in _run_share(python, checkout, configuration, share, crt)
    ]


def _run_share(python: Path, checkout: Path, configuration: Path, tests: Sequence[str], crt: bool) -> list[Outcome]:
    report, share, log = (configuration.with_suffix(f".{crt}.{kind}") for kind in ("xml", "tests", "log"))
    share.write_text("\n".join(tests), encoding="utf-8")
    options = ["-v", "--durations=10", "-p", "no:cacheprovider", "--timeout=120", f"--junit-xml={report}"]
    with log.open("wb") as sink:
        variables = _variables(configuration) | {"BOTO_DISABLE_CRT": str(not crt).lower()}
        subprocess.run([python, "-m", "pytest", *options, f"@{share}"], cwd=checkout, env=variables, stdout=sink, check=False)
    names = {test.partition("::")[2]: test for test in tests}
    found: dict[str, Outcome] = {}
    for case in parse(report).getroot().iter("testcase"):
        # A test that fails and then cannot be cleaned up is reported twice; the first report says why.
        if case.get("name") in names:
            found.setdefault(names[case.get("name")], _read(case, names))
    return list(found.values())


def _variables(configuration: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {"S3TEST_CONF": os.fspath(configuration)}


def _read(case: object, names: Mapping[str, str]) -> Outcome:
    test = names[case.get("name")]
    for problem in case:
        if problem.tag in {"failure", "error", "skipped"}:
            last = (problem.get("message") or "").strip().splitlines() or [""]
            return Outcome(test, "skipped" if problem.tag == "skipped" else "failed", last[0][:300])
    return Outcome(test, "passed")


def _names(file: str | None) -> frozenset[str]:
    """Return the names of the tests that a file of ids lists."""
    return frozenset(id.partition("::")[2] for id in Path(file).read_text(encoding="utf-8").split()) if file else frozenset()


def _count(outcomes: Sequence[Outcome]) -> tuple[Counter[str], Counter[str]]:
    """Return how many tests each group has, and how many of them passed."""
    return Counter(each.group for each in outcomes), Counter(each.group for each in outcomes if each.outcome == "passed")


def _print(outcomes: Sequence[Outcome], of: Counter[str], passed: Counter[str]) -> None:
    for each in outcomes:
        if each.outcome != "passed":
            print(f"{each.outcome} {each.name}: {each.why}")
    for group in sorted(of):
        print(f"{group:22} {passed[group]:4} of {of[group]:4}")
    print(f"{'all':22} {passed.total():4} of {of.total():4}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
