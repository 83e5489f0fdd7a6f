"""Runs the statements of docs/fencing.md and checks what the page says about rows, waits and errors.

    statements.py PAGE sqlite FILE
    statements.py PAGE postgres PSQL PORT

`.ci/check-fencing` starts the server.
"""

import pathlib
import re
import sqlite3
import subprocess
import sys
import time

# The beginnings of the page's statements, in order.
STARTS = {
    "columns": "ALTER TABLE invoice",
    "update": "UPDATE invoice SET total = $3",
    "update with holder": "UPDATE invoice SET total = $4",
    "upsert": "INSERT INTO invoice AS i",
    "table": "CREATE TABLE fence",
    "fence": "INSERT INTO fence AS f",
}
checked = 0


def statements(page):
    found = re.findall(r"```sql\n(.*?);\s*```", page, re.DOTALL)
    if [text[: len(start)] for text, start in zip(found, STARTS.values())] != list(STARTS.values()):
        sys.exit(f"the statements of the page are others: {found}")
    if len(found) != len(STARTS):
        sys.exit(f"the page has {len(found)} statements, and {len(STARTS)} of them are run")
    return dict(zip(STARTS, found))


def expect(found, wanted, what):
    global checked
    checked += 1
    if found != wanted:
        sys.exit(f"{what}: {found!r}, and not {wanted!r}")


class Sqlite:
    """SQLite wants `?1` for `$1`, and adds one column at a time."""

    def __init__(self, file, said):
        self.said = said
        self.connection = sqlite3.connect(file, timeout=0, isolation_level=None)

    def run(self, text, *values):
        """Returns the number of written rows."""
        self.connection.execute(re.sub(r"\$(\d)", r"?\1", text), values)
        return self.connection.execute("SELECT changes()").fetchone()[0]

    def read(self, text):
        return self.connection.execute(text).fetchone()[0]

    def set_up(self):
        table, *columns = re.split(r"\s*,?\s*ADD COLUMN ", self.said["columns"])
        for column in columns:
            self.run(f"{table} ADD COLUMN {column}")


