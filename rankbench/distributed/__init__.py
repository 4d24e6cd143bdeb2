"""Training on parts of the users that stay in several processes; only what belongs to items travels.

**Parts.** `partitions=P` cuts the users into P ranges of about as many rows (`cutting`). A part is the rows of its
users with all that a solver keeps for them: their vectors, dual variables and random stream. It is made where it is to
stay and never moves. P belongs to the algorithm: other P give other bits. The number of processes does not.

**An executor** (`contract.Executor`) keeps the parts and calls functions on them. `InProcess` has all of them in this
process, one after another; training without parts is training with one of them there. `teams.Team` has them in the
processes of a team, each of which holds a range of the parts. A solver is a driver's loop over an executor, and cannot
tell the two apart.

**Sums** over parts are added in a binary tree over the parts whose shape depends on P alone (`trees`). A process adds
what it has, up to the nodes of the tree that are wholly its own, and the others are added on the way to the driver. So
the same numbers are added in the same order, however many processes there are.

**Messages** go along a binomial tree of processes (`teams`), each over a connection of its own: what is common to all
parts down, sums up. A process passes a message on before it works on it. With W processes a message takes
1 + ceil(log2 W) hops, and no process sends more than log2 W copies.

**A lost process** ends the training: its neighbours see their connections close, and close theirs. Nothing is left
behind, as the parts are local variables of the processes. The harness runs the cell again with those that are left.
"""
