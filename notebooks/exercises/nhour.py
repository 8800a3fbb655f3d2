"""Quiz and predictions of 'Attention in an hour'; its exercises are those of 04 and 11, and stay there."""

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

# ---------------------------------------------------------------- predictions: what idea a wrong guess comes from

GUESSES = """
- name: hour-bag
  guesses:
    - from: 450
      to: 500
      remark: That many it gets right among the *plain* reviews, where a word says the same wherever it is. Twins have the
        same words, so a bag can't tell them apart.
    - from: 251
      to: 449
      remark: For more than half it would have to tell some twins apart. Both are the same bag and get the same label, which
        is right for one of them.
    - from: 0
      to: 249
      remark: For fewer than half it would have to be wrong about both twins of a pair. They get the same label, and it's
        right for one of them.
- name: hour-opinion
  guesses:
    - from: -1.1
      to: -0.9
      remark: That's its own opinion. But it gives itself a weight of 0.017 only, and takes home what it looks at.
    - from: -0.6
      to: -0.3
      remark: That's what it took home in section 2, where it looked mostly at itself. With this query it looks at 'not'.
    - from: -0.25
      to: 0.25
      remark: Did 'not' hand over nothing, as its own opinion is 0? It hands over +2, and has 0.948 of the weight.
    - from: 0.45
      to: 0.55
      remark: That's the mean with equal weights. The score of 4 puts 0.948 of the weight on 'not'.
    - from: 0.85
      to: 1.1
      remark: Did you turn −1 round, or add 2 to it? Here a word keeps nothing of its own. It takes home the mean of the
        values, and that's nearly all the +2 of 'not'.
    - from: 1.95
      to: 2.05
      remark: That's all of what 'not' hands over, and it has 0.948 of the weight. The −1 of 'dull' and the +1 of 'moving'
        cancel.
    - from: 3
      to: 5
      remark: 4 is the score. What comes home is a mean of the values, and none of these is above 2.
- name: hour-twin
  guesses:
    - from: 0.01
      to: .inf
      remark: In the twin 'dull' sees the same four words, so the same weights and the same values are added up, only in
        another order.
    - from: -.inf
      to: -0.01
      remark: In the twin 'dull' sees the same four words, so the same weights and the same values are added up, only in
        another order.
- name: hour-turn
  guesses:
    - from: 0.8
      to: 0.95
      remark: That's its weight in the sentence. In the twin 'not' is three words back, and its key two radians away from
        the query.
    - from: 0.24
      to: 0.26
      remark: That would be four equal scores. Here the score of 'not' is −1.66, that of 'but' 4.
    - from: 0.27
      to: 0.79
      remark: Compare the powers, not the scores. 'not' has the score 4 cos 2 = −1.66, and e to the power of it is 0.19;
        'but' has the score 4, and e⁴ is 54.6.
    - from: 0.02
      to: 0.23
      remark: Compare the powers, not the scores. 'not' has the score 4 cos 2 = −1.66, and e to the power of it is 0.19;
        'but' has the score 4, and e⁴ is 54.6.
- name: hour-off
  guesses:
    - from: 225
      to: 275
      remark: That's chance, and what becomes of *order*. In *plain* reviews a word says the same wherever it is, so a
        reader without positions can still read them.
    - from: 276
      to: 450
      remark: It loses fewer. Without positions the model is a bag, and in *plain* reviews a bag gets nearly all right.
    - from: 495
      to: 500
      remark: As trained it gets 488. A few more are lost without the turn, since every number was learned with
        the words turned.
"""
