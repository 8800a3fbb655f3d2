"""What notebook 20 says of a published chat model in the course's class: a result set.

Writes data/results/real_language_model.json, of SmolLM2-135M-Instruct (Ben Allal et al. 2025) as `load_llama` reads it.
Its weights were a file of about 4 bits a number, written out in float32, so its replies aren't quite those of the weights
that were published. Everything is computed on one thread, and the most probable token is taken where nothing else is
said.

'equality': its logits and 40 tokens, beside the library's class. 'checkpoint': its tensors, counted by part. 'exchanges':
the loss of a paragraph, and what it writes, with parts in each other's place. 'questions': twelve with a short answer; a
reply is right if it has the words that are asked for, as a whole word. 'templates': what it writes after a conversation
that is written down wrongly in one way. 'past the end': what comes after an answer if nobody stops. 'sampled': three
draws at each of three temperatures. 'cost': bytes, and processor seconds of a reply with the key/value cache and without
it, in turn; the ratio is of the same turn.

    COURSE_MODELS=folder python -m course_tools results real_language_model --jobs 1

The folder has a folder `smollm2` with config.json, model.safetensors and a tokenizer. It takes half an hour on a busy
machine.
"""

import functools
import re
import statistics
import time

import torch
from torch.nn import functional as F

from course_tools.studies.needs import Need
from course_tools.studies.runner import ResultSet, once
from course_tools.studies.timing import interleaved, machine
from course_utils.chat import chat_ids, ends_of, load_chat
from course_utils.files import sha256
from course_utils.llama import Llama
from course_utils.random_llama import SMOLLM2
from course_utils.results import fingerprint
from course_utils.training import hugging_face

LENGTH, TURNS, LENGTHS = 40, 5, (8, 40, 160)
CAPITAL = "Which city is the capital of France?"
ADVICE = "Give me one reason to read a book."
# a question, and what a right answer has: one of these, as a whole word, in small letters
QUESTIONS = {
    CAPITAL: ["paris"],
    "How many legs does a spider have?": ["eight", "8"],
    "What is 7 plus 5?": ["12", "twelve"],
    "Who wrote Hamlet?": ["shakespeare"],
    "Which colour do you get when you mix blue and yellow?": ["green"],
    "What is the opposite of cold?": ["hot", "warm"],
    "How many days are there in a leap year?": ["366"],
    "What is 17 times 23?": ["391"],
    "Which letter comes after Q in the alphabet?": ["r"],
    "How many letters are there in the word 'moving'?": ["six", "6"],
    "Is a whale a fish?": ["no", "not", "isn't", "mammal"],
    "What is the first word of this question?": ["what"],
}
TEMPERATURES, DRAWS = (0.7, 1.0, 1.5), 3
PARAGRAPH = ("The film begins slowly. For half an hour nothing happens but rain, and then a letter comes, and everybody in "
             "the house wants to know who wrote it. I went in tired and came out wide awake.")
EXCHANGES = {"queries and output": ("attention.query_projection", "attention.output_projection"),
             "keys and values": ("attention.key_projection", "attention.value_projection"),
             "gate and expand": ("feed_forward.gate", "feed_forward.expand"),
             "the two norms": ("attention_norm", "feed_forward_norm")}
PARTS = {"embedding": "embedding.", "attention": ".attention.", "feed-forward": ".feed_forward.", "norms": "norm."}


def settings() -> str:
    """What the figures depend on, the weights aside, which 'checkpoint' names."""
    return fingerprint(LENGTH, TURNS, LENGTHS, QUESTIONS, ADVICE, TEMPERATURES, DRAWS, PARAGRAPH, EXCHANGES)


def folder():
    """Where the weights are."""
    return hugging_face.find_checkpoint(hugging_face.first_there("smollm2", SMOLLM2))


@functools.cache
def loaded() -> tuple:
    """The model and its tokenizer."""
    return load_chat(str(folder()))


def written(ids: list[int], length: int, model: Llama | None = None, stops: bool = True, **how) -> str:
    """What the model writes after these ids; with `stops` up to and with the first that ends a turn."""
    own, tokenizer = loaded()
    found = (model or own).generate(torch.tensor([ids]), length, **{"temperature": 0, **how})[0, len(ids):].tolist()
    at = next((place for place, token in enumerate(found) if stops and token in ends_of(tokenizer)), length)
    return tokenizer.decode(found[: at + 1])


def asked(question: str) -> list[int]:
    return chat_ids(loaded()[1], [{"role": "user", "content": question}])


def loss_of(model: Llama) -> float:
    """Nats a token of the paragraph."""
    ids = torch.tensor([loaded()[1].encode(PARAGRAPH)])
    with torch.no_grad():
        logits = model(ids).logits
    return round(F.cross_entropy(logits[0, :-1], ids[0, 1:]).item(), 3)


def equality() -> dict:
    """Our logits and tokens beside the library's."""
    import transformers

    model, tokenizer = loaded()
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder(), dtype=torch.float32).eval()
    ids = torch.tensor([asked(CAPITAL)])
    with torch.no_grad():
        ours, other = model(ids).logits, theirs(input_ids=ids).logits
    mine = model.generate(ids, LENGTH, temperature=0)
    library = theirs.generate(ids, max_new_tokens=LENGTH, do_sample=False, eos_token_id=None, pad_token_id=0)
    without = model.generate(ids, LENGTH, temperature=0, use_cache=False)
    return {"gap": float(f"{(ours - other).abs().max():.1e}"), "largest": round(other.abs().max().item(), 1),
            "tokens": LENGTH, "same as the library": torch.equal(mine, library), "same without the cache":
            torch.equal(mine, without)}


