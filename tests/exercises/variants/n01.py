"""Other right answers to the exercises of notebook 01, which a check must accept."""


import numpy as np

from course_exercises.n01.answers import without_leaks


def _from_head_to_tail(marked, done=0):
    if "[" not in marked:
        return marked, ()
    head, _, rest = marked.partition("[")
    inside, _, tail = rest.partition("]")
    start = done + len(head)
    text, spans = _from_head_to_tail(tail, start + len(inside))
    return head + inside + text, ((start, start + len(inside)), *spans)


def _arrays(texts, labels, text):
    vocabulary = sorted({word for review in texts for word in review.split()})
    C = np.array([[review.split().count(word) for word in vocabulary] for review in texts])
    y = np.array(labels)
    N = np.stack([C[y == 0].sum(axis=0), C[y == 1].sum(axis=0)]) + 1
    log_p = np.log(N / N.sum(axis=1, keepdims=True))
    row = np.array([text.split().count(word) for word in vocabulary])
    return row @ (log_p[1] - log_p[0]) + np.log(y.mean() / (1 - y.mean()))


VARIANTS = {
    "1.1": {"recursion": _from_head_to_tail},
    "1.2": {"computed": lambda: 0.9 * 0.1 / 0.01 ** 2, "as a text": lambda: "900"},
    "1.3": {"arrays": _arrays},
    "1.4": {"generator": lambda train, test: (text for text in without_leaks(train, test))},
}