class Postgres:
    """A session of psql, with prepared statements."""

    def __init__(self, psql, port, said):
        self.said = said
        words = [psql, "-X", "-A", "-t", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-v", "VERBOSITY=sqlstate"]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def tell(self, text):
        self.process.stdin.write(f"{text};\n\\echo END\n")
        self.process.stdin.flush()

    def hear(self):
        lines = []
        while (line := self.process.stdout.readline().rstrip("\n")) != "END":
            lines.append(line)
        return lines

    def begin(self, text, *values):
        """Does not wait for the answer."""
        given = ", ".join(str(value) if isinstance(value, int) else f"'{value}'" for value in values)
        self.tell(f"PREPARE one AS {text}; EXECUTE one({given}); DEALLOCATE one" if values else text)

    def answer(self):
        """Returns the number of written rows, or the code of an error."""
        for line in self.hear():
            if error := re.search(r"ERROR: +(\w{5})", line):
                return error[1]
            if rows := re.fullmatch(r"(?:UPDATE|DELETE|INSERT 0) (\d+)", line):
                return int(rows[1])
        return None

    def run(self, text, *values):
        self.begin(text, *values)
        return self.answer()

    def read(self, text):
        self.tell(text)
        return int(self.hear()[0])

    def set_up(self):
        self.run(self.said["columns"])


def rows(db):
    """Smaller tokens write nothing, equal ones of the same holder do."""
    said = db.said
    db.run("CREATE TABLE invoice (id text PRIMARY KEY, total bigint)")
    db.set_up()
    db.run("INSERT INTO invoice (id, total) VALUES ('a', 0)")
    for token, total, wanted in [(5, 50, 1), (5, 51, 1), (4, 40, 0), (6, 60, 1)]:
        expect(db.run(said["update"], token, "a", total), wanted, f"update with {token}")
    expect(db.run(said["update"], 9, "nobody", 1), 0, "update of no row")
    expect(db.read("SELECT total FROM invoice WHERE id = 'a'"), 60, "what was written")
    steps = [(7, "x", 1), (7, "x", 1), (7, "y", 0), (6, "x", 0), (8, "y", 1)]
    for token, holder, wanted in steps:
        expect(db.run(said["update with holder"], token, holder, "a", token), wanted, f"update with {token} of {holder}")
        expect(db.run(said["upsert"], "b", token, token, holder), wanted, f"upsert with {token} of {holder}")
    for name in "ab":
        expect(db.read(f"SELECT total FROM invoice WHERE id = '{name}'"), 8, f"what was written to {name}")
    db.run("DELETE FROM invoice WHERE id = 'b'")
    expect(db.run(said["upsert"], "b", 1, 1, "z"), 1, "a deleted row has no fence")
    db.run(said["table"])
    for token, holder, wanted in steps:
        expect(db.run(said["fence"], "lock", "n", token, holder), wanted, f"fence {token} of {holder}")
    expect(db.run(said["fence"], "fair_lock", "n", 1, "x"), 1, "another kind")
    expect(db.run(said["fence"], "lock", "m", 1, "x"), 1, "another name")


def begin_immediate(file, said):
    """BEGIN IMMEDIATE keeps other transactions out."""
    one, other = Sqlite(file, said), Sqlite(file, said)
    one.run("BEGIN IMMEDIATE")
    expect(one.run(said["fence"], "lock", "n", 20, "x"), 1, "in a transaction")
    try:
        other.run("BEGIN IMMEDIATE")
        why = "it began"
    except sqlite3.OperationalError as error:
        why = str(error)
    expect(why, "database is locked", "a transaction beside it")
    one.run("COMMIT")
    other.run("BEGIN IMMEDIATE")
    expect(other.run(said["fence"], "lock", "n", 19, "y"), 0, "the stale one afterwards")
    other.run("ROLLBACK")


def until_one_waits(db):
    deadline = time.monotonic() + 60
    while db.read("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != 1:
        if time.monotonic() > deadline:
            sys.exit("nobody waits for the row")
        time.sleep(0.01)


def side_by_side(said, session):
    """A stale transaction that waits for a newer one."""
    newer, stale, third = session(), session(), session()
    token = 100
    for level, wanted in [("READ COMMITTED", 0), ("REPEATABLE READ", "40001"), ("SERIALIZABLE", "40001")]:
        token += 10
        newer.run("BEGIN")
        expect(newer.run(said["fence"], "lock", "n", token, "x"), 1, "the newer one")
        stale.run(f"BEGIN ISOLATION LEVEL {level}")
        stale.begin(said["fence"], "lock", "n", token - 1, "y")
        until_one_waits(third)
        newer.run("COMMIT")
        expect(stale.answer(), wanted, f"the stale one, {level}")
        stale.run("ROLLBACK")
        # Repeated as a whole.
        stale.run("DEALLOCATE ALL")
        stale.run(f"BEGIN ISOLATION LEVEL {level}")
        expect(stale.run(said["fence"], "lock", "n", token - 1, "y"), 0, f"again, {level}")
        stale.run("ROLLBACK")

    # Reading the fence first is no check.
    for look, wanted in [("", 1), (" FOR UPDATE", 2)]:
        token += 10
        stale.run("BEGIN")
        stale.read(f"SELECT fence FROM invoice WHERE id = 'a'{look}")
        newer.begin(said["update"], token, "a", 2)
        if look:
            until_one_waits(third)
        else:
            expect(newer.answer(), 1, "the newer one")
        expect(stale.run("UPDATE invoice SET total = 1 WHERE id = 'a'"), 1, "without the condition")
        stale.run("COMMIT")
        if look:
            expect(newer.answer(), 1, "the newer one, after it waited")
        expect(third.read("SELECT total FROM invoice WHERE id = 'a'"), wanted, f"SELECT{look}, then UPDATE")


def main():
    page, kind, *more = sys.argv[1:]
    said = statements(pathlib.Path(page).read_text(encoding="utf-8"))
    if kind == "sqlite":
        (file,) = more
        rows(Sqlite(file, said))
        begin_immediate(file, said)
        version = sqlite3.sqlite_version
    else:
        psql, port = more
        rows(Postgres(psql, port, said))
        side_by_side(said, lambda: Postgres(psql, port, said))
        version = Postgres(psql, port, said).read("SHOW server_version_num")
    print(f"the statements of {page} on {kind} {version}: {checked} answers are as the page says")


main()
