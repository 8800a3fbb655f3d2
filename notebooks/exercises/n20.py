"""Exercises, quiz and warm-up of notebook 20, a real language model."""

import copy
import os

import torch

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import drawn, items_of, what, whole_id

# ---------------------------------------------------------------- 20.1 the order of the rows

def our_order(d_head):
    half = d_head // 2
    return [row for pair in range(half) for row in (pair, pair + half)]


def order_probes(generator: torch.Generator) -> list[tuple]:
    """Eight rows first; the four of the text, where turning the order round changes nothing; others."""
    more = (2 * torch.randperm(8, generator=generator)[:2] + 10).tolist()
    return [(8,), (4,), (6,), *((d_head,) for d_head in more), (2,)]


def observe_order(function, d_head):
    output = function(d_head)
    if output is None:
        return None
    rows = items_of(output, "a list of rows, such as [0, 2, 1, 3]")
    if pairs := [row for row in rows if isinstance(row, (tuple, list))]:
        raise TypeError(f"expected one list of rows, such as [0, 2, 1, 3], got a list with {what(pairs[0])} in it")
    return torch.tensor([whole_id(row) for row in rows])


def _rows(case: Case) -> str:
    got, right = (" ".join(str(int(row)) for row in rows[:8]) for rows in (case.answer, case.expected))
    return f"with d_head = {case.inputs[0]} your order begins {got}, expected {right}."


