from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pattern_attacks import stopped_after
from webrag.orchestration.question.patterns import classify, content_words, decompose

SPLIT: list[tuple[str, tuple[str | None, ...]]] = [
    ("Postgres vs MySQL", ("Postgres", "MySQL")),
    ("Postgres vs. MySQL for analytics", ("Postgres for analytics", "MySQL for analytics")),
    ("tabs versus spaces", ("tabs", "spaces")),
    ("random forests compared to gradient boosting", ("random forests", "gradient boosting")),
    ("difference between tuples and lists", ("tuples", "lists")),
    (
        "What is the difference between a mutex and a semaphore in Rust?",
        ("mutex in Rust", "semaphore in Rust"),
    ),
    ("How does asyncio differ from threading?", ("asyncio", "threading")),
    ("How do arenas compare to pools?", ("arenas", "pools")),
    ("Compare btree with hash indexes", ("btree", "hash indexes")),
    ("Which is better for search: HNSW or IVFFlat?", ("HNSW for search", "IVFFlat for search")),
    ("Should I use venv or conda?", ("venv", "conda")),
    ("pros and cons of microservices", ("advantages of microservices", None)),
    ("What are the advantages and disadvantages of pooling?", ("advantages of pooling", None)),
    ("benefits and drawbacks of static typing", ("advantages of static typing", None)),
    (
        "how does RRF work and when should I use it",
        ("how RRF works", "when to use RRF"),
    ),
    ("caching and indexing for Postgres", ("caching for Postgres", "indexing for Postgres")),
    (
        "In a plain build, do integer operators panic and what level is used by default?",
        (
            "In a plain build, do integer operators panic",
            "In a plain build, what level is used by default",
        ),
    ),
    (
        "How do I grow a trained forest, and how do I drive a perceptron one epoch at a time?",
        ("How do I grow a trained forest", None),
    ),
    (
        "How often are pages flushed if I set nothing, and which role may trigger a flush?",
        ("How often are pages flushed if I set nothing", "which role may trigger a flush"),
    ),
    (
        "What does the planner cache? How do I clear its cache?",
        ("What does the planner cache", "How do I clear its cache (planner)"),
    ),
    (
        "Where does my ignore list live if I set nothing, and how do I edit it by hand?",
        (
            "Where does my ignore list live if I set nothing",
            "how do I edit it by hand (ignore list live set)",
        ),
    ),
    (
        "What is the deposit for the extractor, and how heavy is a Dadant hive?",
        ("What is the deposit for the extractor", "how heavy is a Dadant hive"),
    ),
    (
        "Who keeps the keys of the shed, and how many frames fit in a brood box?",
        ("Who keeps the keys of the shed", "how many frames fit in a brood box"),
    ),
    (
        "When does the shop open, and where is the nearest parking place?",
        ("When does the shop open", "where is the nearest parking place"),
    ),
    (
        "What does the course cost, and who pays for the books?",
        ("What does the course cost", "who pays for the books"),
    ),
    (
        "What does a frame weigh, and how much sugar goes into the syrup?",
        ("What does a frame weigh", "how much sugar goes into the syrup"),
    ),
    ("REST versus GraphQL in mobile apps", ("REST in mobile apps", "GraphQL in mobile apps")),
    ("What is the difference between git merge and git rebase?", ("git merge", "git rebase")),
    ("How is a view different from a materialized view?", ("view", "materialized view")),
    ("strengths and weaknesses of optimistic locking", ("advantages of optimistic locking", None)),
    ("pros/cons of server-side rendering", ("advantages of server-side rendering", None)),
    ("Should we choose Kafka or RabbitMQ?", ("Kafka", "RabbitMQ")),
    ("Is ripgrep faster than grep?", ("ripgrep", "grep")),
    ("comparison of REST and GraphQL", ("REST", "GraphQL")),
    ("How does vacuum work, and when should I use it?", ("how vacuum works", "when to use vacuum")),
]  # fmt: skip

