"""The tables, and what stands between a program's mistake and the records.

1. The database's version is in ``user_version``: how many of `STEPS` were taken. A later one is refused instead of guessed at. Steps are
   only ever appended: a database that exists took the ones before.
2. Triggers keep records append-only and gapless; ``recursive_triggers`` makes them hold against ``INSERT OR REPLACE`` too. They let pass
   two things: a body that gives way to its commitment, and records that a sealed segment holds.
3. The authorizer refuses, on every connection, the statements that would go around the triggers. All this stops mistakes. Against someone
   who holds the file, the hash chain and an anchor outside of it stand.
"""

from __future__ import annotations

import apsw

_FIRST = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('epoch', 1);
CREATE TABLE principals(
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, created INTEGER NOT NULL, disabled INTEGER NOT NULL, attributes TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, principal TEXT NOT NULL REFERENCES principals, label TEXT NOT NULL,
    created INTEGER NOT NULL, expires INTEGER, revoked INTEGER, digest BLOB NOT NULL
) STRICT;
CREATE TABLE leases(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals,
    on_behalf_of TEXT NOT NULL REFERENCES principals, paths TEXT NOT NULL, actions TEXT NOT NULL, not_before INTEGER NOT NULL,
    expires INTEGER NOT NULL, purpose TEXT NOT NULL, created INTEGER NOT NULL, parent TEXT REFERENCES leases(id), revoked INTEGER,
    reason TEXT NOT NULL, root TEXT NOT NULL, caveats TEXT NOT NULL, epoch INTEGER NOT NULL
) STRICT;
CREATE INDEX leases_by_run ON leases(run);
CREATE INDEX leases_by_parent ON leases(parent);
CREATE INDEX leases_by_root ON leases(root);
CREATE INDEX leases_by_principal ON leases(principal);
CREATE INDEX leases_by_owner ON leases(on_behalf_of);
CREATE INDEX leases_by_epoch ON leases(epoch);
CREATE TABLE budgets(
    lease TEXT NOT NULL REFERENCES leases(id), kind TEXT NOT NULL, most INTEGER, used INTEGER NOT NULL, PRIMARY KEY(lease, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE policies(
    number INTEGER PRIMARY KEY, digest TEXT NOT NULL, text TEXT NOT NULL, source TEXT NOT NULL, adopted INTEGER NOT NULL
) STRICT;
CREATE TABLE gates(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, subject TEXT NOT NULL, digest TEXT NOT NULL, card TEXT NOT NULL,
    required_role TEXT NOT NULL, created INTEGER NOT NULL, deadline INTEGER NOT NULL, fallback TEXT NOT NULL, state TEXT NOT NULL,
    asked_by TEXT NOT NULL, answered_by TEXT NOT NULL, answered INTEGER, comment TEXT NOT NULL
) STRICT;
CREATE INDEX gates_by_state ON gates(state, deadline);
CREATE INDEX gates_by_subject ON gates(subject);
CREATE TABLE documents(
    kind TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(kind, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE records(
    sequence INTEGER PRIMARY KEY, time INTEGER NOT NULL, phase TEXT NOT NULL, refers INTEGER, kind TEXT NOT NULL, principal TEXT NOT NULL,
    run TEXT NOT NULL, lease TEXT NOT NULL, body TEXT NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL
) STRICT;
CREATE INDEX records_by_run ON records(run, sequence);
CREATE INDEX records_by_kind ON records(kind, sequence);
CREATE TABLE intents(sequence INTEGER PRIMARY KEY REFERENCES records) STRICT;
CREATE TRIGGER records_follow BEFORE INSERT ON records
WHEN NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM records)
BEGIN SELECT RAISE(ABORT, 'records have no gaps'); END;
CREATE TRIGGER records_stay BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records do not change'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records are not removed'); END;
"""
_LABELS = """
CREATE TABLE labels(
    path BLOB NOT NULL, content BLOB NOT NULL, origin INTEGER NOT NULL, sensitivity INTEGER NOT NULL, endorsed INTEGER NOT NULL,
    PRIMARY KEY(path, content)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_by_content ON labels(content);
CREATE TABLE label_commits("commit" TEXT PRIMARY KEY, origin INTEGER NOT NULL, sensitivity INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE marks(pattern TEXT PRIMARY KEY, origin INTEGER NOT NULL, sensitivity INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE taints(run TEXT PRIMARY KEY, origin INTEGER NOT NULL, sensitivity INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

_GATES = """
ALTER TABLE gates ADD COLUMN phase TEXT NOT NULL DEFAULT 'pending';
ALTER TABLE gates ADD COLUMN act TEXT NOT NULL DEFAULT '';
ALTER TABLE gates ADD COLUMN alike TEXT NOT NULL DEFAULT '';
ALTER TABLE gates ADD COLUMN run TEXT NOT NULL DEFAULT '';
ALTER TABLE gates ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE gates ADD COLUMN approvals INTEGER NOT NULL DEFAULT 1;
ALTER TABLE gates ADD COLUMN excluded TEXT NOT NULL DEFAULT '[]';
ALTER TABLE gates ADD COLUMN use_within INTEGER NOT NULL DEFAULT 86400;
ALTER TABLE gates ADD COLUMN standing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gates ADD COLUMN answers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE gates ADD COLUMN usable_until INTEGER;
ALTER TABLE gates ADD COLUMN successor TEXT NOT NULL DEFAULT '';
ALTER TABLE gates ADD COLUMN acknowledged INTEGER;
ALTER TABLE gates ADD COLUMN closed INTEGER;
ALTER TABLE gates ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
UPDATE gates SET phase = 'decided', usable_until = CASE state WHEN 'approved' THEN answered + use_within END WHERE state <> 'pending';
UPDATE gates SET phase = 'closed', state = 'approved', acknowledged = answered, closed = answered WHERE state = 'consumed';
CREATE INDEX gates_by_act ON gates(act);
CREATE INDEX gates_by_alike ON gates(alike);
CREATE INDEX gates_by_run ON gates(run, state);
CREATE INDEX gates_open ON gates(number) WHERE phase <> 'closed';
CREATE TABLE bypasses(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, rule TEXT NOT NULL, policy TEXT NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL,
    created INTEGER NOT NULL, expires INTEGER NOT NULL, ended INTEGER
) STRICT;
CREATE INDEX bypasses_by_end ON bypasses(expires);
"""

_EVIDENCE = """
ALTER TABLE records ADD COLUMN salt BLOB NOT NULL DEFAULT x'';
CREATE TABLE tree(
    level INTEGER NOT NULL, position INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(level, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, time INTEGER NOT NULL, note TEXT NOT NULL) STRICT;
CREATE TABLE cosignatures(
    size INTEGER NOT NULL REFERENCES checkpoints, witness TEXT NOT NULL, line TEXT NOT NULL, PRIMARY KEY(size, witness)
) STRICT, WITHOUT ROWID;
CREATE TABLE segments(
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, digest BLOB NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL,
    sealed INTEGER NOT NULL, removed INTEGER
) STRICT;
CREATE TABLE sealed_runs(run TEXT NOT NULL, first INTEGER NOT NULL REFERENCES segments, PRIMARY KEY(run, first)) STRICT, WITHOUT ROWID;
DROP TRIGGER records_stay;
DROP TRIGGER records_remain;
CREATE TRIGGER records_stay BEFORE UPDATE ON records
WHEN NOT (
    NEW.body = '' AND length(OLD.salt) = 16 AND length(NEW.salt) = 32 AND NEW.sequence = OLD.sequence AND NEW.time = OLD.time
    AND NEW.phase = OLD.phase AND NEW.refers IS OLD.refers AND NEW.kind = OLD.kind AND NEW.principal = OLD.principal AND NEW.run = OLD.run
    AND NEW.lease = OLD.lease AND NEW.previous = OLD.previous AND NEW.hash = OLD.hash
)
BEGIN SELECT RAISE(ABORT, 'records do not change'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records
WHEN OLD.sequence > (SELECT coalesce(max(last), 0) FROM segments)
BEGIN SELECT RAISE(ABORT, 'records are not removed'); END;
CREATE TRIGGER segments_follow BEFORE INSERT ON segments
WHEN NEW.first <> (SELECT coalesce(max(last), 0) + 1 FROM segments) OR NEW.last < NEW.first
    OR NEW.last >= (SELECT coalesce(max(sequence), 0) FROM records)
BEGIN SELECT RAISE(ABORT, 'segments have no gaps, and the last record stays'); END;
CREATE TRIGGER segments_remain BEFORE DELETE ON segments BEGIN SELECT RAISE(ABORT, 'segments are not removed'); END;
CREATE TRIGGER tree_stays BEFORE UPDATE ON tree BEGIN SELECT RAISE(ABORT, 'the tree does not change'); END;
CREATE TRIGGER tree_remains BEFORE DELETE ON tree BEGIN SELECT RAISE(ABORT, 'the tree is not removed'); END;
CREATE TRIGGER checkpoints_stay BEFORE UPDATE ON checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints do not change'); END;
CREATE TRIGGER checkpoints_remain BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints are not removed'); END;
"""

_DELEGATION = """
ALTER TABLE leases ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
"""

STEPS = (_FIRST, _LABELS, _GATES, _EVIDENCE, _DELEGATION)
"""What makes the tables, one step after the other."""
VERSION = len(STEPS)
"""The version of these tables."""

SETTINGS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA recursive_triggers=ON",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
    "PRAGMA trusted_schema=OFF",
)
"""What every connection is set to. NORMAL, because FULL would hold the write lock while the disk works: see `sync`."""

_REFUSED = frozenset(
    {
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_ALTER_TABLE,
        apsw.SQLITE_DROP_TABLE,
        apsw.SQLITE_DROP_TRIGGER,
        apsw.SQLITE_DROP_INDEX,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_PRAGMA,
    }
)
_REFUSED_ON_RECORDS = frozenset({apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE})


def authorize_upkeep(operation: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Return as `authorize`, for the moment in which a record is redacted or leaves for a segment: then the triggers alone stand."""
    if first == "records" and (operation == apsw.SQLITE_DELETE or (operation == apsw.SQLITE_UPDATE and second in {"body", "salt"})):
        return apsw.SQLITE_OK
    return authorize(operation, first, second, database, trigger)


def authorize(operation: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Return whether SQLite may prepare a statement that does this."""
    del second, database, trigger
    refused = operation in _REFUSED or (operation in _REFUSED_ON_RECORDS and first in {"records", "sqlite_master"})
    return apsw.SQLITE_DENY if refused else apsw.SQLITE_OK
