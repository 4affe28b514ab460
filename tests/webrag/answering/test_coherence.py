from webrag.answering.planning import incoherence

SENSIBLE = [
    "E0502", "max_connections?", "SIGKILL", "--no-ff", "a::b", "git rebase -i HEAD~3", "x86_64",
    "ENOENT", "HTTP 429", "404", "C++", "C#", ".NET", "R", "std::vec::Vec<T>", "pg_hba.conf",
    "vacuum", "mutex", "tls", "npm", "xml", "sphinx", "rhythm", "strengths", "gRPC", "k8s",
    "kubectl", "psql", "xyz", "CREATE INDEX CONCURRENTLY", "SELECT * FROM t WHERE a IS NULL;",
    "for (i = 0; i < n; i++)", "def f(x): return x + 1", "TypeError: 'NoneType' object",
    "what is asdf (the version manager)?", "qwerty layout", "How do I set a timeout?",
    "Wie wird ein Index neu aufgebaut?", "Rechtsschutzversicherungsgesellschaften",
    "\u00bfC\u00f3mo se instala?", "Comment annuler une t\u00e2che ?", "Jak zmieni\u0107 port?",
    "\u5982\u4f55\u5b89\u88c5", "\u30a4\u30f3\u30b9\u30c8\u30fc\u30eb\u65b9\u6cd5",
    "\u043a\u0430\u043a \u0443\u0441\u0442\u0430\u043d\u043e\u0432\u0438\u0442\u044c",
    "\u0643\u064a\u0641 \u0623\u062b\u0628\u062a", "\uc124\uce58 \ubc29\ubc95",
    "??=", "<=>", "::", "&&", "what does `->` mean", "Is 0.1 + 0.2 == 0.3?", "3.11.7",
    "1.2.3.4/24", "what changed between 2019 and 2021?", "released after 2019 and before 2022",
    "How do drivers from before 2010 and after 2015 differ?", "before 2010 or after 2015",
    "advert", "hjkl navigation in vim", "btrfs", "crwth", "nth", "bzip2", "zsh prompt",
    "IT", "make", "not", "use strict", "go", "what is a join?", "OR", "find -exec", "THE",
    "yes command", "the `who` command", "https://example.com/x?y=1", "0x80070005", "10",
    "aaa server", "tldr", "ping ping", "ctrl+c", "\U0001f600 emoji in commit messages",
]  # fmt: skip
SENSELESS = [
    "", "   ", "\n\t", "?", "???", "!!!", "...", "\U0001f600", "\U0001f600\U0001f602 \U0001f44d",
    "-- ... --", "\u3002\u3002", "the", "what is it", "how do I do it?", "and so on", "please",
    "hello", "thanks!", "what about that one?", "can you tell me?", "I don't know", "why not?",
    "asdfghjkl", "asdf asdf asdf jkl;", "qwerqwer zxcvzxcv", "sdfgsdfg dfghdfgh", "aaaaaaaaaa",
    "xxxxxx", "hahahahaha lolololol", "bcdfghjklm npqrstvw", "zzzzz zzzzz", "jkljkljkljkl",
    "foo foo foo foo foo", "vbnmvbnm cvbncvbn",
]  # fmt: skip


def test_question_that_can_be_searched_for_passes() -> None:
    assert {query: why for query in SENSIBLE if (why := incoherence(query))} == {}


def test_question_that_can_mean_nothing_is_refused_with_a_reason() -> None:
    reasons = {query: incoherence(query) or "" for query in SENSELESS}

    assert [query for query, reason in reasons.items() if not reason.endswith(".")] == []