# A question, and below it its parts; "..." stands for one in other words.
FURTHER = """\
How do Postgres and MySQL handle nulls?
    how Postgres handles nulls | how MySQL handles nulls
how A and B handle C
    how A handles C | how B handles C
Compare how git merge and git rebase handle conflicts
    how git merge handles conflicts | how git rebase handles conflicts
Explain how nginx and Apache serve static files
    how nginx serves static files | how Apache serves static files
How do PostgreSQL and MySQL treat empty strings?
    how PostgreSQL treats empty strings | how MySQL treats empty strings
How do threads and processes handle signals?
    how threads handle signals | how processes handle signals
How do the planner and the executor use statistics?
    how planner uses statistics | how executor uses statistics
Compare how Rust and Go report errors
    how Rust reports errors | how Go reports errors
how can tar and cpio restore permissions
    how tar restores permissions | how cpio restores permissions
How do serial and identity apply defaults?
    how serial applies defaults | how identity applies defaults
What is the difference between how git merge works and how git rebase works?
    how git merge works | how git rebase works
What is the difference between how Rust handles errors and how Go does?
    how Rust handles errors | how Go does
What is the difference between how ext4 and how xfs allocate blocks?
    how ext4 allocates blocks | how xfs allocate blocks
Who designed the tower and how tall is it?
    Who designed the tower | how tall is it (designed tower)
the distinction between what a lock guards and what a fence orders
    what a lock guards | what a fence orders
What is the diameter of Titan, and between which years did Cassini study Saturn?
    What is the diameter of Titan | between which years did Cassini study Saturn
In what year was the project started, and on what date did it reach a release?
    In what year was the project started | ...
Which two methods does mutt support, and for about how long is the token good?
    Which two methods does mutt support | for about how long is the token good
I want uploads over SSH: which port is used, and which programs does the login allow?
    ... | I want uploads over SSH: which programs does the login allow
To bring a primary back, what must be enabled, and can that be done while it runs?
    To bring a primary back, what must be enabled | ...
What does autovacuum do; how do I turn it off?
    What does autovacuum do | how do I turn it off (autovacuum)
How do I install the agent and how do I stop it?
    How do I install the agent | how do I stop it (install agent)
What is a fixture? And how long does it live?
    What is a fixture | how long does it live (fixture)
What is a lease, how long does it last, and who may renew it?
    What is a lease | how long does it last (lease) | who may renew it (lease)
Postgres vs MySQL vs SQLite
    Postgres | MySQL | SQLite
Which port does the daemon use and what is the default address?
    Which port does the daemon use | what is the default address
Which role may read the log, and how many files are kept?
    Which role may read the log | how many files are kept
Where are backups kept, and for how many days are they kept?
    Where are backups kept | ...
How is a hive opened, and at what temperature should it stay closed?
    How is a hive opened | ...
What does the option do, and since which version is it there?
    What does the option do | ...
What is the default size in Delphi mode, and what in MacPas mode?
    What is the default size in Delphi mode | what in MacPas mode (default size Delphi)
Which levels are accepted with DEFLATED and which with BZIP2?
    Which levels are accepted with DEFLATED | which with BZIP2 (levels accepted DEFLATED)
In a dump, which time does it give the first packet, and which the following ones?
    ... | In a dump, which the following ones (time first packet)
Which package holds it for xetex, and which one otherwise?
    Which package holds it for xetex | which one otherwise (package holds xetex)
How do clients renew leases, and how are stale leases found, which in turn expire?
    How do clients renew leases | how are stale leases found, which in turn expire
"""

REPEATED = """\
What does the manual say about replication slots and about failover?
    What does the manual say about replication slots | What does the manual say about failover
How do I restore from a base backup and from a logical dump?
    How do I restore from a base backup | How do I restore from a logical dump
Threads race on one-time setup: what may surprise me about whose closure ran and about being woken?
    ... | Threads race on one-time setup: what may surprise me about being woken
Which rights are needed for reading a table, and for refreshing a view?
    Which rights are needed for reading a table | Which rights are needed for refreshing a view
What does the server do on a soft bounce and on a hard bounce?
    What does the server do on a soft bounce | What does the server do on a hard bounce
Turn a function into Lisp and compile it from a file, and how are rules applied automatically?
    Turn a function into Lisp and compile it from a file | how are rules applied automatically
Mount an archive read-only, and what does borg do with a damaged segment?
    Mount an archive read-only | what does borg do with a damaged segment
checkpoint interval by default, and which role may run CHECKPOINT by hand?
    checkpoint interval by default | which role may run CHECKPOINT by hand
"""
for table in (FURTHER, REPEATED):
    lines = table.splitlines()
    SPLIT += [
        (query, tuple(None if part == "..." else part for part in parts.strip().split(" | ")))
        for query, parts in zip(lines[::2], lines[1::2], strict=True)
    ]

