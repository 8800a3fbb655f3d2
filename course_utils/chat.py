"""`python -m course_utils chat FOLDER`: talk with a chat-tuned Llama in the class that the course wrote.

Does: write a conversation as the tokenizer's own template does, without letting a message forge a turn; stream replies; keep
the key/value cache from turn to turn; say aloud when the context is full and what is left out. Does not: run anything that
is said, look anything up, or remember a conversation after its end.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from course_utils.files.text import print_on_any_console
from course_utils.language_model import LanguageModel, sample
from course_utils.options import between, check_options, whole

if TYPE_CHECKING:                                       # imported where it's needed: it takes seconds
    from transformers import PreTrainedTokenizerBase

__all__ = ["Conversation", "chat_ids", "ends_of", "load_chat"]

MARK = "\ue000"                                         # stands for a message while the template is filled in
LEAVE = ("/quit", "/exit", "/bye")
HELP = "/quit ends, /new begins another conversation; Ctrl-C stops a reply"
GETTING_IT = ("A model of this kind: SmolLM2-135M-Instruct, 270 MB, https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct\n"
              "with the internet:  python -m course_utils chat HuggingFaceTB/SmolLM2-135M-Instruct\n"
              "from a folder:      python -m course_utils chat FOLDER   (config.json, model.safetensors, tokenizer.json)")


def chat_ids(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]], answer_next: bool = True) -> list[int]:
    """A conversation as one row of ids: what the tokenizer's chat template writes, each message as plain text in it.

    `messages` are dicts with 'role' ('system', 'user', 'assistant') and 'content'; `answer_next` opens a turn for the model.
    Equal to `apply_chat_template` for ordinary messages; one that spells a special token, such as '<|im_end|>', stays text
    here and can't forge a turn. Blanks around a message are left out. Raises ValueError for a tokenizer without a template,
    and for turns that its template refuses.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise ValueError("the tokenizer has no chat template, so nobody knows how its model expects a conversation; use a "
                         "model that was tuned for chat, such as one whose name ends in -Instruct")
    from jinja2 import TemplateError

    marked = [message | {"content": f"{MARK}{i}{MARK}"} for i, message in enumerate(messages)]
    try:
        written = tokenizer.apply_chat_template(marked, tokenize=False, add_generation_prompt=answer_next)
    except TemplateError as error:
        raise ValueError(f"the model's chat template refuses these turns: {error}") from None
    ids = []
    for place, part in enumerate(written.split(MARK)):
        if place % 2:                                   # the template's parts and the messages take turns
            text = messages[int(part)]["content"].strip()
            ids += tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        else:
            ids += tokenizer.encode(part, add_special_tokens=False)
    return ids


