"""Labels and git: nothing that is pushed says what a label is."""

from __future__ import annotations

from nasd.runs import MAIN
from tests.interfaces.git.conftest import Site, commit, git, refused
from trust.labels import Label, Origin, Sensitivity

EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)


def label_of(site: Site, branch: str, path: bytes) -> Label:
    house = site.house.house
    tree = house.appliance.engine.view(house.appliance.engine.branch(branch).head)
    found = tree.attributes(tree.lookup(1, path).node)
    return house.trust.ledger.label(house.trust.policy(), path, found.content)


def test_trailers_attributes_and_notes_of_a_push_lower_no_label(site: Site) -> None:
    site.house.house.trust.ledger.mark("README.md", EXTERNAL)
    started = site.house.start_run()
    clone = site.clone(started.secret, started.branch, user=started.lease, name="labelled")
    files: dict[str, bytes | None] = {
        "README.md": b"rewritten, and quite long enough to be recognised anywhere\n",
        "copy.md": b"what a stranger wrote, told again by somebody who read it\n",
        ".gitattributes": b"*.md nas-origin=owner\n",
    }
    commit(clone, files, "Endorsed\n\nNas-Origin: owner\nNas-Sensitivity: public\nNas-Endorsed: yes\n")
    git(clone, "notes", "--ref=nas-labels", "add", "-m", "copy.md owner/public")
    git(clone, "push", "--quiet", "origin", f"HEAD:{started.branch}")
    assert site.house.house.trust.ledger.taint(started.run) == EXTERNAL
    assert label_of(site, started.branch, b"README.md") == label_of(site, started.branch, b"copy.md") == EXTERNAL
    refused(clone, "push", "origin", "refs/notes/nas-labels")
    document = site.house.call(started.secret, "proposal.make", {"run": started.run, "message": "work"})
    assert document["decision"] == "merged"
    assert label_of(site, MAIN, b"copy.md") == EXTERNAL