ORDER = ask(
    "20.1", our_order,
    probes=order_probes,
    observe=observe_order,
    signature="our_order(d_head: an even number) -> a list of d_head rows of the library's, in our order",
    mistakes={
        "as-they-are": M(
            lambda d_head: list(range(d_head)), _rows,
            "That's the order in which they come. Our first pair, rows 0 and 1, must be what turns together there: row 0 "
            "and its partner in the second half."),
        "the-way-back": M(
            lambda d_head: [*range(0, d_head, 2), *range(1, d_head, 2)], _rows,
            "That's the way back, from our pairs to halves. With four rows the two are equal, so the example in the text "
            "can't tell them apart. At our place 1 stands the partner of row 0, which is row d_head / 2."),
        "partner-first": M(
            lambda d_head: [row for pair in range(d_head // 2) for row in (pair + d_head // 2, pair)], _rows,
            "Each pair is the right one, but its rows have changed places: the first of ours is the one of the first half. "
            "With the two exchanged, everything turns the other way."),
        "from-both-ends": M(
            lambda d_head: [row for pair in range(d_head // 2) for row in (pair, d_head - 1 - pair)], _rows,
            "You pair the first row with the last. The library turns row i with row i + d_head / 2."),
        "halves-exchanged": M(
            lambda d_head: [*range(d_head // 2, d_head), *range(d_head // 2)], _rows,
            "You exchange the two halves. Take one row of the first half and one of the second, in turn."),
        "second-half-first-pairwise": M(
            lambda d_head: [*range(1, d_head, 2), *range(0, d_head, 2)], _rows,
            "You take the odd rows, then the even ones. Take one row of the first half and one of the second, in turn."),
        "counted-from-one": M(
            lambda d_head: [row + 1 for row in our_order(d_head)], _rows,
            "You count from 1. Rows are numbered from 0, so there is no row d_head."),
        "half-of-four": M(
            lambda d_head: [row for pair in range(d_head // 2) for row in (pair, (pair + 2) % d_head)], _rows,
            "The partner is 2 further on only if the head has four rows. In general it's d_head / 2 further on."),
        "neighbours-exchanged": M(
            lambda d_head: [row for pair in range(d_head // 2) for row in (2 * pair + 1, 2 * pair)], _rows,
            "You exchange neighbours. The partner of row i is row i + d_head / 2."),
    },
    rules=(
        R(lambda case: sorted(case.answer.tolist()) != sorted(case.expected.tolist()), _rows,
          "Every row from 0 to d_head - 1 must be there once, or a row of the matrix is lost."),
        R(lambda case: case.answer.tolist() != case.expected.tolist(), _rows,
          "Two rows that turn together there, i and i + d_head / 2, must be neighbours here."),
    ),
    hints=(
        "Write down the library's pairs first: with eight rows 0 and 4, 1 and 5, 2 and 6, 3 and 7.",
        "Our order is those pairs, one after the other.",
        "[row for pair in range(d_head // 2) for row in (pair, pair + d_head // 2)]",
    ),
)

# ---------------------------------------------------------------- 20.2 the chat template

def write_chat(messages, default_system, answer_next):
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": default_system}, *messages]
    text = ""
    for message in messages:
        text += f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n"
    if answer_next:
        text += "<|im_start|>assistant\n"
    return text


def _chat(system="where-none", turn="<|im_start|>{role}\n{content}<|im_end|>\n", opened="<|im_start|>assistant\n",
          when=lambda answer_next, messages: answer_next, take=lambda messages: messages, role=lambda role: role,
          content=lambda content: content, end=lambda text, messages: text):
    """A template with one or more things changed."""
    def answer(messages, default_system, answer_next):
        ours = {"role": "system", "content": default_system}
        given = messages[0]["role"] == "system"
        if system == "anywhere":
            given = any(message["role"] == "system" for message in messages)
        if system == "always" or system in ("where-none", "anywhere") and not given:
            messages = [ours, *messages]
        elif system == "replaced":
            messages = [ours, *messages[given:]]
        elif system == "last" and not given:
            messages = [*messages, ours]
        text = "".join(turn.format(role=role(message["role"]), content=content(message["content"]))
                       for message in take(messages))
        return end(text, messages) + (opened if when(answer_next, messages) else "")
    return answer


ASKED = ["Is it dull?", "Who wrote it?", "Why not?", "And the end?", "What moved you?", "Is it long?", "Shall I go?"]
SAID = ["Not at all.", "Nobody knows.", "It's moving.", "Two hours.", "Yes, do.", "The last page.", "Read it twice."]
TOLD = ["Be brief.", "Answer in verse.", "You review films.", "Say what you don't know.", "Be kind."]


def chat_probes(generator: torch.Generator) -> list[tuple]:
    """One question; one with a system turn; three turns; a finished exchange; blanks and new lines in a message; a system
    turn and a finished exchange; a question that isn't to be answered; an answer that is to be followed by another; a
    system turn in the middle."""
    q, a, (s, default) = drawn(generator, ASKED, 6), drawn(generator, SAID, 4), drawn(generator, TOLD, 2)

    def turns(*texts, system=""):
        first = [{"role": "system", "content": system}] if system else []
        return first + [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]

    return [(turns(q[0]), default, True), (turns(q[1], system=s), default, True),
            (turns(q[2], a[0], q[3]), default, True), (turns(q[4], a[1]), default, False),
            (turns(f"  {q[5]}\n{q[0]} "), default, True), (turns(q[1], a[2], q[3], a[3], system=s), default, False),
            (turns(q[3]), default, False), (turns(q[2], a[1]), default, True),
            ([*turns(q[0], a[2]), *turns(q[5], system=s)], default, True)]


def observe_chat(function, messages, default_system, answer_next):
    given = copy.deepcopy(messages)
    output = function(given, default_system, answer_next)
    if output is None:
        return None
    if not isinstance(output, str):
        raise TypeError(f"expected one text, got {what(output)}")
    return {"text": output, "given": "as it was" if given == messages else "changed"}


def _differs(case: Case) -> str:
    got, right = case.text, case.right["text"]
    same = len(os.path.commonprefix([got, right]))

    def after(text):
        return repr(text[same : same + 26]) if text[same:] else "nothing"
    before = repr(got[max(0, same - 20) : same]) if same else "the beginning"
    return f"after {before} your text goes on with {after(got)}, expected {after(right)}."


def _put_in(messages, default_system, answer_next):
    """The right text, but the system turn goes into the list that was given."""
    if messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": default_system})
    return write_chat(messages, default_system, answer_next)


def _given(case: Case) -> str:
    return "the list of messages isn't afterwards what it was before."


def _count(piece: str):
    return lambda case: (f"your text of {len(case.inputs[0])} messages has {case.text.count(piece)} times {piece}, expected "
                         f"{case.right['text'].count(piece)}.")


CHAT = ask(
    "20.2", write_chat,
    probes=chat_probes,
    observe=observe_chat,
    signature="write_chat(messages: a list of {'role': …, 'content': …}, default_system: a text, answer_next: True or "
    "False) -> one text",
    mistakes={
        "ends-forgotten": M(
            _chat(turn="<|im_start|>{role}\n{content}\n"), _count("<|im_end|>"),
            "No turn is ended. To the model the user is still speaking, and it may go on in the user's place."),
        "last-end-forgotten": M(
            _chat(end=lambda text, messages: text.removesuffix("<|im_end|>\n")), _count("<|im_end|>"),
            "The last message isn't ended: the mark is only put between messages. Every message ends with it, the last one, "
            "too."),
        "last-end-forgotten-but-the-line-ended": M(
            _chat(end=lambda text, messages: text.removesuffix("<|im_end|>\n") + "\n"), _count("<|im_end|>"),
            "The last message isn't ended, there's only a new line. The model can't know that it's the other's turn."),
        "two-system-turns": M(
            _chat("always"), _count("<|im_start|>system"),
            "There is a system turn already, and you put the default one before it. Put it in only where the conversation "
            "doesn't begin with one."),
        "no-system-turn": M(
            _chat("never"), _count("<|im_start|>system"),
            "The conversation doesn't begin with a system turn, and then the default one is put in front. The model was "
            "tuned on conversations that have one."),
        "system-turn-replaced": M(
            _chat("replaced"), _differs,
            "You put the default system turn in place of the one that was given. The default is only for conversations "
            "that have none."),
        "system-turn-anywhere": M(
            _chat("anywhere"), _count("<|im_start|>system"),
            "You ask whether there's a system turn anywhere. One in the middle is no beginning: leave the default one out "
            "only where messages[0] is a system turn."),
        "system-turn-last": M(
            _chat("last"), _differs,
            "The system turn comes first, before the conversation."),
        "not-opened": M(
            _chat(opened=""), _count("<|im_start|>assistant"),
            "With answer_next, the text ends with an opened turn of the assistant. Without it the model first has to guess "
            "who speaks next, and it may guess the user."),
        "always-opened": M(
            _chat(when=lambda answer_next, messages: True), _count("<|im_start|>assistant"),
            "You open a turn for the assistant where answer_next is False, too: in a finished conversation, as one is "
            "trained on, nobody speaks next."),
        "opened-after-a-question": M(
            _chat(when=lambda answer_next, messages: messages[-1]["role"] == "user"), _count("<|im_start|>assistant"),
            "Whether a turn is opened depends on answer_next alone. You open one where the last message is the user's."),
        "opened-only-after-a-question": M(
            _chat(when=lambda answer_next, messages: answer_next and messages[-1]["role"] == "user"),
            _count("<|im_start|>assistant"),
            "Whether a turn is opened depends on answer_next alone. You open one only where the last message is the user's "
            "as well."),
        "opened-the-wrong-way-round": M(
            _chat(when=lambda answer_next, messages: not answer_next), _count("<|im_start|>assistant"),
            "You open a turn when answer_next is False, and none when it's True."),
        "opened-and-closed": M(
            _chat(opened="<|im_start|>assistant\n<|im_end|>\n"), _count("<|im_end|>"),
            "You open the assistant's turn and close it at once: an empty answer has been given, and what follows it is "
            "the user. Leave it open; the model closes it."),
        "opened-without-a-new-line": M(
            _chat(opened="<|im_start|>assistant"), _differs,
            "After the role comes a new line, in the opened turn, too."),
        "opened-for-the-user": M(
            _chat(opened="<|im_start|>user\n"), _count("<|im_start|>user"),
            "You open a turn for the user. Whose turn is opened, him the model speaks for."),
        "opened-with-a-second-new-line": M(
            _chat(opened="<|im_start|>assistant\n\n"), _differs,
            "One new line follows the role. A second one would be the beginning of the answer."),
        "no-new-line-after-the-role": M(
            _chat(turn="<|im_start|>{role}{content}<|im_end|>\n"), _differs,
            "Between role and message there's a new line. Without it they're one word."),
        "blank-after-the-role": M(
            _chat(turn="<|im_start|>{role} {content}<|im_end|>\n"), _differs,
            "Between role and message there's a new line, not a blank. It's another token, and the model has never seen it "
            "there."),
        "colon-after-the-role": M(
            _chat(turn="<|im_start|>{role}: {content}<|im_end|>\n"), _differs,
            "Between role and message there's a new line, and no colon. This model has never seen one there."),
        "no-new-line-after-the-end": M(
            _chat(turn="<|im_start|>{role}\n{content}<|im_end|>"), _differs,
            "After <|im_end|> comes a new line."),
        "new-line-before-the-end": M(
            _chat(turn="<|im_start|>{role}\n{content}\n<|im_end|>\n"), _differs,
            "The end follows the message at once, without a new line between them."),
        "starts-forgotten": M(
            _chat(turn="{role}\n{content}<|im_end|>\n", opened="assistant\n"), _count("<|im_start|>"),
            "A turn begins with <|im_start|>. Without it, the role is just a word of the text."),
        "last-message-only": M(
            _chat(take=lambda messages: messages[:1] + messages[1:][-1:]), _differs,
            "Only the last message is there. A model remembers nothing: what was said before has to be in the text each "
            "time."),
        "last-message-and-the-default": M(
            lambda messages, default_system, answer_next: write_chat(messages[-1:], default_system, answer_next), _differs,
            "Only the last message is there, after the default system turn. A model remembers nothing: what was said before "
            "has to be in the text each time, a system turn, too."),
        "last-message-alone": M(
            lambda messages, *more: _chat("never")(messages[-1:], *more), _differs,
            "Only the last message is there. A model remembers nothing: what was said before has to be in the text each "
            "time, after a system turn."),
        "system-and-user-only": M(
            _chat(take=lambda messages: [one for one in messages if one["role"] != "assistant"]),
            _count("<|im_start|>assistant"),
            "What the assistant has said is left out. It's part of the conversation, and the model doesn't remember it."),
        "all-are-users": M(
            _chat(role=lambda role: "user"), _count("<|im_start|>user"),
            "Every turn is called 'user'. Take the message's own role."),
        "roles-in-capitals": M(
            _chat(role=str.capitalize), _differs,
            "The roles begin with a small letter. For the model these are other tokens."),
        "no-marks": M(
            _chat(turn="{role}: {content}\n", opened="assistant: "), _count("<|im_start|>"),
            "Your turns have names, but none of this model's marks. It was tuned on turns that begin with <|im_start|> and "
            "end with <|im_end|>."),
        "no-marks-and-no-blank": M(
            _chat(turn="{role}: {content}\n", opened="assistant:"), _count("<|im_start|>"),
            "Names and colons are another model's form. This one was tuned on turns that begin with <|im_start|> and end "
            "with <|im_end|>."),
        "joined": M(
            _chat(end=lambda text, messages: text.removesuffix("\n")), _differs,
            "join puts a new line between the turns and none after the last one, so the opened turn begins in its line. "
            "Every turn ends with a new line."),
        "joined-and-then-opened": M(
            _chat(end=lambda text, messages: text.removesuffix("\n"), opened="\n<|im_start|>assistant\n"), _differs,
            "join puts a new line between the turns and none after the last one. You make up for it where a turn is opened; "
            "a finished conversation ends with a new line, too."),
        "stripped": M(
            _chat(content=str.strip), _differs,
            "You leave out blanks around a message. This template writes messages as they are. (Some templates do leave "
            "them out, and so does the course's `chat`.)"),
        "last-new-line-forgotten": M(
            _chat(end=lambda text, messages: text.removesuffix("\n"), opened="\n<|im_start|>assistant"), _differs,
            "The text ends with a new line, whether a turn is opened or not. Yours is gone, perhaps by strip or join."),
        "list-changed": M(
            _put_in, _given,
            "The text is right, but you've put the system turn into the caller's list, and the conversation goes on with a "
            "turn that nobody gave it. Make a new list: [{…}, *messages]."),
    },
    rules=(
        R(lambda case: case.text.count("<|im_end|>") != case.right["text"].count("<|im_end|>"), _count("<|im_end|>"),
          "Each message is ended once; an opened turn isn't."),
        R(lambda case: case.text.count("<|im_start|>") != case.right["text"].count("<|im_start|>"), _count("<|im_start|>"),
          "Each message begins with one, and so does the opened turn."),
        R(lambda case: case.text != case.right["text"], _differs,
          "<|im_start|>, the role, a new line, the message, <|im_end|>, a new line."),
        R(lambda case: case.given != case.right["given"], _given, "Leave the caller's list as it is."),
    ),
    hints=(
        "First look whether messages[0]['role'] is 'system'. If it isn't, put a message of your own before the others, in "
        "a new list.",
        "f\"<|im_start|>{message['role']}\\n{message['content']}<|im_end|>\\n\" is one turn.",
        "After the loop: if answer_next: text += \"<|im_start|>assistant\\n\"",
    ),
)

# ---------------------------------------------------------------- 20.3 the reply

def reply(next_logits, ids, ends, limit):
    answer = []
    while len(answer) < limit:
        token = next_logits(ids + answer).argmax().item()
        if token in ends:
            break
        answer.append(token)
    return answer


def _reply(read=lambda ids, answer: ids + answer, choose=lambda logits: logits.argmax().item(),
           over=lambda token, ends: token in ends, keep_end=False, limit_of=lambda limit: limit, prompt=False,
           change=False):
    """A reply with one or more things changed."""
    def answer_to(next_logits, ids, ends, limit):
        answer, given = [], list(ids)
        while len(answer) < limit_of(limit):
            token = choose(next_logits(read(given, answer)))
            if over(token, ends):
                if keep_end:
                    answer.append(token)
                break
            answer.append(token)
        if change:
            ids.extend(answer)
        return given + answer if prompt else answer
    return answer_to


VOCABULARY = 12


def reply_probes(generator: torch.Generator) -> list[tuple]:
    """(prompt, what is said after it, ends, limit): an end after five tokens; another of two ends; none before the limit; an
    end at once; a limit of one; ids that end nothing here; the larger of two ends."""
    words = (torch.randperm(8, generator=generator) + 4).tolist()
    a, b, c, d, e, f = words[:6]
    return [([a, b, c], [d, e, d, f, c, 2, a, b, e, f], {2}, 9), ([c, a], [b, e, 1, d, 2, f, a, c], {1, 2}, 7),
            ([f, e, d, a], [b, c, b, a, d, e, f, b, c], {3}, 6), ([b], [2, c, d, e, f, a], {2}, 5),
            ([d, f], [a, c, 2, e], {2}, 1), ([e, b], [3, 1, c, 2, d, a, f], {2}, 6), ([a, d], [f, 3, b, 2, c, e], {1, 3}, 6)]


def observe_reply(function, ids, said, ends, limit):
    """The reply to a script: after the prompt and n of its tokens comes the next one; after anything else, another token."""
    given, longest = list(ids), [0]

    def next_logits(row):
        row = [whole_id(token) for token in items_of(row, "a list of ids")]
        longest[0] = max(longest[0], len(row) - len(ids))
        if len(row) > len(ids) + 30:
            raise RuntimeError("the model was asked for more than thirty tokens; the limit was "
                               f"{limit}")
        logits = torch.zeros(VOCABULARY)
        at = len(row) - len(ids)
        follows = row[: len(ids)] == list(ids) and row[len(ids):] == said[: max(at, 0)] and at >= 0
        token = said[at] if follows and at < len(said) else (3 * sum(row) + 5 * len(row)) % 8 + 4
        logits[token], logits[(token + 5) % VOCABULARY] = 3.0, -3.0
        return logits

    output = function(next_logits, given, set(ends), limit)
    if output is None:
        return None
    row = [whole_id(token) for token in items_of(output, "a list of ids")]
    return {"reply": " ".join(map(str, row)) or "nothing", "prompt": " ".join(map(str, given)),
            "asked": torch.tensor(float(longest[0]))}


def _reply_seen(case: Case) -> str:
    ids, _, ends, limit = case.inputs
    return (f"to the prompt {' '.join(map(str, ids))}, where {' or '.join(map(str, sorted(ends)))} ends a reply and the "
            f"limit is {limit}, you answer [{case.reply}], expected [{case.right['reply']}].")


REPLY = ask(
    "20.3", reply,
    probes=reply_probes,
    observe=observe_reply,
    signature="reply(next_logits: a function of a list of ids that gives logits (vocab,), ids: the prompt, a list, ends: a "
    "set of ids, limit: a number) -> the reply, a list of new ids",
    mistakes={
        "never-ends": M(
            _reply(over=lambda token, ends: False), _reply_seen,
            "An id of `ends` says that the reply is over, and yours goes on. What a chat model writes after it is the next "
            "speaker's turn. (Do you look, and with a tensor? It's never in a set of numbers: take .item() first.)"),
        "end-kept": M(
            _reply(keep_end=True), _reply_seen,
            "The end is in your reply. It's a mark, not a word; the template writes it when the reply becomes a message, "
            "and then it would be there twice."),
        "prompt-given-back": M(
            _reply(prompt=True), _reply_seen,
            "You return the prompt as well. The reply is what's new."),
        "prompt-and-end-given-back": M(
            _reply(prompt=True, keep_end=True), _reply_seen,
            "You return the prompt as well, and the end. The reply is what's between them."),
        "reply-not-read": M(
            _reply(read=lambda ids, answer: list(ids)), _reply_seen,
            "You ask after the prompt each time, so the model never sees what it has just said. Ask after ids + answer."),
        "prompt-read-once": M(
            _reply(read=lambda ids, answer: answer[-1:] or list(ids)), _reply_seen,
            "After the first token you give the model only the newest one. It needs all of the text; a cache may keep that, "
            "but `next_logits` asks for all ids."),
        "reply-read-alone": M(
            _reply(read=lambda ids, answer: list(answer) or list(ids)), _reply_seen,
            "After the first token you leave the prompt out, so the question is forgotten. Ask after ids + answer."),
        "newest-only": M(
            _reply(read=lambda ids, answer: ids + answer[-1:]), _reply_seen,
            "You ask after the prompt and the newest token. What came between is missing."),
        "one-end-only": M(
            _reply(over=lambda token, ends: token == max(ends)), _reply_seen,
            "You look for one of the ends. There may be several, such as the end of a turn and the end of a text: token in "
            "ends."),
        "the-smallest-end-only": M(
            _reply(over=lambda token, ends: token == min(ends)), _reply_seen,
            "You look for one of the ends. There may be several, such as the end of a turn and the end of a text: token in "
            "ends."),
        "least-probable": M(
            _reply(choose=lambda logits: logits.argmin().item()), _reply_seen,
            "You take the token with the lowest logit. argmax finds the most probable one."),
        "one-too-many": M(
            _reply(limit_of=lambda limit: limit + 1), _reply_seen,
            "Your reply may be one token longer than the limit."),
        "one-too-few": M(
            _reply(limit_of=lambda limit: limit - 1), _reply_seen,
            "Your reply is cut off one token before the limit."),
        "limit-counts-the-prompt": M(
            lambda next_logits, ids, ends, limit: _reply(limit_of=lambda limit: limit - len(ids))(
                next_logits, ids, ends, limit), _reply_seen,
            "You count the prompt's tokens as well. The limit is for the reply."),
        "no-limit": M(
            _reply(limit_of=lambda limit: 12), _reply_seen,
            "Your reply goes on after the limit. A model that never writes an end would write for ever."),
        "prompt-changed": M(
            _reply(change=True),
            lambda case: f"the prompt was {' '.join(map(str, case.inputs[0]))}, and is {case.prompt} afterwards.",
            "The reply is right, but you've put it into the caller's list. The next reply to the same prompt would begin "
            "with this one. Make a new list: ids + answer."),
    },
    rules=(
        R(lambda case: case.prompt != case.right["prompt"],
          lambda case: f"the prompt was {' '.join(map(str, case.inputs[0]))}, and is {case.prompt} afterwards.",
          "Leave the caller's list as it is."),
        R(lambda case: case.reply != case.right["reply"], _reply_seen,
          "Ask after the prompt and all of the reply so far; stop at an end, which isn't kept, or at the limit."),
        R(lambda case: case.asked > case.right["asked"],
          lambda case: f"you ask for {int(case.asked) + 1} tokens where {int(case.right['asked']) + 1} are enough.",
          "The reply is right, but each question to the model costs time. Stop when the reply is as long as the limit."),
    ),
    hints=(
        "Begin with answer = [], and go on while len(answer) < limit.",
        "next_logits(ids + answer).argmax().item() is the next token; ids + answer is a new list.",
        "if token in ends: break, before it's appended.",
    ),
)

# ---------------------------------------------------------------- 20.4 what a token costs

def kept_for_each_token():
    # a key and a value in each of 30 layers, for 3 heads of 64 numbers
    return 11_520


def _value(case: Case) -> str:
    return f"{case.answer.item():,.0f}:"


CACHE = ask(
    "20.4", kept_for_each_token,
    kind="number",
    signature="a number: how many numbers",
    mistakes={
        "key-only": M(
            lambda: 5_760, lambda case: f"{_value(case)} those are the keys, or the values.",
            "The cache keeps both."),
        "all-heads": M(
            lambda: 34_560, lambda case: f"{_value(case)} that's what nine heads of keys and values would keep.",
            "The queries have nine heads, and they're never kept. Keys and values have three."),
        "all-heads-key-only": M(
            lambda: 17_280, lambda case: f"{_value(case)} that's 30 · 9 · 64.",
            "Keys and values have three heads, not nine, and both are kept."),
        "one-layer": M(
            lambda: 384, lambda case: f"{_value(case)} that's one layer.",
            "Each of the 30 layers has a cache."),
        "one-layer-key-only": M(
            lambda: 192, lambda case: f"{_value(case)} that's the keys of one layer.",
            "Each of the 30 layers has a cache, and it keeps values as well."),
        "one-layer-all-heads": M(
            lambda: 1_152, lambda case: f"{_value(case)} that's one layer, with nine heads.",
            "Keys and values have three heads, and each of the 30 layers has a cache."),
        "heads-not-counted": M(
            lambda: 3_840, lambda case: f"{_value(case)} that's one head of keys and values in each layer.",
            "There are three."),
        "numbers-not-counted": M(
            lambda: 180, lambda case: f"{_value(case)} that's how many keys and values.",
            "Each of them is a vector of 64 numbers."),
        "bytes": M(
            lambda: 46_080, lambda case: f"{_value(case)} those are bytes, 4 for each number.",
            "Asked for is how many numbers."),
        "bytes-of-16-bits": M(
            lambda: 23_040, lambda case: f"{_value(case)} those are bytes, 2 for each number.",
            "Asked for is how many numbers."),
        "with-queries": M(
            lambda: 28_800, lambda case: f"{_value(case)} that has the queries of nine heads in it.",
            "A query is used once, by its own token, and isn't kept."),
        "hidden-size-for-a-head": M(
            lambda: 103_680, lambda case: f"{_value(case)} that's with 576 numbers for each head.",
            "The 576 are shared out to 9 heads: a head has 64."),
        "whole-context": M(
            lambda: 94_371_840, lambda case: f"{_value(case)} that's for 8,192 tokens, a full context.",
            "Asked for is what one token leaves."),
    },
    rules=(
        R(lambda case: abs(case.answer.item() - 11_520) > 0.5, lambda case: f"{_value(case)} that isn't it.",
          "A key and a value, in each layer, for each head of keys, d_head numbers each."),
    ),
    hints=(
        "d_head is hidden_size / num_attention_heads = 576 / 9.",
        "Keys and values have num_key_value_heads = 3 heads.",
        "2 · 30 layers · 3 heads · 64 numbers",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: loads-without-error
  taught: "20"
  question: Somebody's Llama loads into your class without an error, every name found, every shape right, and it writes
    nonsense. What do you look at first?
  options:
    - text: Whether the rows of queries and keys are in the order in which your class turns them.
      right: true
      remark: The shape is the same in both orders, so nothing can complain. Compare logits with the library's.
    - text: Whether the tensors were cut off when the file was read.
      remark: Then a shape would be wrong, and loading would stop.
    - text: Whether the model is still in training mode, with dropout.
      remark: This one has no dropout, and dropout blurs a text rather than wrecks it.
- name: what-answers
  taught: "20"
  question: A chat model gets a question without its template, as plain text. What does it do?
  options:
    - text: It refuses, since the special tokens are missing.
      remark: It can't refuse. It gets ids and gives probabilities for the next one, as with any text.
    - text: It continues the text. That may be an answer, or another question, or anything else that follows such a line.
      right: true
      remark: The template turns a question into a text whose likely continuation is an answer.
    - text: It answers, as usual, because it was tuned to answer.
      remark: It was tuned to continue texts of one form. In another form, what follows is less sure.
- name: after-the-end
  taught: "20"
  question: A program takes 40 tokens from a chat model and doesn't look for the end of the turn. What does it show?
  options:
    - text: The answer, and nothing after it, since a model stops when it's done.
      remark: A model never stops. It gives probabilities for one more token, and a loop decides whether to ask again.
    - text: The answer, then blanks up to 40 tokens.
      remark: Blanks aren't what follows an answer in a conversation.
    - text: The answer, then what such conversations go on with, often a turn that the model invents for the user.
      right: true
      remark: The end of a turn is a token like any other, and after it comes the next turn.
- name: remembered
  taught: "20"
  question: In its second reply a chat model knows what you said in your first message. Where was that kept?
  options:
    - text: In the text. The whole conversation is written out again for each reply.
      right: true
      remark: A cache saves the work of reading it again, and keeps nothing that the text doesn't have.
    - text: In the weights, which the first message has changed a little.
      remark: Nothing is trained here. After a thousand conversations the weights are the same to the last bit.
    - text: In the system turn.
      remark: It's written before the conversation, and doesn't change.
- name: grouped-cache
  taught: "20"
  question: A model with 32 heads of queries gets 8 heads of keys and values in place of 32. What shrinks to a quarter?
  options:
    - text: The matrix of scores, which has a row for each query.
      remark: There are still 32 heads of scores; each query asks for itself.
    - text: All the weights of attention.
      remark: The matrices of keys and values shrink; those of queries and of the output stay.
    - text: The cache, and with it what a long conversation costs in memory.
      right: true
      remark: It keeps keys and values. Queries are used once and thrown away.
- name: one-run-one-reply
  taught: "12"
  question: You ask one chat model twelve questions, and it gets nine right. Another gets seven. Which is better?
  options:
    - text: The first, by 17 points.
      remark: With twelve questions, the interval of each is about 25 points to either side.
    - text: One can't tell from this. On twelve questions, two more or less are chance.
      right: true
      remark: Twelve questions show what kind of thing a model does, not how well it does it.
    - text: They're equally good.
      remark: That doesn't follow either. The question is open until there are more questions.
"""

WARM_UP = """
- name: bytes-of-a-weight
  taught: "19"
  question: A model has 135 million parameters. How many bytes do its weights take in float32, when it's only used?
  options:
    - text: About 135 MB, one byte each.
      remark: That would be 8 bits each. float32 has 32.
    - text: About 540 MB, four bytes each.
      right: true
      remark: Training takes four times as much, for gradients and moments. To be used, it's the weights and a cache.
    - text: About 2.2 GB, sixteen bytes each.
      remark: Sixteen are for a training with AdamW, with gradients and two moments. Nothing is trained today.
- name: what-the-cache-keeps
  taught: "13"
  question: What does the key/value cache save while a model writes?
  options:
    - text: That the earlier tokens are read again for each new one.
      right: true
      remark: Their keys and values don't change, since no token sees a later one. They're kept, and only the new token is
        computed.
    - text: That the vocabulary is scored for each new token.
      remark: That has to be done each time, or no token could be chosen.
    - text: Memory, since keys and values needn't be stored.
      remark: It's the other way round. It stores them, and saves time.
- name: rotary-distance
  taught: "06"
  question: Rotary positions turn queries and keys by angles that grow with the position. What does a score then depend on?
  options:
    - text: On the two positions themselves.
      remark: Both are turned, and in the product one angle is subtracted from the other.
    - text: On the two vectors alone.
      remark: Then the order of the words wouldn't matter, and it does.
    - text: On the two vectors and the distance between the tokens.
      right: true
      remark: The position cancels; only the distance remains. It doesn't matter which columns turn together, as long as
        queries and keys agree. Today that comes back.
"""
