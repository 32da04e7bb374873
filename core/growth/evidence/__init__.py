"""Growth by evidence: splits when two densities explain a leaf's samples better than one.

growth      when a leaf is looked at, searched and cut
gain        the evidence for a cut, less its price
priors      the nodes' priors, chosen by evidence
candidates  one hyperplane a leaf that may cut it
proposals   better candidates, from a search
search      hyperplanes that part a leaf's recent samples
screening   a quick judgement of many hyperplanes
doubt       how unsure the context leaves on which side of a cut samples fall
reservoir   the recent samples of every leaf
room        what a full tree can best do without
worth       what the nodes of a full tree save
state       all that is remembered of the nodes, as the tree changes
"""
