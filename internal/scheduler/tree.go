package scheduler

// The waiting tasks of a class form a tree: class, provider, lane (an agent with its owner and provider),
// flow (the tasks of one account in a lane). Every level is a heap by the least virtual time below it, so
// a decision follows the first elements and a full agent or provider is one closed node, however many
// tasks wait for it.

// The groups of flows by the running tasks of their account. A node with one free place offers only the
// groups for which that place is kept.
const (
	idleProvider = iota // the account runs nothing at the provider
	idleAgent           // nothing at the agent
	busyAgent
	groups
)

// item is an element of a heap of the tree: either a node or a flow.
type item struct {
	key  key
	at   int
	node *node
	flow *flow
}

// key orders flows. spent is the virtual time of the share in microseconds, a lower bound, because that of
// an account that runs tasks grows. order is that of the first task that may start.
type key struct {
	spent int64
	order uint64
}

func (k key) before(o key) bool { return k.spent < o.spent || k.spent == o.spent && k.order < o.order }

func (i *item) before(o *item) bool { return i.key.before(o.key) }
func (i *item) slot() *int          { return &i.at }

// node is a class, a provider within a class or a lane within a class.
type node struct {
	up *node
	// open is the number of groups that may start tasks here: 0 for a full node, groups without a
	// restriction.
	open int
	own  [groups]item // the elements of this node in the heaps of up
	kids [groups][]*item
}

func newNode(up *node) *node {
	n := &node{up: up, open: groups}
	for g := range n.own {
		n.own[g].node = n
	}
	return n
}

// leastItem returns the first element of a group, nil if the group is empty or closed here.
func (n *node) leastItem(g int) *item {
	if g >= n.open || len(n.kids[g]) == 0 {
		return nil
	}
	return n.kids[g][0]
}

// setOpen changes how many groups the node offers.
func (n *node) setOpen(open int) {
	if n.open == open {
		return
	}
	n.open = open
	for g := range groups {
		n.publishGroup(g)
	}
}

// putItem adds the element to a group, or moves it there if its key changed.
func (n *node) putItem(i *item, g int, k key) {
	if i.at != 0 {
		if i.key == k {
			return
		}
		i.key = k
		fixHeap(n.kids[g], i)
	} else {
		i.key = k
		n.kids[g] = pushHeap(n.kids[g], i)
	}
	n.publishGroup(g)
}

// dropItem removes the element from a group; one that is not in a heap is ignored.
func (n *node) dropItem(i *item, g int) {
	if i.at == 0 {
		return
	}
	n.kids[g] = removeHeap(n.kids[g], i)
	n.publishGroup(g)
}

// publishGroup passes the first element of a group to the node above.
func (n *node) publishGroup(g int) {
	if n.up == nil {
		return
	}
	if first := n.leastItem(g); first != nil {
		n.up.putItem(&n.own[g], g, first.key)
	} else {
		n.up.dropItem(&n.own[g], g)
	}
}

// firstFlow returns the flow with the least virtual time among those of groups below open that may start a
// task, nil without one.
func (n *node) firstFlow(open int) *flow {
	var best *item
	group := 0
	for g := range min(open, n.open) {
		if i := n.leastItem(g); i != nil && (best == nil || i.key.before(best.key)) {
			best, group = i, g
		}
	}
	for best != nil && best.flow == nil {
		best = best.node.leastItem(group)
	}
	if best == nil {
		return nil
	}
	return best.flow
}
