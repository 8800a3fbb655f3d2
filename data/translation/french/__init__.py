"""A grammar of English and French that writes a sentence in both languages at once, and knows which words belong together.

Does: `corpus` draws the pairs of data/translation from the grammar and writes the files. Does not: parse or translate
anything; `course_utils.data.translations` loads the files.

From the bottom up: `words` (tokens, elision, contraction), `lexicon` (nouns, adjectives), `verbs` (their forms), `phrases`
(noun phrases, clauses), `numerals` (numbers, dates, times), `scenes` (who can do what to what); a module for each kind of
pair: `kinds` (agreement, adjectives), `negation`, `counting`, `relatives`, `objects`, `questions`, `lengthy`, `pronouns`;
and `corpus` (splits and files).
"""
