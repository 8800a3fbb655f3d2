"""The model that a learner completes in 'Attention in an hour': one verdict on the class, which names the mistake.

Does: run the learner's class and the course's, with the same weights, on a small padded batch, and compare first the
attention weights, then the logits. Does not: count towards progress, since the model isn't one of the numbered exercises.

    Reader = check_reader(Reader)                         # yours if it is right, else the course's
"""

import itertools
import math

import torch
from torch import Tensor, nn

from course_utils.exercises.judge import strict

WHAT = "The model"
SMALL = {"vocab_size": 11, "d_model": 6}                 # 6: its root, itself and 1 are easy to tell apart
ROOTS = {                                                # by what the scores are divided, of (width, tokens)
    "root": lambda width, tokens: math.sqrt(width), "none": lambda width, tokens: 1,
    "width": lambda width, tokens: width, "fixed": lambda width, tokens: math.sqrt(32),
    "pairs": lambda width, tokens: math.sqrt(width // 2), "section 3": lambda width, tokens: math.sqrt(512),
    "tokens": lambda width, tokens: math.sqrt(tokens)}
PADDED = torch.tensor([[3, 7, 2, 9, 5], [8, 4, 6, 0, 0]])


def turned(x: Tensor, speeds: Tensor) -> Tensor:
    """Pair i of the token at position p, turned by p · speeds[i]: (..., token, 2 · pairs) -> the same shape."""
    angle = torch.arange(x.shape[-2])[:, None] * speeds
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


class OneHeadReader(nn.Module):
    """One head with turned queries and keys, a residual and attention pooling, as the notebook has it.

    token_ids, mask (batch, token) -> logits (batch, 2), weights (batch, query, key), pooling (batch, token).
    """

    def __init__(self, vocab_size: int, d_model: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=0.2)
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)
        self.speeds = 10000 ** (-torch.arange(d_model // 2) / (d_model // 2))
        self.pooling = nn.Linear(d_model, 1, bias=False)
        self.output = nn.Linear(d_model, 2)

    def attend(self, x: Tensor, mask: Tensor, turn: str = "query key", divisor: str = "root", dim: int = -1) -> Tensor:
        """The weights of the head; anything but the defaults is a mistake that somebody makes."""
        speeds = torch.ones(1) if turn == "section 4: query key" else self.speeds
        query, key = (turned(part(x), speeds) if name in turn else part(x)
                      for name, part in (("query", self.W_q), ("key", self.W_k)))
        if turn == "swapped: query key":
            query, key = key, query
        if turn == "twice: query key":
            key = query
        scores = query @ key.transpose(-2, -1) / ROOTS[divisor](x.shape[-1], x.shape[-2])
        return scores.masked_fill(~mask[:, None, :], -math.inf).softmax(dim=dim)

    def read(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and pooling weights of word vectors."""
        pooling = self.pooling(x).squeeze(-1).masked_fill(~mask, -math.inf).softmax(dim=-1)
        return self.output((pooling.unsqueeze(-1) * x).sum(dim=1)), pooling

    def forward(self, token_ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding(token_ids)
        weights = self.attend(x, mask)
        logits, pooling = self.read(x + weights @ self.W_v(x), mask)
        return logits, weights, pooling


TURN = {"query key": "",
        "query": "the keys aren't turned (1). A score then depends on the query's own position, not on the distance: turn "
                 "query and key alike.",
        "key": "the queries aren't turned (1). A score then depends on the key's own position, not on the distance: turn "
               "query and key alike.",
        "": "neither queries nor keys are turned (1), so the model reads a bag: swap two words, and it doesn't notice.",
        "section 4: query key": "every pair is turned by one radian a position (1): `speeds` is left over from section 4. "
                                "The model's own are self.speeds.",
        "swapped: query key": "query and key have changed places (1). Row i should say what word i looks for: query, key = "
                              "the turned query, the turned key.",
        "twice: query key": "the query is turned twice, and the key never (1): turn(query, …) stands in both places, so "
                            "each word looks for what resembles it. The second is turn(key, self.speeds)."}
DIVISOR = {"root": "",
           "none": "the scores aren't divided by the root of d_k (2). Wide vectors have large scores, and a few of them can "
                   "then take all the weight.",
           "width": "the scores are divided by d_k itself (2); divide by its root, math.sqrt(query.shape[-1]).",
           "fixed": "the scores are divided by √32 for any width (2); the width is query.shape[-1].",
           "pairs": "the scores are divided by the root of the number of pairs (2). A dot product adds up d_k products, two "
                    "for each pair: the width is query.shape[-1].",
           "section 3": "the scores are divided by √512 (2): `d_k` is left over from section 3. Here it's query.shape[-1].",
           "tokens": "the scores are divided by the root of the number of tokens (2). Large scores come from wide vectors: "
                     "the width is query.shape[-1]."}
DIM = {-1: "",
       1: "softmax runs over the wrong axis (3): each column sums to one, and each query's row should. The keys are the "
          "last dimension, dim=-1.",
       0: "softmax runs over the batch (3), so reviews compete with one another. The keys are the last dimension, dim=-1."}


@torch.no_grad()
def check_reader(yours: type) -> type:
    """Print one verdict on a class like `OneHeadReader`; return it if it is right, else the course's.

    `yours(vocab_size, d_model)` has the parts of `OneHeadReader` by name, and returns the same three tensors. Raises
    nothing, but with COURSE_STRICT=1 AssertionError for a wrong class.
    """
    said = _verdict(yours)
    print(said)
    if said[0] == "✗" and strict():
        raise AssertionError(said)
    if said[0] == "✓":
        return yours
    print("  Until yours is right, the notebook goes on with the course's model.")
    return OneHeadReader


def _verdict(yours: type) -> str:
    if yours is OneHeadReader:
        return f"○ {WHAT}: this is the course's, not yours. Run the cell with your class again, then this one."
    with torch.random.fork_rng():
        torch.manual_seed(4)
        ours = OneHeadReader(**SMALL)
        for weight in ours.parameters():
            nn.init.normal_(weight)                       # large enough for every mistake to show
        try:
            theirs = yours(**SMALL)
            theirs.load_state_dict(ours.state_dict())
        except Exception as error:
            return f"✗ {WHAT}: your class can't be built ({_short(error)}). Leave the lines of __init__ as they were."
    mask = PADDED > 0
    try:
        results = theirs(PADDED, mask)
    except Exception as error:
        if "ellipsis" in str(error):
            return f"○ {WHAT}: there are still blanks (...) in forward."
        return f"✗ {WHAT}: your forward stops with {_short(error)}.{_advice(error)}"
    expected = dict(zip(("logits", "weights", "pooling"), ours(PADDED, mask), strict=True))
    if not isinstance(results, tuple) or len(results) != 3 or not all(isinstance(one, Tensor) for one in results):
        return f"✗ {WHAT}: forward should return logits, weights, pooling, as its last line did."
    for (name, right), got in zip(expected.items(), results, strict=True):
        if got.shape != right.shape:
            return f"✗ {WHAT}: {name} has the shape {tuple(got.shape)}, expected {tuple(right.shape)} for this batch."
    logits, weights, pooling = results
    if not _same(weights, expected["weights"]):
        return f"✗ {WHAT}: {_wrong_weights(ours, mask, weights)}"
    if not _same(logits, expected["logits"]) or not _same(pooling, expected["pooling"]):
        return f"✗ {WHAT}: {_wrong_vectors(ours, mask, logits)}"
    return f"✓ {WHAT} is yours: with the same numbers in it, it gives the same answers as the course's."


def _wrong_weights(ours: OneHeadReader, mask: Tensor, weights: Tensor) -> str:
    x = ours.embedding(PADDED)
    for turn, divisor, dim in itertools.product(TURN, DIVISOR, DIM):
        if _same(weights, ours.attend(x, mask, turn, divisor, dim)):
            return " Also, ".join(filter(None, (TURN[turn], DIVISOR[divisor], DIM[dim])))
    weighed = ours.attend(x, torch.ones_like(mask)).masked_fill(~mask[:, None, :], -math.inf).softmax(dim=-1)
    if _same(weights, weighed):
        return ("what you call scores are weights already (2), so softmax runs twice. A function of attention returns "
                "context and weights; here the scores are wanted: query times key, divided by the root.")
    rows = weights.sum(dim=-1)
    if not _same(rows, torch.ones_like(rows)):
        return (f"the rows of your weights sum to {rows.min():.2f} to {rows.max():.2f}; each should sum to one. Take the "
                "softmax of the scores, over the keys (3).")
    if (padding := weights.masked_select(~mask[:, None, :]).max()) > 0:
        return (f"padding gets a weight of {padding:.2f}. (3) must use `scores`, as the line with masked_fill leaves them: "
                "scores made afresh, here or in another function, know no mask.")
    right = ours.attend(x, mask)[0, 0, 0]
    return (f"your first attention weight is {weights[0, 0, 0]:.3f}, expected {right:.3f}. Compare (1) to (3) with "
            "the formula of section 3: turned query times turned key, divided by the root, softmax over keys.")


def _wrong_vectors(ours: OneHeadReader, mask: Tensor, logits: Tensor) -> str:
    x = ours.embedding(PADDED)
    value, weights = ours.W_v(x), ours.attend(x, mask)
    mistakes = {
        "each word's own vector is lost: x is replaced by the context (4), and should be added to it.": weights @ value,
        "the context never reaches the words (4): add weights @ value to x.": x,
        "each word gets its own value (4), not its context: add weights @ value to x.": x + value,
        "the values are turned as well. Only queries and keys meet in a score; what is handed over keeps its "
        "direction.": x + weights @ turned(value, ours.speeds),
        "the context is added to the values (4), and should be added to each word's own vector, x.": value + weights @ value,
        "what is mixed are the word vectors, not the values (4): weights @ value.": x + weights @ x,
        "the weights are transposed (4): row i says what word i takes, so it's weights @ value.":
            x + weights.transpose(-2, -1) @ value,
    }
    unmasked = ours.read(x + ours.attend(x, torch.ones_like(mask)) @ value, mask)[0]
    if _same(logits, unmasked):
        right = ours.read(x + weights @ value, mask)[0]
        return (f"the context takes something from padding (4). The review without any is right; of the padded one the "
                f"first logit is {logits[1, 0]:.3f}, expected {right[1, 0]:.3f}. Attention made afresh knows no mask: use "
                "the weights that you have, weights @ value.")
    for said, vectors in mistakes.items():
        if _same(logits, ours.read(vectors, mask)[0]):
            return said
    right = ours.read(x + weights @ value, mask)[0]
    row = int((logits - right).abs().amax(dim=1).argmax())
    return (f"the attention weights are right, but the first logit of review {row + 1} is {logits[row, 0]:.3f}, expected "
            f"{right[row, 0]:.3f}. Look at (4): own vector plus weights @ value.")


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-4, equal_nan=True)


def _advice(error: Exception) -> str:
    """What to do about an error, as far as its text and the place where forward stopped say it."""
    said, made = str(error), {}
    place = error.__traceback__
    while place is not None:
        made = place.tb_frame.f_locals if place.tb_frame.f_code.co_name == "forward" else made
        place = place.tb_next
    if isinstance(error, NameError) and "d_k" in said:
        return " In forward, d_k is query.shape[-1]."
    if "tuple" in said:
        return (" A function of attention returns two things, context and weights; and yours knows no mask. (3) is made "
                "from `scores`.")
    if isinstance(error, RuntimeError) and "weights" in made:
        return (" x and value are (batch, token, d_model), weights (batch, query, key): the context, weights @ value, has "
                "the shape of x and can be added to it (4).")
    if isinstance(error, RuntimeError):
        return (" All of x, query, key and value are (batch, token, d_model); key.transpose(-2, -1) swaps the last two "
                "dimensions of a stack, which .T can't.")
    return ""


def _short(error: Exception) -> str:
    said = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {said[:160]}"