def checkpoint() -> dict:
    """The tensors by part."""
    model, _ = loaded()
    numbers = dict.fromkeys(PARTS, 0)
    for name, tensor in model.state_dict().items():
        numbers[next(part for part, within in PARTS.items() if within in name)] += tensor.numel()
    at = folder() / "model.safetensors"
    return {"tensors": len(model.state_dict()), "numbers": numbers, "bytes": at.stat().st_size, "sha256": sha256(at)[:12]}


def exchanges() -> dict:
    """The paragraph's loss, and an answer, as they are and with parts exchanged."""
    own, _ = loaded()
    right, ids, found = own.state_dict(), asked(CAPITAL), {}
    variants = {"as it is": right, "rows as they came": {}}
    d_head = own.positions.d_head
    for name, tensor in right.items():
        if "query_projection" in name or "key_projection" in name:
            tensor = tensor.unflatten(0, (-1, d_head // 2, 2)).transpose(1, 2).flatten(0, 2)
        variants["rows as they came"][name] = tensor
    for name, (one, other) in EXCHANGES.items():
        weights = dict(right)
        for key in right:
            partner = key.replace(f".{one}.", f".{other}.")
            if partner != key and right[partner].shape == right[key].shape:
                weights[key], weights[partner] = right[partner], right[key]
        variants[name] = weights
    model = Llama(own.config).eval()
    for name, weights in variants.items():
        model.load_state_dict(weights)
        found[name] = {"loss": loss_of(model), "text": written(ids, 16, model)}
    return found


def questions() -> dict:
    """The replies, and whether they're right."""
    found = {}
    for question, right in QUESTIONS.items():
        reply = written(asked(question), LENGTH)
        words = re.findall(r"[\w']+", reply.partition("<|im_end|>")[0].lower())
        found[question] = {"reply": reply, "right": any(word in words for word in right)}
    return found


def templates() -> dict:
    """What is written after a conversation that is written down wrongly."""
    _, tokenizer = loaded()
    found = {}
    for question in (CAPITAL, ADVICE):
        right = tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False,
                                              add_generation_prompt=True)
        system = right[: right.index("<|im_start|>user")]
        opened = "<|im_start|>assistant\n"
        wrong = {
            "as it should be": right,
            "no template at all": question,
            "no assistant turn opened": right.removesuffix(opened),
            "the user's turn not ended": right.replace(f"{question}<|im_end|>\n", f"{question}\n"),
            "neither ended nor opened": right.removesuffix(f"<|im_end|>\n{opened}"),
            "opened and closed": right + "<|im_end|>\n",
            "two system turns": system + right,
            "no system turn": right.removeprefix(system),
            "no new line after the role": right.removesuffix("\n"),
        }
        found[question] = {name: written(tokenizer.encode(text, add_special_tokens=False), LENGTH)
                           for name, text in wrong.items()}
    return found


def past_the_end() -> dict:
    """What is written where nobody looks for the end."""
    return {CAPITAL: written(asked(CAPITAL), 2 * LENGTH, stops=False)}


def sampled() -> dict:
    """Draws at several temperatures."""
    ids = asked(ADVICE)
    return {str(temperature): [written(ids, LENGTH, temperature=temperature, generator=torch.Generator().manual_seed(draw))
                               for draw in range(DRAWS)] for temperature in TEMPERATURES}


def cost() -> dict:
    """Bytes, and the processor's seconds for replies of some lengths with the cache and without it."""
    model, _ = loaded()
    ids = torch.tensor([asked(CAPITAL)])
    caches = model.new_caches()
    with torch.no_grad():
        model(ids, caches=caches)
    kept = sum(part.numel() * part.element_size() for cache in caches for part in (cache.key, cache.value))
    found = {"prompt": ids.shape[1], "weights_bytes": sum(4 * p.numel() for p in model.parameters()),
             "cache_bytes_a_token": kept // ids.shape[1], "replies": {}}
    for length in LENGTHS:
        def write(cached, length=length):
            return lambda: model.generate(ids, length, temperature=0, use_cache=cached)

        measured = interleaved({"with": write(True), "without": write(False)}, TURNS if length <= LENGTH else 1)
        ratios = [other / one for one, other in zip(measured["with"], measured["without"])]
        found["replies"][str(length)] = {
            "with": round(statistics.median(measured["with"]), 3),
            "without": round(statistics.median(measured["without"]), 3),
            "ratio": round(statistics.median(ratios), 2), "turns": len(ratios)}
    return found


ROWS = {"equality": equality, "checkpoint": checkpoint, "exchanges": exchanges, "questions": questions,
        "templates": templates, "past the end": past_the_end, "sampled": sampled, "cost": cost}


def run(model: str, seed: int, state) -> dict:
    """Measure one row."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    begun = time.perf_counter()
    try:
        found = ROWS[model]()
    finally:
        torch.set_num_threads(threads)
    return {"machine": machine(), "minutes": round((time.perf_counter() - begun) / 60, 1), "measured": found}


def line(runs: list[dict]) -> str:
    """What was found."""
    return str(runs[0]["measured"])[:300]


WEIGHTS = Need("the weights of SmolLM2-135M-Instruct", lambda row, seed: folder())
SET = ResultSet("real_language_model", dict.fromkeys(ROWS, {}), settings, run, (WEIGHTS,), once, line=line)