WHOLE = [
    "Which ports must be open and which may stay closed?",
    "Which files are needed and which to delete?",
    "What do I need to install and what for?",
    "What is read first and what in which order?",
    "What is the role of key and value in a map?",
    "How do I drag and drop files and folders?",
    "Show the steps to back up and restore a cluster",
    "How do I compare with a tolerance?",
    "What is compared to zero in this loop?",
    "Can I mix tabs and spaces?",
    "What does CREATE TABLE AS do with constraints and defaults?",
    "What is the default of pg_trgm.word_similarity_threshold?",
    "Which character in front of a name makes the rule apply to everyone in that group?",
    "Which statements are always committed at once even when asynchronous commit is in use?",
    "Can I stop several records with a missing value from coexisting in a column?",
    "Why does rounding 2.5 give 3 for numeric but 2 for double precision?",
    "How many connections does the dump tool open when run with --jobs?",
    "After moving my application to another node, why might new ids clash with old rows?",
    "An index has grown too large on a busy system; how can I rebuild it while people write?",
    "The main machine died. What do I run on the replica so it starts accepting writes?",
    "How should programs be written so that two sessions never wait for each other forever?",
    "My inputs are clean; how do I skip the scan for NaN and infinity on each call?",
    "I want to score unseen points with the density method; what has to be set and when?",
    "From what array size on is input shared between worker processes?",
    "After how many days does gc prune unresolved and resolved conflicts by default?",
    "What are the costs of get, insert, remove, range and append for BTreeMap?",
    "Which overflow checks for / and % happen even when checks are disabled?",
    "Which .mailmap line form replaces both name and email of matching commits?",
    "My checks write to the same file and break each other. How do I run them one by one?",
    "What do I pay for &dyn references: at each call, and in pointer width?",
    "How does git decide which files are tracked and which files are ignored?",
    "How do I know when a lock is held and when it is released?",
    "Which rows changed and which did not?",
    "If I grant a user pg_monitor, will it see the SQL text of other users, and why?",
    "What is a tuple and why?",
    "How do I configure TLS and compression for the server?",
    "read and write for users",
    "search and replace for folders",
    "drag and drop for tables",
    "the difference between the index and the tree and HEAD",
    "What happens between commit and push?",
    "What is the distance between rows and columns and cells?",
    "How do I compare two branches?",
    "Is there a way to compare schemas?",
    "How are null values compared in an index?",
    "What does the vs_buildtools package install?",
    "Explain how joins work and how indexes are used",
    "How do I copy a file and what?",
    "Do threads share memory and file handles?",
    "What should the check program return for a version that does not compile?",
    "Where are logs written and rotated?",
    "how to install and configure nginx",
    "Which flags turn on warnings and errors for unused code?",
    "What is it and how does it differ from that?",
    "Should I use it or not?",
    "What is the largest number of columns a result can have?",
    "E0502",
    "pytest fixtures scope",
    "max_connections and shared_buffers",
    "Several threads sleep until woken: what may surprise me about whose closure ran?",
    "Tell me about search and ranking",
    "Explain what a lock is, and how nesting is handled",
    "How do Marks and Spencer handle returns?",
    "How do Simon and Schuster treat unsolicited manuscripts?",
    "How does Johnson and Johnson report earnings?",
    "How do terms and conditions handle refunds?",
    "What is the difference between Dungeons and Dragons editions?",
    "What is Standard and Poor's rating of Italy?",
    "How do I read and handle errors?",
    "How do search and replace handle regular expressions?",
    "How do client and server exchange keys?",
    "Does Research and Development report to the board, or to whom?",
    "How are views and materialized views refreshed?",
    "How to read and write files",
    "How many files and folders does the tool handle at once?",
    "Which of Bosnia and Herzegovina's cities has a tram?",
    "Who wrote War and Peace and when?",
    "Tell me about hives, and how heavy a full one is",
    "Which frames are full, and which are empty?",
    "What is the deposit, and how much?",
    "Is the hive heavy, and how so?",
    "Does the manual say how old a queen gets, and how old is too old?",
    "I rent the extractor, the press and the tank, and how heavy are they?",
    "Which rows are kept for once and for all?",
    "How do I connect with a password and with a certificate at the same time?",
    "How do I copy from a remote host and to a local folder?",
    "Which flags does the tool take for reading and for how long?",
    "Does the manual warn about replication and about failover?",
    "How does reading from a file differ when compared with reading from a pipe and from a socket?",
    "I moved the database to another disk, and how do I start the server again?",
    "The server refuses connections, and why is the port closed after an upgrade?",
    "Postgres 15 stopped after the upgrade, and how do I read its log?",
    "After moving the data, and how are indexes rebuilt on the new disk?",
    "Given a table of three columns, and how do I sum them by group?",
]