def ends_of(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """The ids at which a reply is over: the token that ends texts, and those by which the template ends a turn."""
    ends = {tokenizer.eos_token_id} - {None}
    turn = tokenizer.apply_chat_template([{"role": "user", "content": MARK}, {"role": "assistant", "content": MARK}],
                                         tokenize=False)
    after = tokenizer.encode(turn.rpartition(MARK)[2], add_special_tokens=False)
    return ends | ({after[0]} & set(tokenizer.all_special_ids) if after else set())


def printable(text: str) -> str:
    """Text without the characters by which a program could steer the terminal: new lines and tabs stay."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))


class Conversation:
    """A conversation with a chat model: `reply(text)` yields the answer piece by piece as it's drawn.

    `temperature` 0 takes the most probable token, as `sample` does; `max_new_tokens` bounds a reply. The messages so far are
    in `messages`; `notes` holds what the last reply has to say aloud: that turns were left out, or that it was cut off.
    """

    def __init__(self, model: LanguageModel, tokenizer: PreTrainedTokenizerBase, *, system: str | None = None,
                 temperature: float = 0.0, top_p: float | None = 0.9, max_new_tokens: int = 256, seed: int = 0):
        check_options({"temperature": temperature, "max_new_tokens": max_new_tokens},
                      {"temperature": between(0, 100), "max_new_tokens": whole(1, model.config.max_len - 1)})
        self.model, self.tokenizer = model, tokenizer
        self.system = [] if system is None else [{"role": "system", "content": system}]
        self.temperature, self.top_p, self.max_new_tokens = temperature, top_p, max_new_tokens
        self.ends = ends_of(tokenizer)
        self.generator = torch.Generator(model.embedding.weight.device).manual_seed(seed)
        self.begin()

    def begin(self) -> None:
        """Forget all that was said."""
        self.messages, self.notes = [], []
        self.read, self.caches = [], self.model.new_caches()        # the ids in the caches, and the caches

    def reply(self, text: str) -> Iterator[str]:
        """The pieces of the answer to a message.

        Raises ValueError for an empty message and for one that doesn't fit into the context together with an answer; then
        nothing has changed. Where the conversation as a whole doesn't fit any more, its oldest exchanges are left out, and
        `notes` says how many. A reply that is stopped from outside stays in the conversation as far as it got.
        """
        if not text.strip():
            raise ValueError("the message is empty; write something")
        messages, left_out = [*self.messages, {"role": "user", "content": text}], 0
        room = self.model.config.max_len - self.max_new_tokens
        while len(ids := chat_ids(self.tokenizer, self.system + messages)) > room:
            if len(messages) == 1:
                raise ValueError(f"the message has {len(ids):,} tokens with its frame; the model reads "
                                 f"{self.model.config.max_len:,} at once, of which {self.max_new_tokens} are kept for the "
                                 "answer; send it in parts")
            messages, left_out = messages[2:], left_out + 1
        self.messages, self.notes = messages, []
        if left_out:
            oldest = "oldest exchange" if left_out == 1 else f"{left_out} oldest exchanges"
            self.notes.append(f"the context of {self.model.config.max_len:,} tokens is full: from here on the model no "
                              f"longer sees the {oldest}")
        answer, now, done = [], "", False
        self.messages.append({"role": "assistant", "content": ""})
        try:
            for token in self._tokens(ids):
                if done := token in self.ends:
                    break
                answer.append(token)
                before, now = now, self._text(answer)
                self.messages[-1]["content"] = now
                if len(now) > len(before):
                    yield now[len(before) :]
        finally:
            if not answer and not done:                 # stopped before its first token: as if it hadn't been asked
                del self.messages[-2:]
        if not done:
            self.notes.append(f"the reply was cut off after {self.max_new_tokens} tokens (--max-new-tokens)")

    def _text(self, ids: list[int]) -> str:
        """The text of these ids as far as it's certain: a letter of several bytes may want more of them."""
        return printable(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                         .rstrip("\ufffd"))

    @torch.no_grad()
    def _next(self, ids: list[int]) -> torch.Tensor:
        """The logits (1, vocab) after these ids; the caches keep what they have in common with those that were read."""
        same = 0
        while same < min(len(self.read), len(ids) - 1) and self.read[same] == ids[same]:
            same += 1
        for cache in self.caches if self.read else ():  # also what an interrupted reading had begun to add
            cache.key, cache.value = cache.key[..., :same, :], cache.value[..., :same, :]
        self.read = self.read[:same]
        new = torch.tensor([ids[same:]], device=self.model.embedding.weight.device)
        logits = self.model(new, caches=self.caches).logits[:, -1]
        self.read = list(ids)
        return logits

    def _tokens(self, ids: list[int]) -> Iterator[int]:
        for _ in range(self.max_new_tokens):
            token = int(sample(self._next(ids), self.temperature, top_p=self.top_p, generator=self.generator))
            yield token
            ids = [*ids, token]


def load_chat(folder_or_name: str) -> tuple[LanguageModel, PreTrainedTokenizerBase]:
    """A chat-tuned Llama in the course's class, and its tokenizer, from a folder or by its name.

    Raises ModelNotAvailable where there is none to be had, ValueError for one of another kind or without a chat template.
    """
    from transformers import AutoTokenizer

    from course_utils.llama import load_llama
    from course_utils.training.hugging_face import find_checkpoint

    folder = find_checkpoint(folder_or_name)
    model = load_llama(str(folder))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder} has no tokenizer that can be read ({str(error).splitlines()[0][:100]}); copy "
                         "tokenizer.json and tokenizer_config.json there") from None
    if len(tokenizer) > model.config.vocab_size:
        raise ValueError(f"the tokenizer in {folder} has {len(tokenizer):,} tokens, the model {model.config.vocab_size:,}: "
                         "they don't belong together; copy the model's own tokenizer there")
    chat_ids(tokenizer, [{"role": "user", "content": "?"}])
    return model, tokenizer


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, load, talk; return the exit status, 2 (by the parser) for what can't be done."""
    parser = argparse.ArgumentParser(
        description="Talk with a chat-tuned Llama that runs in the course's own class. Nothing that is said is run or kept.",
        epilog=HELP)
    parser.add_argument("folder", metavar="FOLDER", help="a folder with config.json, model.safetensors and a tokenizer; or "
                        "a model's name, which is looked up in COURSE_MODELS or on the hub")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before the conversation (default: what its "
                        "template says)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T",
                        help="0 takes the most probable token each time (default), 1 draws as the model says")
    parser.add_argument("--max-new-tokens", type=int, default=256, metavar="N", help="of a reply (default: 256)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    chosen = parser.parse_args(arguments)
    from course_utils.training.hugging_face import ModelNotAvailable
    try:
        model, tokenizer = load_chat(chosen.folder)
        conversation = Conversation(model, tokenizer, system=chosen.system, temperature=chosen.temperature,
                                    max_new_tokens=chosen.max_new_tokens, seed=chosen.seed)
    except ModelNotAvailable as error:
        parser.error(f"{str(error).splitlines()[0]}\n{GETTING_IT}")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    size = sum(p.numel() for p in model.parameters())
    print(f"{chosen.folder}: {size / 1e6:,.0f} million parameters, reads {model.config.max_len:,} tokens at once; "
          f"what it says may be wrong.\n{HELP}", file=sys.stderr)
    print_on_any_console()
    return talk(conversation)


def talk(conversation: Conversation) -> int:
    """Read messages and print replies until the reader leaves; the exit status."""
    prompt = "\nyou> " if sys.stdin.isatty() else ""
    while True:
        try:
            text = input(prompt)
        except (EOFError, KeyboardInterrupt):           # Ctrl-D, or Ctrl-C with nothing to stop
            print()
            return 0
        except UnicodeDecodeError:
            print("that isn't text in UTF-8; write it anew", file=sys.stderr)
            continue
        command = text.strip().lower()
        if command in LEAVE:
            return 0
        if command == "/new":
            conversation.begin()
            print("a new conversation", file=sys.stderr)
            continue
        if command.startswith("/"):
            print(HELP if command == "/help" else f"there is no command {text.split()[0]!r:.40}; {HELP}", file=sys.stderr)
        if not command or command.startswith("/"):
            continue
        try:
            for piece in conversation.reply(text):
                print(piece, end="", flush=True)
        except KeyboardInterrupt:
            conversation.notes.append("stopped; the conversation goes on with what was said so far")
        except ValueError as error:
            print(error, file=sys.stderr)
            continue
        print(flush=True)
        for note in conversation.notes:
            print(f"({note})", file=sys.stderr)
