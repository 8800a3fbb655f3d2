"""Quiz of 'Attention in an hour'; its exercises are those of 04 and 11, and stay there."""

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: hour-equal-scores
  taught: "hour"
  question: A word has the score 0 with each of four words. What does it take home?
  options:
    - text: Nothing, since a score of 0 is a weight of 0.
      remark: e⁰ is 1, before the division. A score of 0 isn't a weight of 0 (section 2).
    - text: Its own value, since nothing else fits.
      remark: Nothing prefers a word to the others, not even to itself, unless the scores do (section 2).
    - text: The mean of the four values.
      right: true
      remark: Equal scores give equal weights, here ¼ each. That's how 'dull' looked around after 'so' (section 3).
- name: hour-blind
  taught: "hour"
  question: You take the turn out of the model and train it for a week on reviews with twins. How many of 500 order reviews
    does it get right?
  options:
    - text: Exactly 250.
      right: true
      remark: Without positions both twins get the same answer, whatever was learned, and it's right for one of them
        (sections 1 and 4).
    - text: About 427, as with the turn, only later.
      remark: What isn't in the numbers can't be learned from them. Without the turn, no score knows where a word stands
        (section 4).
    - text: Fewer than 250, since it learns something wrong.
      remark: It gives both twins the same answer. One of the two labels is always right (section 1).
- name: hour-moved
  taught: "hour"
  question: Queries and keys are turned by their position. Both words move three positions on. What happens to their score?
  options:
    - text: It falls, since the arrows are three positions further round.
      remark: Both are, by the same angle. A dot product only sees the angle between the two (section 4).
    - text: It stays.
      right: true
      remark: The position cancels, and only the distance remains. Move one of the two, and the score changes (section 4).
    - text: It can't be known without the learned numbers.
      remark: For any two arrows, turning both by the same angle leaves the angle between them (section 4).
- name: hour-heaviest
  taught: "hour"
  question: In a review, the pooling gives 'did' a weight of 0.93. What follows?
  options:
    - text: The verdict is picked up at 'did', wherever it comes from.
      right: true
      remark: Where it comes from, the row of 'did' says, most of the time; which words it needs, you find out by taking them
        away (section 8).
    - text: "'did' is the word that decided about this review."
      remark: Its vector is picked up, but what's in that vector came from other words too. Here it came from 'once'
        (section 8).
    - text: Without the word 'did' the label would be another one.
      remark: In our run it cost 0.06. Without 'once', which has no weight in the pooling, 0.73 was lost (section 8).
- name: hour-measured
  taught: "hour"
  question: Hide a word behind <unk>, and the probability of 'positive' stays at 0.99. What have you shown?
  options:
    - text: The model doesn't need the word.
      remark: With another stand-in it may. In our run 'first' cost 0.10 hidden and 0.98 left out (section 8).
    - text: With <unk> in its place the model says the same.
      right: true
      remark: A cost is always measured against another text, the one with the stand-in, for which the model has an answer of
        its own (section 8).
    - text: The map gives the word no weight.
      remark: A map shows weights, and this is about the answer. 'first' had the largest weight and cost little (section 8).
"""