@pytest.mark.parametrize(("query", "parts"), SPLIT, ids=[query for query, _ in SPLIT])
def test_question_with_several_needs_is_split(query: str, parts: Any) -> None:
    found = decompose(query)[0]

    assert len(found) == len(parts)
    assert all(want in (None, got) for want, got in zip(parts, found, strict=True))


def test_question_with_one_need_stays_whole() -> None:
    assert [query for query in WHOLE if decompose(query) != ((query,), None)] == []


def test_sixty_questions_are_split_and_sixty_stay_whole() -> None:
    assert min(len(SPLIT), len(WHOLE)) >= 60


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Postgres vs MySQL", "comparison"),
        ("pros and cons of ORMs", "comparison"),
        ("how does RRF work and when should I use it", "how_to"),
        ("caching and indexing for Postgres", "exploratory"),
    ],
)
def test_pattern_implies_the_kind(query: str, kind: Any) -> None:
    assert decompose(query)[1] == kind


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("How do I install it?", "how_to"),
        ("What must I do after a crash?", "how_to"),
        ("steps to upgrade", "how_to"),
        ("What is better than grep?", "comparison"),
        ("Is ripgrep better than grep?", "comparison"),
        ("How does X differ from Y?", "comparison"),
        ("Tell me about vacuum", "exploratory"),
        ("overview of the planner", "exploratory"),
        ("What is the default port?", "factual"),
        ("", "factual"),
    ],
)
def test_kind_follows_the_words(query: str, kind: Any) -> None:
    assert classify(query) == kind


def test_content_words_keep_identifiers_and_order() -> None:
    words = content_words("How do I set max_connections with --jobs for Vec::new in pg_hba.conf?")

    assert words == ("set", "max_connections", "--jobs", "Vec::new", "pg_hba.conf")


@given(st.text(max_size=200))
def test_any_text_gives_one_to_four_parts(text: str) -> None:
    assert 1 <= len(decompose(text)[0]) <= 4


@pytest.mark.parametrize(
    "query",
    [
        "how is" + " " * 50_000,
        "how is" + " \t\n" * 20_000 + "x",
        "how is " * 5_000,
        "how is a " * 5_000 + "configured?",
        "differ " * 5_000,
        "compared to " * 80,
        "difference between a and " * 39,
        "difference between " + "and " * 240 + ",",
        "how does a differ from " * 43 + ":",
        "how does a work and when " * 39,
        "pros and cons of " * 58,
        "which is better for " + "a " * 480,
        "a " * 400 + "and b for c",
        "a vs " * 190 + ";",
        "how " + "a and " * 190 + "b handle c",
        "how a and " + "b " * 490 + "handle",
        "difference between how " * 40 + "and how",
        "what is a, " * 90 + "and who is b",
        "a" * 190 + ": " + "b: " * 200 + ", and what is",
        ", and can " * 90,
        "_-" * 20_000,
    ],
)
def test_no_question_takes_more_time_than_its_length_explains(query: str) -> None:
    with stopped_after(2):
        decompose(query)
        classify(query)
        content_words(query)


def test_white_space_of_any_kind_separates_the_words_of_a_question() -> None:
    assert classify("how\tis\n the  cache \n configured") == "how_to"
